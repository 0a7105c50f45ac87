"""Text from outside in every place where a grid shows it: shown, never obeyed."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.events import Paste
from textual.widgets import Static

from cockpit.models import Health
from screens.content import plain, styled
from screens.filter_bar import FilterInput
from tests.screens.grid_app import GridApp, Row
from tests.screens.helpers import screen_lines, screen_text

HOSTILE = [
    "[/]",
    "[/foo]",
    "[@click=app.quit]x[/]",
    "[bold]x",
    "[$error]hi",
    "]]>[[",
    "\x1b[31mred\x1b[0m",
    "\x1b]52;c;aGk=\x07",
    "\x9b31m",
    "a\nb\r\tc",
    "\u202edrawkcab",
    "zero\u200bwidth\ufe0f",
    "日本語ジョブ",
    "🔥🇩🇪👍🏽👩\u200d🚀",
    "e\u0301\u0301\u0301",
    "\ud800",
    "x" * 5000,
    "",
]
CONTROL = {chr(code) for code in (*range(10), *range(11, 32), *range(127, 160))}


async def test_cells_and_keys() -> None:
    rows = [Row(text + str(i), text, 1.0, text, Health.WARN) for i, text in enumerate(HOSTILE)]
    app = GridApp(rows)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        for keys in ("asterisk", "w", "l", "G", "greater_than_sign", "y", "enter"):
            await pilot.press(keys)
            text = screen_text(app)
            assert not CONTROL & set(text)
        assert "[@click=app.qu" in text
        for y in range(24):
            assert app.grid.render_line(y).cell_length == 80
        # Right of the hostile columns everything stands where it should.
        await pilot.press("w")
        loads = [line.index("1.0") for line in screen_lines(app)[2:] if "1.0" in line]
        cells = {cell_len(line[:place]) for line, place in zip(screen_lines(app)[2:], loads, strict=False)}
        assert len(cells) == 1


@pytest.mark.parametrize("text", HOSTILE)
async def test_title_filter_waiting_and_stale(text: str) -> None:
    app = GridApp(None, title=text)
    async with app.run_test(size=(60, 8), notifications=True) as pilot:
        app.grid.set_waiting(text)
        await pilot.pause()
        assert not CONTROL & set(screen_text(app))
        app.grid.show([Row("n1")], stale=text)
        app.grid.set_filter(f'"{text}"')
        await pilot.pause()
        assert not CONTROL & set(screen_text(app))
        assert app.is_running


@pytest.mark.parametrize("text", HOSTILE)
async def test_pasted_filter(text: str) -> None:
    app = GridApp([Row("n1")])
    async with app.run_test(size=(60, 8), notifications=True) as pilot:
        await pilot.press("slash")
        line = app.query_one(FilterInput)
        line.post_message(Paste(text))
        await pilot.pause()
        assert not CONTROL & set(line.value)
        await pilot.press("enter")
        assert not CONTROL & set(screen_text(app))


@pytest.mark.parametrize("text", HOSTILE)
async def test_content_is_never_markup(text: str) -> None:
    app = GridApp([])
    async with app.run_test(size=(60, 8), notifications=True) as pilot:
        await app.mount(Static(plain(text)), Static(styled([text, (text, "critical")])))
        app.grid.border_title = plain(text)
        await pilot.pause()
        assert not CONTROL & set(screen_text(app))
        if text == "[/foo]":
            assert "[/foo][/foo]" in screen_text(app)


async def test_this_would_notice_an_escape() -> None:
    """The check above can fail: a raw ESC in a widget does reach the dump."""
    app = GridApp([])
    async with app.run_test(size=(60, 8), notifications=True) as pilot:
        await app.mount(Static("\x1b[31mred", markup=False))
        await pilot.pause()
        assert "\x1b" in screen_text(app)
