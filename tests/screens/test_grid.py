"""The grid in a running app: keys, refreshes, what is repainted, what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.geometry import Region
from textual.pilot import Pilot

from cockpit.models import Health
from screens import grid_core
from screens.grid import Grid
from tests.screens.grid_app import COLUMNS, GridApp, Row, node_rows
from tests.screens.helpers import screen_lines, screen_text

SIZE = (80, 14)


def order(app: GridApp) -> tuple[str | None, bool]:
    """The order now; a call, so that the type checker does not remember it."""
    return app.grid.sort


async def settled(app: GridApp, pilot: Pilot[None]) -> None:
    """Wait until no thread works on the rows."""
    while app.grid.busy:
        await pilot.pause(0.01)


def marked(app: GridApp) -> tuple[str, ...]:
    """The marks now."""
    return app.grid.marked_keys


def shown(app: GridApp) -> list[str]:
    """The first word of every row on screen, without gutter."""
    return [line[3:].split()[0] for line in screen_lines(app)[2:] if line[3:].split()]


async def test_columns_header_and_title() -> None:
    app = GridApp([Row("n1", "idle", 1.5), Row("n2", "down", None, "fan", Health.CRITICAL)])
    async with app.run_test(size=(60, 5), notifications=True):
        lines = screen_lines(app)
    assert lines[0] == "─ nodes 2 ─────────────────────────────────── +1 column: w ─"
    assert lines[1] == "   node  state   load note"
    assert lines[2] == "   n1    idle     1.5"
    assert lines[3] == " ✖ n2    down       – fan"


async def test_ascii_signs() -> None:
    app = GridApp([Row("n2", health=Health.WARN), *node_rows(20)], ascii_only=True)
    async with app.run_test(size=(60, 6), notifications=True) as pilot:
        await pilot.press("greater_than_sign", "space")
        assert screen_text(app).replace("–", "").isascii()


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("j j k", "n001"),
        ("G", "n049"),
        ("G g", "n000"),
        ("end home", "n000"),
        ("ctrl+d", "n006"),
        ("ctrl+d ctrl+u", "n000"),
        ("pagedown", "n011"),
        ("pagedown pagedown pageup", "n011"),
        ("k", "n000"),
    ],
)
async def test_moving(keys: str, key: str) -> None:
    app = GridApp(node_rows(50))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press(*keys.split())
        assert app.grid.cursor_key == key
        assert key in shown(app)


async def test_cursor_and_its_line_survive_a_refresh() -> None:
    rows = node_rows(50)
    app = GridApp(rows)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("pagedown", "pagedown", "k", "k")
        line = shown(app).index("n020")
        app.grid.show([Row("a"), Row("b"), *reversed(rows[:5]), *rows[7:]])
        await pilot.pause()
        assert app.grid.cursor_key == "n020"
        assert shown(app).index("n020") == line
        app.grid.show([row for row in rows if row.name != "n020"])
        await pilot.pause()
        assert app.grid.cursor_key == "n021"
        assert shown(app).index("n021") == line


async def test_sort_keys_keep_the_cursor_row() -> None:
    rows = node_rows(9)
    app = GridApp(rows)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("j", "less_than_sign")
        assert order(app) == ("load", True)
        assert app.grid.cursor_key == "n001"
        assert shown(app)[0] == "n008"
        assert "sort load ↓" in screen_lines(app)[0]
        assert "load↓" in screen_lines(app)[1]
        await pilot.press("I")
        assert order(app) == ("load", False)
        await pilot.press("greater_than_sign")
        assert order(app) == (None, False)
        assert [row.name for row in app.grid.visible_rows] == [row.name for row in rows]


async def test_whoever_never_moved_sees_the_first_of_the_new_order() -> None:
    app = GridApp(node_rows(50))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("less_than_sign")
        assert app.grid.cursor_key == "n049"
        assert shown(app)[0] == "n049"


async def test_marks() -> None:
    app = GridApp(node_rows(9))
    async with app.run_test(size=SIZE, notifications=True, message_hook=app.messages.append) as pilot:
        assert marked(app) == ()
        assert app.grid.target_keys == ("n000",)
        await pilot.press("space", "j", "space")
        assert marked(app) == ("n000", "n002")
        assert app.grid.cursor_key == "n003"
        assert "nodes 9 · 2 marked" in screen_lines(app)[0]
        assert [line[0] for line in screen_lines(app)[2:6]] == ["▌", " ", "▌", " "]
        await pilot.press("v", "j", "j")
        assert "range of 3" in screen_lines(app)[0]
        await pilot.press("v")
        assert marked(app) == ("n000", "n002", "n003", "n004", "n005")
        app.grid.show(node_rows(4))
        await pilot.pause()
        assert "3 marked (2 gone)" in screen_lines(app)[0]
        await pilot.press("U")
        assert marked(app) == ()
        await pilot.press("asterisk")
        assert len(app.grid.marked_keys) == 4
        assert app.heard(Grid.MarksChanged)


async def test_escape_leaves_the_range_then_the_filter_then_problems_only() -> None:
    rows = [*node_rows(3), Row("n9", health=Health.WARN)]
    app = GridApp(rows)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("exclamation_mark", "v")
        app.grid.set_filter("n")
        await pilot.press("escape")
        assert app.grid.state.anchor is None
        assert app.grid.filter_text == "n"
        await pilot.press("escape")
        assert (app.grid.filter_text, app.grid.problems_only) == ("", True)
        assert shown(app) == ["n9"]
        await pilot.press("escape")
        assert len(app.grid.visible_rows) == 4
        assert not app.grid.go_back()


async def test_mark_all_marks_only_what_the_filter_shows() -> None:
    app = GridApp([*node_rows(3), Row("x1"), Row("x2")])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        app.grid.set_filter("node:x")
        await pilot.press("asterisk", "escape")
        assert marked(app) == ("x1", "x2")


async def test_the_three_ways_of_having_no_rows_read_differently() -> None:
    app = GridApp(None)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        assert screen_lines(app)[2].strip() == "not read yet"
        app.grid.set_waiting("cannot reach head: no route")
        await pilot.pause()
        assert screen_lines(app)[2].strip() == "cannot reach head: no route"
        assert app.grid.target_keys == ()
        await pilot.press("j", "space", "v", "asterisk", "G", "y", "enter", "I")
        app.grid.show([])
        await pilot.pause()
        assert screen_lines(app)[2].strip() == "no nodes"
        app.grid.show(node_rows(12))
        app.grid.set_filter("gpu")
        await pilot.pause()
        assert screen_lines(app)[2].strip() == 'the filter "gpu" hides all 12: esc clears the filter'
        assert 'filter "gpu" 0/12' in screen_lines(app)[0]
        await pilot.press("escape", "exclamation_mark")
        assert screen_lines(app)[2].strip() == "none of 12 deviates: ! shows all"


async def test_stale_rows_tell_their_age_and_lose_their_colours() -> None:
    app = GridApp([Row("n1"), Row("n2", "down", health=Health.CRITICAL)])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        fresh = {segment.style for segment in app.grid.render_line(3)}
        app.grid.show(app.rows or [], stale="stale 34s")
        await pilot.pause()
        assert "○ stale 34s" in screen_lines(app)[0]
        stale = {segment.style.color for segment in app.grid.render_line(3) if segment.style and segment.text.strip()}
        assert len(fresh) > len(stale) == 1


async def test_a_refresh_repaints_only_lines_that_look_different() -> None:
    rows = node_rows(50)
    app = GridApp(rows)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.pause()
        app.grid.repainted.clear()
        app.grid.show([replace(row) for row in rows])
        assert app.grid.repainted == []
        rows[3] = replace(rows[3], state="down")
        rows[40] = replace(rows[40], state="down")
        app.grid.show(rows)
        (region,) = app.grid.repainted
        assert isinstance(region, Region)
        assert (region.y, region.height) == (5, 1)
        # The end of the line is the same and is not sent again.
        assert region.right < 20
        await pilot.pause()
        assert "n003  down" in screen_lines(app)[5]


async def test_a_cursor_step_repaints_two_lines() -> None:
    app = GridApp(node_rows(50))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.pause()
        app.grid.repainted.clear()
        await pilot.press("j")
        assert sorted(region.y for region in app.grid.repainted if region) == [2, 3]


async def test_rows_that_depend_on_the_clock_are_drawn_anew() -> None:
    now = [5]
    live = replace(COLUMNS[2], cell=lambda r: f"{now[0]}", live=True)
    app = GridApp(node_rows(3), columns=[COLUMNS[0], live])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        now[0] = 6
        app.grid.tick()
        await pilot.pause()
        assert screen_lines(app)[2].split() == ["n000", "6"]
        now[0] = 7
        app.grid.show(app.rows or [])
        await pilot.pause()
        assert screen_lines(app)[2].split() == ["n000", "7"]


async def test_columns_do_not_jitter_but_grow_when_text_would_be_cut() -> None:
    app = GridApp([Row("n1", "mixed"), Row("n2", "idle")])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        before = screen_lines(app)[1]
        app.grid.show([Row("n1", "a"), Row("n2", "b")])
        await pilot.pause()
        assert screen_lines(app)[1] == before
        app.grid.show([Row("n1", "allocated"), Row("n2", "unimaginable")])
        await pilot.pause()
        assert "allocated" in screen_lines(app)[2]
        assert "unimaginable" in screen_lines(app)[3]


async def test_narrow_drops_wide_shows_all_and_scrolls_with_the_first_column_frozen() -> None:
    app = GridApp([Row("node-1", "idle", 1.0, "a note of some length")])
    async with app.run_test(size=(26, 5), notifications=True) as pilot:
        assert screen_lines(app)[1].split() == ["node", "state", "load"]
        await pilot.press("w")
        assert screen_lines(app)[1].endswith("›")
        await pilot.press("l", "l")
        assert screen_lines(app)[1].split("‹")[0].strip() == "node"
        assert screen_lines(app)[2].strip().startswith("node-1")
        assert "state" not in screen_lines(app)[1]
        await pilot.press("l", "l", "l", "right")
        assert screen_lines(app)[1].split() == ["node", "‹extra"]
        assert screen_lines(app)[2].split() == ["node-1", "xnode-1"]
        await pilot.press("h", "h", "h", "h", "left")
        assert "‹" not in screen_lines(app)[1]
        await pilot.press("w")
        assert screen_lines(app)[1].split() == ["node", "state", "load"]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (20, 5), (1, 1), (3, 2)])
async def test_sizes(size: tuple[int, int]) -> None:
    app = GridApp([replace(row, note="x" * 50) for row in node_rows(100)])
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.press("G", "w", "l", "space", "k", "slash", "escape")
        lines = screen_lines(app)
        assert len(lines) <= size[1]
        if size[1] > 3:
            assert app.grid.cursor_key == "n098"
            assert any("n098" in line for line in lines)


async def test_resize_keeps_the_cursor_in_sight() -> None:
    app = GridApp(node_rows(100))
    async with app.run_test(size=(80, 30), notifications=True) as pilot:
        await pilot.press("pagedown", "pagedown")
        key = app.grid.cursor_key
        await pilot.resize_terminal(40, 6)
        await pilot.pause()
        assert app.grid.cursor_key == key
        assert key in shown(app)
        await pilot.resize_terminal(160, 50)
        await pilot.pause()
        assert key in shown(app)
        assert len(shown(app)) == 48


async def test_messages() -> None:
    app = GridApp(node_rows(5))
    async with app.run_test(size=SIZE, notifications=True, message_hook=app.messages.append) as pilot:
        await pilot.press("j", "enter", "d", "y", "x", "z", "space", "y")
        assert [message.key for message in app.heard(Grid.Opened)] == ["n001", "n001"]
        assert [message.keys for message in app.heard(Grid.CopyRequested)] == [("n001",), ("n001",)]
        assert app.heard(Grid.ExportRequested)
        assert app.heard(Grid.ZoomRequested)
        assert app.heard(Grid.CursorMoved)[-1].key == "n002"
        app.grid.show([])
        await pilot.pause()
        assert app.heard(Grid.CursorMoved)[-1].key is None
        assert app.heard(Grid.CursorMoved)[-1].control is app.grid


async def test_many_rows_are_sorted_on_a_thread_and_the_newest_request_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grid_core, "SMALL", 10)
    app = GridApp(node_rows(3))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        app.grid.show(node_rows(200))
        assert app.grid.busy
        app.grid.show(node_rows(300))
        app.grid.set_sort("load", True)
        app.grid.set_filter("!n299")
        await settled(app, pilot)
        assert app.grid.rows_total == 300
        assert app.grid.visible_rows[0].name == "n298"
        app.grid.show(node_rows(400))
        app.grid.show(node_rows(2))
        await settled(app, pilot)
        assert len(app.grid.visible_rows) == 2


async def test_columns_with_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match="same id"):
        GridApp(columns=[COLUMNS[0], COLUMNS[0]])


async def test_an_error_on_the_thread_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_core, "SMALL", 10)

    def broken(row: Row) -> float:
        raise ZeroDivisionError(row.name)

    app = GridApp(columns=[COLUMNS[0], replace(COLUMNS[2], sort=broken)])

    async def sort_twenty_rows() -> None:
        async with app.run_test(size=SIZE, notifications=True) as pilot:
            app.grid.set_sort("load")
            app.grid.show(node_rows(20))
            await settled(app, pilot)

    with pytest.raises(ZeroDivisionError):
        await sort_twenty_rows()
