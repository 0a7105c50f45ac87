"""`remember: true`: the next start begins where this one was left; without it, with the problems."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from screens.pane import TablePane
from screens.remembered import PANES, Seen, read_seen, view_file, write_seen
from tests.still import still_cluster


def app(*, remember: bool = True) -> CockpitApp:
    cluster, _, _ = still_cluster()
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    found = CockpitApp(Clusters.only(cluster))
    found.remember = remember
    return found


async def until(pilot: Pilot[Any], true: Callable[[], object]) -> None:
    for _ in range(400):
        if true():
            return
        await pilot.pause(0.01)
    raise AssertionError("did not come true")


def table(pilot: Pilot[Any], name: str) -> TablePane:
    return pilot.app.screen.query_one(f"#pane-{name}", TablePane)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("screens.remembered.EVERY_S", 0.05)


def kept(cluster: str) -> Seen:
    return read_seen(view_file(cluster))


async def test_pane_sort_filter_and_width_come_back() -> None:
    first = app()
    name = first.clusters.first
    async with first.run_test(size=(120, 30)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.screen.query("#pane-nodes"))
        grid = table(pilot, "nodes")
        grid.set_sort("node", True)
        grid.set_filter("gpu")
        await pilot.press("w")
        await until(pilot, lambda: kept(name).tables.get("pane-nodes", {}).get("wide") is True)
        assert kept(name).pane == "nodes"
    async with app().run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: pilot.app.screen.query("#pane-nodes"))
        await until(pilot, lambda: table(pilot, "nodes").filter_text == "gpu")
        assert table(pilot, "nodes").sort == ("node", True)
        assert table(pilot, "nodes").canvas.wide
    assert stat.S_IMODE(view_file(name).stat().st_mode) == 0o600


async def test_without_it_nothing_is_kept_and_every_start_begins_with_the_problems() -> None:
    first = app(remember=False)
    write_seen(view_file(first.clusters.first), Seen("queue"))
    async with first.run_test(size=(120, 30)) as pilot:
        await pilot.pause(0.2)
        assert first.cockpit.trail.here.view == "pane-overview"
        await pilot.press("2")
        await pilot.pause(0.2)
    assert kept(first.clusters.first) == Seen("queue")


async def test_what_the_file_says_harms_nothing() -> None:
    """Unknown panes, columns and fields, wrong types: passed over, and the rest still counts."""
    first = app()
    path = view_file(first.clusters.first)
    path.parent.mkdir(parents=True)
    tables = {
        "pane-nodes": {"sort": "no such column", "filter": "nosuchfield:x", "wide": "yes"},
        "pane-queue": {"sort": ["x"], "filter": 7},
        "overview-nodes": {"sort": None, "filter": "hides everything"},
        "x": 3,
    }
    path.write_text(json.dumps({"pane": "nodes", "tables": tables}))
    async with first.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: pilot.app.screen.query("#pane-nodes"))
        await pilot.press("4")
        await until(pilot, lambda: pilot.app.screen.query("#pane-queue"))
        assert (table(pilot, "nodes").filter_text, table(pilot, "queue").filter_text) == ("", "")
        assert pilot.app.screen.query_one("#overview-nodes", TablePane).filter_text == ""


@pytest.mark.parametrize("text", ["", "[", "[]", "3", '{"pane": 7, "tables": []}', "\x00", "{" * 100_000])
def test_a_file_that_is_none_of_ours_is_the_usual(tmp_path: Path, text: str) -> None:
    path = tmp_path / "view.json"
    path.write_text(text)
    assert read_seen(path) == Seen()


def test_a_pane_that_there_is_not_is_the_overview(tmp_path: Path) -> None:
    path = tmp_path / "view.json"
    path.write_text('{"pane": "no\'); quit(\'", "tables": {}}')
    assert read_seen(path).pane == "overview"
    assert {"overview", "nodes", "gpus", "queue", "nccl", "log"} <= PANES
