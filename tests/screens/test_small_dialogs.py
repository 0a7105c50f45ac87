"""The small questions: arming a read-only cluster, leaving while something runs; with hostile words too."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from actions.runner import Running
from actions.spec import Options, Plan, Scope, Step, Targets
from cockpit.config import ClusterConfig
from screens.arm import arm_dialog
from screens.leaving import LeaveDialog
from screens.lines import Line
from screens.runs import Run
from tests.screens.change_app import changing, without_pauses
from tests.screens.golden import assert_golden
from tests.screens.helpers import Driven
from tests.screens.menu_app import MenuApp, opened
from tests.screens.test_app import HOSTILE, SIZES
from tests.still import StillClock

sizes = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


def half_done(title: str) -> Run:
    """A drain of three nodes that has sent the first of its two commands."""
    steps = tuple(Step("drain", ("scontrol", "update", str(number))) for number in range(2))
    plan = Plan("drain", title, "prod", Targets(Scope.NODE, ("a", "b", "c")), Options(), steps, 2, count=3)
    return Run(plan, StillClock(), said={0: "done"}, running=Running())


@sizes
async def test_golden_of_arming(size: tuple[int, int]) -> None:
    config = ClusterConfig("prod", production=True, read_only=True)
    async with opened(lambda: arm_dialog(config, 900), size) as (app, _):
        assert_golden(f"arm-{size[0]}x{size[1]}", app.text())


@sizes
async def test_golden_of_leaving(size: tuple[int, int]) -> None:
    async with opened(lambda: LeaveDialog([half_done("drain a, b and c")]), size) as (app, _):
        assert_golden(f"leave-{size[0]}x{size[1]}", app.text())


class Runs:
    """A test of NCCL that runs, as far as leaving is concerned; it ends when `ends` is set."""

    unsent, patience_s = 1, 10.0

    def __init__(self) -> None:
        self.stopped, self.ends = threading.Event(), threading.Event()

    def undone(self) -> list[Line]:
        return [["its job is cancelled"]]

    def stop(self) -> None:
        self.stopped.set()

    def wait(self, seconds: float) -> None:
        self.ends.wait(seconds)


class Left(Driven):
    """The question that is asked when one leaves while `running` runs, and what came of it."""

    app: MenuApp

    def __init__(self, app: MenuApp, pilot: Pilot[None], running: Runs) -> None:
        self.app, self.pilot, self.running = app, pilot, running

    @property
    def results(self) -> list[object]:
        return self.app.results


@asynccontextmanager
async def leaving(monkeypatch: pytest.MonkeyPatch, folder: Path) -> AsyncIterator[Left]:
    without_pauses(monkeypatch, folder)
    running = Runs()
    async with opened(lambda: LeaveDialog([running])) as (app, pilot):
        at = Left(app, pilot, running)
        await at.until(lambda: app.screen.focused is not None)
        yield at
        running.ends.set()


async def test_yes_stops_what_runs_and_leaves_at_its_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with leaving(monkeypatch, tmp_path) as at:
        await at.press("y")
        await at.until(lambda: "stopping it" in at.text())
        assert at.running.stopped.is_set()
        assert at.results == []
        at.running.ends.set()
        await at.until(lambda: at.results == ["y"])


async def test_no_leaves_everything_running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with leaving(monkeypatch, tmp_path) as at:
        await at.press("n")
        await at.until(lambda: at.results == [None])
        assert not at.running.stopped.is_set()


async def test_a_second_yes_does_not_wait(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with leaving(monkeypatch, tmp_path) as at:
        await at.press("y")
        await at.until(lambda: "stopping it" in at.text())
        await at.press("y")
        await at.until(lambda: at.results == ["y"])


@pytest.mark.parametrize("words", HOSTILE)
async def test_a_hostile_title_is_only_words(words: str) -> None:
    async with opened(lambda: LeaveDialog([half_done(words)])) as (app, _):
        assert "1 of 2 commands sent" in app.text()
        assert "\x1b" not in app.text()


async def test_quitting_while_a_test_runs_asks_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_pauses(monkeypatch, tmp_path)
    async with changing() as at:
        test = Runs()
        monkeypatch.setattr(type(at.app.cockpit), "watched_test", property(lambda self: test))
        monkeypatch.setattr(Runs, "run", None, raising=False)
        monkeypatch.setattr(Runs, "words", lambda self: "NCCL test 3 sizes done", raising=False)
        await at.press("q")
        await at.until(lambda: isinstance(at.app.screen, LeaveDialog))
        assert "its job is cancelled" in at.text()
        await at.press("escape")
        assert at.app.screen is at.app.cockpit
        assert not test.stopped.is_set()
