"""Settings from the palette: what can be switched takes effect at once and everywhere, the rest is explained."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from cockpit import words
from screens.column_choice import Choice
from tests.screens.test_app import cockpit


@pytest.fixture
def _far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    words.show_utc(False)
    monkeypatch.undo()
    time.tzset()


async def test_ascii_is_switched_on_and_off() -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.read()
        assert "✖" in pilot.text()
        await pilot.press("colon", *"ascii on", "enter")
        assert pilot.app.ascii_only
        assert "x gpu-st-p5-8" in pilot.text()
        await pilot.press("colon", *"ascii off", "enter")
        assert "✖ gpu-st-p5-8" in pilot.text()


async def test_a_terminal_without_unicode_stays_with_ascii() -> None:
    from themes import Look

    async with cockpit((120, 40)) as pilot:
        pilot.app.look = Look(ascii=True, encoding="ascii")
        pilot.app.ascii_only = True
        pilot.app.turn("ascii")
        assert pilot.app.ascii_only


@pytest.mark.usefixtures("_far_away")
async def test_times_change_their_zone_at_once_in_tables() -> None:
    async with cockpit((160, 40), pane="4") as pilot:
        await pilot.read()
        pilot.app.cockpit.pane.choose_columns(Choice(("job", "submitted"), only=True))
        await pilot.settle()
        before = pilot.text()
        await pilot.press("colon", *"utc on", "enter")
        submitted = next(column for column in pilot.app.cockpit.pane.columns if column.id == "submitted")
        row = pilot.app.cockpit.pane.visible_rows[0]
        shown = submitted.cell(row)
        assert isinstance(shown, str)
        assert shown in pilot.text()
        assert shown not in before
        await pilot.press("colon", *"utc off", "enter")
        assert shown not in pilot.text()


async def test_screenshots_are_redacted_from_then_on() -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.press("colon", *"redact on", "enter")
        assert pilot.app.redact_screenshots


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_setting_opens_what_it_does_what_it_is_and_how_to_change_it(size: tuple[int, int]) -> None:
    async with cockpit(size) as pilot:
        await pilot.read()
        await pilot.press("colon", *"setting straggler", "enter")
        text = pilot.text()
        assert "setting rules.straggler_pct" in text
        assert "now          20" in text
        assert "straggler_pct: 20" in text
        await pilot.press("escape")
        assert "nodes 12" in pilot.text()
