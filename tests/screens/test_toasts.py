"""Toasts: none lies over a question, what came meanwhile is shown after it, and a storm stays a few."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.notifications import Notification
from textual.widgets._toast import Toast

from screens import outlet
from screens.plan_dialog import PlanDialog
from screens.toasts import MOST_HELD, Held
from tests.screens.change_app import Changed, changing, without_pauses

KEY = "gpu-st-p5-2"


@asynccontextmanager
async def asked(monkeypatch: pytest.MonkeyPatch, folder: Path) -> AsyncIterator[Changed]:
    """The question of a drain on a small terminal."""
    without_pauses(monkeypatch, folder)
    async with changing() as at:
        at.cursor_to(KEY)
        await at.press("D")
        await at.planned()
        yield at


def up(at: Changed) -> list[str]:
    """The toasts on the screen."""
    return [str(toast.render()) for toast in at.app.screen.query(Toast)]


async def test_no_toast_covers_a_question_and_it_is_told_afterwards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with asked(monkeypatch, tmp_path) as at:
        before = at.text()
        outlet.tell(at.app, "NCCL test: gpu-st-p5-7 falls short", severity="warning")
        for _ in range(5):
            await at.pilot.pause(0.05)
        assert at.text() == before
        await at.press("escape")
        await at.until(lambda: "gpu-st-p5-7 falls short" in at.text())


async def test_a_warning_that_was_hardly_up_comes_again_after_the_question(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_pauses(monkeypatch, tmp_path)
    async with changing() as at:
        at.cursor_to(KEY)
        outlet.tell(at.app, "copied", severity="information")
        outlet.tell(at.app, "the shell ended with 255", severity="warning")
        await at.until(lambda: "ended with 255" in at.text() and "copied" in at.text())
        await at.press("D")
        await at.planned()
        assert "ended with 255" not in at.text()
        assert "copied" not in at.text()
        await at.press("escape")
        await at.until(lambda: "ended with 255" in at.text())
        assert "copied" not in at.text()


async def test_many_toasts_at_once_are_a_few_and_errors_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_pauses(monkeypatch, tmp_path)
    async with changing() as at:
        outlet.tell(at.app, "the disk is full", severity="error")
        for number in range(20):
            outlet.tell(at.app, f"copied {number}")
        await at.until(lambda: "copied 19" in at.text())
        await at.pilot.pause()
        assert len(up(at)) == 2
        assert "the disk is full" in at.text()


async def test_the_same_words_stand_there_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_pauses(monkeypatch, tmp_path)
    async with changing() as at:
        for _ in range(3):
            outlet.tell(at.app, "there is nothing under the cursor")
        await at.until(lambda: len(up(at)) == 1)
        await at.pilot.pause()
        assert len(up(at)) == 1


async def test_a_storm_during_a_question_ends_with_the_worst_and_a_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with asked(monkeypatch, tmp_path) as at:
        assert isinstance(at.app.screen, PlanDialog)
        outlet.tell(at.app, "slurmctld is down", severity="error")
        for number in range(50):
            outlet.tell(at.app, f"seen {number}")
        await at.pilot.pause()
        await at.press("escape")
        await at.until(lambda: "slurmctld is down" in at.text())
        assert len(up(at)) <= 2


def test_what_waits_is_bounded_and_says_what_is_missing() -> None:
    held = Held()
    held.add(Notification("first", severity="error"))
    for number in range(9):
        held.add(Notification(f"news {number}"))
    held.add(Notification("news 8"))  # the same words wait once
    told = []
    while (note := held.take()) is not None:
        told.append(note.message)
    assert told[0] == "first"
    assert told[1:MOST_HELD] == [f"news {number}" for number in range(5, 9)]
    assert told[MOST_HELD].startswith("5 less important messages")
    assert not held
