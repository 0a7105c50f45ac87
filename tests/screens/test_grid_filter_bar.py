"""The line in which a filter is typed."""

from __future__ import annotations

import pytest

from screens import filter_bar
from screens.filter_bar import FilterBar, FilterInput
from tests.screens.grid_app import GridApp, Row, node_rows
from tests.screens.helpers import screen_lines, screen_text

SIZE = (80, 12)
ROWS = [*node_rows(5), Row("x1", "down"), Row("x2", "down")]


async def test_filters_while_typing_and_enter_keeps_it() -> None:
    app = GridApp(ROWS)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("slash", *"down")
        await pilot.pause(0.2)
        assert [row.name for row in app.grid.visible_rows] == ["x1", "x2"]
        assert 'filter "down" 2/7' in screen_lines(app)[0]
        await pilot.press("space", *"x2", "enter")
        assert app.grid.filter_text == "down x2"
        assert app.grid.has_focus
        assert not app.query_one(FilterBar).display


async def test_the_last_filter_can_be_edited_and_escape_clears_it() -> None:
    app = GridApp(ROWS)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        app.grid.set_filter("dow")
        await pilot.press("slash")
        assert app.query_one(FilterInput).value == "dow"
        await pilot.press("n", "enter")
        assert app.grid.filter_text == "down"
        await pilot.press("slash", "escape")
        assert app.grid.filter_text == ""
        assert app.grid.has_focus


async def test_letters_are_typed_and_do_nothing_else() -> None:
    app = GridApp(ROWS)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("slash", *"jkvUGI", "exclamation_mark", "asterisk")
        assert app.query_one(FilterInput).value == "jkvUGI!*"
        assert app.grid.marked_keys == ()
        assert not app.grid.problems_only


async def test_unknown_field_is_told_and_the_filter_before_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_bar, "DEBOUNCE_S", 60.0)  # on a busy machine half a word would be a filter of its own
    app = GridApp(ROWS)
    async with app.run_test(size=(100, 12), notifications=True) as pilot:
        app.grid.set_filter("down")
        await pilot.press("slash", "ctrl+u", *"stat:idle", "enter")
        assert 'no field "stat"; fields: node, state, note' in screen_text(app)
        assert app.query_one(FilterBar).is_open
        assert app.grid.filter_text == "down"
        await pilot.press("ctrl+u", *"state:idle", "enter")
        assert len(app.grid.visible_rows) == 5
        assert not app.query_one(FilterBar).is_open


async def test_empty_line_tells_the_language() -> None:
    app = GridApp(ROWS)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("slash")
        assert "words · field:value · !not · fields: node, state, note" in screen_text(app)


async def test_a_click_into_the_table_keeps_the_filter() -> None:
    app = GridApp(ROWS)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("slash", *"x2")
        await pilot.click(app.grid, offset=(5, 2))
        assert app.grid.filter_text == "x2"
        assert not app.query_one(FilterBar).is_open


async def test_pasted_lines_become_one() -> None:
    from textual.events import Paste

    app = GridApp(ROWS)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("slash")
        app.query_one(FilterInput).post_message(Paste("down\nx1\x1b[A\n"))
        await pilot.pause(0.2)
        assert app.query_one(FilterInput).value == "down x1␛[A"
