"""The grid and the mouse: it works, and is never needed."""

from __future__ import annotations

from textual.events import MouseScrollDown

from screens.grid import Grid
from tests.screens.grid_app import GridApp, node_rows
from tests.screens.test_grid import SIZE, order, shown


async def test_mouse_selects_then_opens_and_sorts_by_titles() -> None:
    app = GridApp(node_rows(50))
    async with app.run_test(size=SIZE, notifications=True, message_hook=app.messages.append) as pilot:
        await pilot.click(app.grid, offset=(5, 4))
        assert app.grid.cursor_key == "n002"
        assert not app.heard(Grid.Opened)
        await pilot.click(app.grid, offset=(5, 4))
        assert [message.key for message in app.heard(Grid.Opened)] == ["n002"]
        await pilot.click(app.grid, offset=(5, 1))
        await pilot.click(app.grid, offset=(5, 1))
        assert order(app) == ("name", True)
        assert app.grid.cursor_key == "n002"


async def test_a_click_on_a_row_that_slid_under_the_mouse_does_not_open_it() -> None:
    rows = node_rows(5)
    app = GridApp(rows)
    async with app.run_test(size=SIZE, notifications=True, message_hook=app.messages.append) as pilot:
        await pilot.click(app.grid, offset=(5, 4))
        app.grid.show(rows[1:])
        await pilot.click(app.grid, offset=(5, 4))
        assert app.grid.cursor_key == "n003"
        assert not app.heard(Grid.Opened)


async def test_wheel_scrolls_and_the_cursor_stays_on_screen() -> None:
    app = GridApp(node_rows(50))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot._post_mouse_events([MouseScrollDown], app.grid)
        assert shown(app)[0] == "n003"
        assert app.grid.cursor_key == "n003"


async def test_dragging_the_scroll_bar() -> None:
    app = GridApp(node_rows(50))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.mouse_down(app.grid, offset=(79, 13))
        await pilot.pause()
        assert shown(app)[-1] == "n049"
        await pilot.hover(app.grid, offset=(79, 2))
        assert shown(app)[0] == "n000"
        await pilot.mouse_up(app.grid, offset=(79, 2))
