"""Setting a problem aside with a note: the dialog by itself, and by its key in the cockpit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events

from screens.lines import Line
from screens.note_dialog import NoteDialog, NoteInput
from tests.screens.golden import assert_golden
from tests.screens.menu_app import opened
from tests.screens.test_app import HOSTILE, SIZES, Pilot, cockpit


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_dialog(size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with cockpit(size, pane="1") as pilot:
        await pilot.read()
        await pilot.press("g", "i")
        assert_golden(f"note-{size[0]}x{size[1]}", pilot.text())


async def settled(pilot: Pilot, wanted: str) -> str:
    """The screen, once something is written down on its thread."""
    for _ in range(200):
        pilot.app.cockpit.on_changed()
        await pilot.settle()
        if wanted in pilot.text():
            return pilot.text()
        await asyncio.sleep(0.01)
    raise AssertionError(pilot.text())


async def test_a_problem_is_set_aside_with_its_note_and_taken_back_by_the_same_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with cockpit((160, 48), pane="1") as pilot:
        await pilot.read()
        await pilot.press("g", "i", "enter")  # without a word nothing is kept
        assert isinstance(pilot.app.screen, NoteDialog)
        await pilot.press(*"INC-7", "enter")
        assert "knows: INC-7" in await settled(pilot, "set aside: gpu-st-p5-8")
        first = next(line for line in pilot.lines() if "gpu-st-p5-8" in line and "knows" in line)
        assert "✖" not in first
        await pilot.press("G", "i")
        assert "knows: INC-7" not in await settled(pilot, "taken back: gpu-st-p5-8")


async def test_esc_leaves_the_problem_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with cockpit((120, 40), pane="1") as pilot:
        await pilot.read()
        await pilot.press("g", "i", *"no", "escape")
        assert pilot.app.screen is pilot.app.cockpit
        assert not any(problem.acknowledged for problem in pilot.cluster.problems())


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_about_it_and_pasted_into_it_stays_text(text: str) -> None:
    about: list[Line] = [[(text, "critical"), f"  {text}"], [(text[:300], "dim")]]
    async with opened(lambda: NoteDialog("set this problem aside", about, "why")) as (app, pilot):
        app.screen.query_one(NoteInput).post_message(events.Paste(text * 20))
        await pilot.pause()
        await pilot.pause()
        assert not [char for char in app.text() if ord(char) < 32 and char != "\n"]
        assert "\u202e" not in app.text()
        await pilot.press("enter")
        await pilot.pause()
        [note] = app.results
        assert len(note) <= 300
        assert not [char for char in note if ord(char) < 32 or char == "\u202e"]
