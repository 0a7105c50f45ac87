"""The first run: what is offered, what is found, the way tested, and what is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

import themes
from cockpit.config import ClusterConfig
from cockpit.config_file import load_config
from cockpit.doctor.models import Result, failed, passed
from cockpit.models import Fault, FaultKind
from cockpit.setup.find import Candidate, Found
from cockpit.setup.trial import Trial
from screens.first_run import Chosen, FirstRunApp, HeadInput
from tests.screens.golden import assert_golden
from tests.screens.helpers import screen_text

HOSTILE = "[@click=app.quit]x[/]\x1b[31m\u202e"
FOUND = Found(
    (
        Candidate("prod", "ec2-user@10.0.0.1", "parallelcluster", "us-east-1", "", "prod", "ParallelCluster 3.16.1"),
        Candidate(HOSTILE, "box", told=HOSTILE),
    ),
    Fault(FaultKind.AUTH, "looking for clusters", f"no usable credentials {HOSTILE}"),
)
NOTHING = Found(())


def app(path: Path, found: Found = FOUND) -> FirstRunApp:
    return FirstRunApp(path, themes.Look(), lambda: found)


async def settled(pilot: Pilot[Chosen], true: Callable[[], object]) -> None:
    for _ in range(200):
        if true():
            await pilot.pause()
            return
        await pilot.pause(0.01)
    raise AssertionError(screen_text(pilot.app))


def fake_trial(monkeypatch: pytest.MonkeyPatch, *results: Result) -> list[ClusterConfig]:
    """`try_out` without any machine: tells these results, and that the head is a plain Slurm."""
    asked = []

    def try_out(config: ClusterConfig, told: Callable[[Result], None], *, stop: threading.Event) -> Trial:
        asked.append(config)
        for result in results:
            told(result)
        return Trial(results, config)

    monkeypatch.setattr("screens.first_trial.try_out", try_out)
    return asked


GOOD = Result("slurm", "Slurm answers", passed("12 nodes in 3 queues"), 0.1)
BAD = Result("auth", "login", failed(f"refused {HOSTILE}", f"ssh-add {HOSTILE}"), 0.1)


async def test_it_offers_three_things(tmp_path: Path) -> None:
    async with app(Path("/home/ops/.config/cockpit/config.yaml")).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert_golden("first_run_80x24", screen_text(pilot.app))


@pytest.mark.parametrize(("keys", "chosen"), [("d", True), ("q", None), ("escape", None)])
async def test_keys_choose_at_once(tmp_path: Path, keys: str, chosen: bool | None) -> None:
    first = app(tmp_path / "config.yaml")
    async with first.run_test() as pilot:
        await pilot.press(keys)
    assert first.return_value == (Chosen(demo=True) if chosen else None)


async def test_j_and_enter_choose_the_demo(tmp_path: Path) -> None:
    first = app(tmp_path / "config.yaml")
    async with first.run_test() as pilot:
        await pilot.press("j", "enter")
    assert first.return_value == Chosen(demo=True)


async def test_what_was_found_is_shown_as_text(tmp_path: Path) -> None:
    async with app(tmp_path / "config.yaml").run_test(size=(100, 24)) as pilot:
        await pilot.press("s")
        await settled(pilot, lambda: "2 places found" in screen_text(pilot.app))
        shown = screen_text(pilot.app)
        assert "[@click=app.quit]x[/]␛[31m·" in shown
        assert "\x1b" not in shown
        assert "prod" in shown
        assert "AWS tells no cluster" in shown


async def test_an_open_way_is_written_and_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_trial(monkeypatch, GOOD)
    path = tmp_path / "config.yaml"
    first = app(path)
    async with first.run_test(size=(100, 24)) as pilot:
        await pilot.press("s")
        await settled(pilot, lambda: "2 places found" in screen_text(pilot.app))
        await pilot.press("enter")
        await settled(pilot, lambda: "The way is open." in screen_text(pilot.app))
        assert "12 nodes in 3 queues" in screen_text(pilot.app)
        assert not path.exists()
        await pilot.press("enter")
        await pilot.pause()
    assert first.return_value == Chosen(cluster="prod")
    assert load_config(path).clusters["prod"].head == "ec2-user@10.0.0.1"
    assert asked[0].stack == "prod"


async def test_a_closed_way_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_trial(monkeypatch, BAD)
    path = tmp_path / "config.yaml"
    async with app(path, NOTHING).run_test(size=(100, 24)) as pilot:
        await pilot.press("s")
        await pilot.press(*"ops@box", "enter")
        await settled(pilot, lambda: "nothing is written" in screen_text(pilot.app))
        shown = screen_text(pilot.app)
        assert "FAIL" in shown
        assert "ssh-add [@click=app.quit]x[/]␛[31m·" in shown
        await pilot.press("enter")
        await pilot.pause()
        assert not path.exists()
        await pilot.press("escape")
        await settled(pilot, lambda: isinstance(pilot.app.focused, HeadInput))


async def test_r_tests_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_trial(monkeypatch, BAD)
    async with app(tmp_path / "config.yaml", NOTHING).run_test() as pilot:
        await pilot.press("s", *"box", "enter")
        await settled(pilot, lambda: "nothing is written" in screen_text(pilot.app))
        await pilot.press("r")
        await settled(pilot, lambda: len(asked) == 2 and "nothing is written" in screen_text(pilot.app))


async def test_what_is_no_host_is_refused_where_it_is_typed(tmp_path: Path) -> None:
    async with app(tmp_path / "config.yaml", NOTHING).run_test() as pilot:
        await pilot.press("s")
        await pilot.press(*"-oProxyCommand=x", "enter")
        await pilot.pause()
        assert "-oProxyCommand=x" in str(pilot.app.screen.query_one("#wrong", Static).render())


async def test_a_name_that_is_taken_is_told_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_trial(monkeypatch, GOOD)
    path = tmp_path / "config.yaml"
    async with app(path, NOTHING).run_test(size=(120, 24)) as pilot:
        await pilot.press("s", *"box", "enter")
        await settled(pilot, lambda: "The way is open." in screen_text(pilot.app))
        path.write_text("clusters:\n  box: {head: other}\n")  # somebody else was faster
        await pilot.press("enter")
        await settled(pilot, lambda: "has a cluster 'box' already" in screen_text(pilot.app).replace("\n  ", " "))
        assert load_config(path).clusters["box"].head == "other"


async def test_leaving_while_a_test_runs_disturbs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def try_out(config: ClusterConfig, told: Callable[[Result], None], *, stop: threading.Event) -> Trial:
        begun.set()
        go_on.wait(10)
        try:
            assert stop.is_set()
            told(GOOD)
        finally:
            ended.set()
        return Trial((GOOD,), config)

    monkeypatch.setattr("screens.first_trial.try_out", try_out)
    first = app(tmp_path / "config.yaml", NOTHING)
    async with first.run_test() as pilot:
        await pilot.press("s", *"box", "enter")
        await settled(pilot, begun.is_set)
        await pilot.press("escape")
        go_on.set()
        await settled(pilot, ended.is_set)
        await pilot.press("escape", "q")
    assert first.return_value is None
    assert not (tmp_path / "config.yaml").exists()
