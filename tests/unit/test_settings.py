"""Settings in the palette: every key of the config is found, explained and told as it is; switches say how they are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cockpit import words
from cockpit.clusters import Clusters
from cockpit.config import ClusterConfig, Config, PrometheusSettings
from cockpit.config_file import load_config
from cockpit.config_reference import keys, now_words
from screens.commands import Command, Context
from screens.detail_registry import details, explain
from screens.lines import Subject
from screens.palette_search import Catalog
from screens.setting_entries import SWITCHES
from tests.still import still_cluster
from tests.unit.details_cluster import texts

FILE = """
default: prod
theme: cockpit-light
remember: true
clusters:
  prod:
    head: local
    read_only: true
    refresh: {slurm: 7}
    prometheus: http://prom:9090
rules: {gpu_idle_for: 7m}
columns: {nodes: [node, state]}
checks: {off: [efa.devices]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    return load_config(path)


def found(typed: str, **changes: object) -> list[tuple[str, str]]:
    context = Context(still_cluster()[0].view, cluster="prod", **changes)  # type: ignore[arg-type]
    return [(entry.command.id, entry.command.argument) for entry in Catalog(context).find(typed).entries]


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("remember", "remember"),
        ("straggler", "rules.straggler_pct"),
        ("setting read_only", "clusters.*.read_only"),
        ("setting region", "clusters.*.region"),
        ("setting lags", "rules.straggler_pct"),
        ("theme", "theme"),
        ("columns", "columns"),
    ],
)
def test_the_palette_finds_settings_by_name_and_by_what_they_mean(typed: str, key: str) -> None:
    assert ("setting", key) in found(typed)


def test_the_palette_finds_the_switches_and_says_how_they_are() -> None:
    assert ("switch", "utc") in found("time zone")
    for switch in SWITCHES:
        assert ("switch", switch.id) in found(switch.id)
    context = Context(still_cluster()[0].view, switches={"utc": True})
    entry = Catalog(context).find("utc").entries[0]
    assert (entry.command, entry.text) == (Command("switch", "utc"), "utc off")
    assert "It is on" in entry.help


def test_every_key_of_the_config_is_explained_with_what_it_is_now_and_how_to_change_it(config: Config) -> None:
    cluster = Clusters.of_config(config, "prod", read_only=False).open("prod")
    for key in keys():
        for say in (details, explain):
            told = texts(say(cluster, Subject("setting", key.path)))
            assert key.path.replace("*", "prod") in told
            assert "now          " in told
            assert str(config.path) in told
            assert key.path.rpartition(".")[2] + ":" in told
    assert "no such key" in texts(details(cluster, Subject("setting", "moon")))


def test_what_a_key_is_now(config: Config) -> None:
    cluster = config.clusters["prod"]
    now = {key.path: now_words(key.path, config, cluster) for key in keys()}
    assert now["theme"] == "cockpit-light"
    assert now["remember"] == "true"
    assert now["utc"] == "false"
    assert now["clusters.*.read_only"] == "true"
    assert now["clusters.*.region"] == "not set"
    assert now["clusters.*.refresh.slurm"] == "7"
    assert now["clusters.*.nodes.via"] == "head"
    assert now["clusters.*.prometheus"] == "http://prom:9090"
    assert now["rules.gpu_idle_for"] == "7m"
    assert now["columns"] == "nodes"
    assert now["keys"] == "not set"
    assert now["checks.off"] == "efa.devices"
    assert now["checks.commands[].argv"] == "0 commands"


def test_hostile_values_of_settings_stay_text() -> None:
    evil = ClusterConfig("[/]\x1b[31m", region="\x1b]52;c;eA==\x07", prometheus=PrometheusSettings("http://[/]"))
    cluster, _, _ = still_cluster(evil)
    from screens.content import styled

    for key in keys():
        for line in details(cluster, Subject("setting", key.path)):
            assert "\x1b" not in styled(line).plain


def test_times_are_shown_in_utc_or_in_the_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        at = 1_764_500_000.0  # 30 Nov 2025 10:53:20 UTC
        assert words.clock_time(at) == "05:53:20 EST"
        assert words.moment(at, at) == "05:53"
        assert words.stamp(at) == "30 Nov 2025 05:53:20 EST"
        words.show_utc(True)
        assert words.clock_time(at) == "10:53:20 UTC"
        assert words.moment(at, at + 86_400) == "30 Nov 10:53"
        assert words.stamp(at) == "30 Nov 2025 10:53:20 UTC"
    finally:
        words.show_utc(False)
        monkeypatch.undo()
        time.tzset()


def test_one_palette_finds_panes_actions_nodes_jobs_users_and_settings() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    view = cluster.view
    assert view.nodes is not None
    assert view.queue is not None
    row = view.queue.rows[0]
    catalog = Catalog(Context(view, cluster="prod"))
    wanted = {
        "storage": ("pane.storage", ""),
        "columns": ("grid.columns", ""),
        "screenshot": ("screenshot", ""),
        view.nodes[0].name: ("node", view.nodes[0].name),
        row.key.rstrip("_"): ("job", row.key),
        row.lead.user: ("user", row.lead.user),
        "gpu_hot": ("setting", "rules.gpu_hot_c"),
    }
    for typed, command in wanted.items():
        assert command in [(entry.command.id, entry.command.argument) for entry in catalog.find(typed).entries], typed
