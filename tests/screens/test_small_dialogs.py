"""The small questions: arming a read-only cluster, leaving while something runs; with hostile words too."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot

import themes
from actions.runner import Running
from actions.spec import Option, Options, Plan, Scope, Step, Targets
from cockpit.config import ClusterConfig
from screens.arm import arm_dialog
from screens.change_fields import Field
from screens.guard import Guard
from screens.last_steps import LookApp
from screens.leaving import LeaveDialog
from screens.lines import Line
from screens.plan_dialog import PlanDialog
from screens.runs import Run
from tests.screens.change_app import changing, without_pauses
from tests.screens.golden import assert_golden
from tests.screens.helpers import Driven, screen_text
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


async def test_a_line_to_fill_is_called_by_words_not_by_a_name_of_the_program() -> None:
    class Lines(LookApp[None]):
        CSS_PATH = themes.STYLESHEET

        def compose(self) -> ComposeResult:
            yield Field(Option("start_at", "word", "when to start again"), Guard())

    app = Lines()
    async with app.run_test(size=(60, 5)):
        assert screen_text(app).lstrip().startswith("start at ")


async def test_what_has_to_be_typed_first_is_asked_for_in_the_words_of_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pauses(monkeypatch, tmp_path)
    async with changing(pane="4") as at:
        at.cursor_to("48219")
        await at.press("colon", *"signal", "enter")
        await at.until(lambda: isinstance(at.app.screen, PlanDialog))
        await at.until(lambda: at.app.screen.focused is not None)
        await at.press("enter")
        await at.until(lambda: "type which signal, such as USR1" in at.said())


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
