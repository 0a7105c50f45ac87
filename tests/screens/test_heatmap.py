"""The heatmap in a running app: what stands where, keys, refreshes, what is sent, and its pure parts."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from textual.events import MouseScrollDown
from textual.geometry import Region

import themes
from cockpit.models import Health
from screens.heatmap import HeatCell, Heatmap, HeatRow
from tests.bench.terminal import Terminal
from tests.screens.heat_app import HeatApp, cell, fleet_rows, heat_rows, random_rows, with_cell
from tests.screens.helpers import screen_lines, screen_text
from tests.screens.test_grid_hostile import CONTROL, HOSTILE

SIZE = (80, 24)
LOST = HeatCell(None, "lost", Health.CRITICAL)


def place(app: HeatApp) -> tuple[str | None, int]:
    """The cursor now; a call, so that the type checker does not remember it."""
    return app.heat.cursor_key, app.heat.cursor_column


def style_at(app: HeatApp, x: int, y: int) -> tuple[str, str | None]:
    """The sign at that place and the name of its colour."""
    for segment in app.heat.render_line(y):
        if x < len(segment.text):
            colour = segment.style.color if segment.style else None
            return segment.text[x], colour.name if colour else None
        x -= len(segment.text)
    raise AssertionError("beside the line")


async def test_title_cells_and_description() -> None:
    rows = with_cell(heat_rows(3, 0.98), 1, 5, cell(0.1, group="job 48219 maria"))
    rows = with_cell(rows, 2, 0, replace(cell(0.5), health=Health.WARN))
    app = HeatApp([*rows, HeatRow("x", "gpu-st-p5-9", (), note="no driver")])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("j", "l", "l", "l", "l", "l")
        lines = screen_lines(app)
    assert lines[0] == "─ GPUs 4 · 24 GPUs · ▲ 1 " + "─" * 29 + " util 0 % ▁▂▃▄▅▆▇█ 100 % ─"
    assert lines[1] == "             0 1 2 3 4 5 6 7"
    assert lines[2] == " gpu-st-p5-1 █ █ █ █ █ █ █ █"
    assert lines[3] == " gpu-st-p5-2 █ █ █ █ █ ▁ █ █"
    assert lines[4] == " gpu-st-p5-3 ▲ █ █ █ █ █ █ █"
    assert lines[5] == " gpu-st-p5-9 no driver"
    assert lines[-1] == " gpu-st-p5-2 GPU 5 · 10% · job 48219 maria"


async def test_a_lost_gpu_keeps_its_cell_and_a_missing_value_is_a_dot() -> None:
    rows = with_cell(with_cell(heat_rows(2), 0, 3, LOST), 1, 4, HeatCell(None, ""))
    app = HeatApp(rows)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("l", "l", "l")
        lines = screen_lines(app)
        assert "▅ ▅ ▅ ✖ ▅ ▅ ▅ ▅" in lines[2]
        assert "▅ ▅ ▅ ▅ · ▅ ▅ ▅" in lines[3]
        assert "· ✖ 1 · 1 no value" in lines[0]
        assert lines[-1] == " gpu-st-p5-1 GPU 3 · ✖ crit · lost"
        await pilot.press("h")
        assert style_at(app, 13 + 6, 2) == ("✖", "#ff5f00")
        assert style_at(app, 13 + 8, 3) == ("·", themes.token_styles(app)["dim"].color.name)  # type: ignore[union-attr]
        await pilot.press("j", "l", "l")
        assert "no value" in screen_lines(app)[-1]


async def test_a_row_that_was_never_read_is_not_called_stale() -> None:
    never = HeatRow("k2", "gpu-st-p5-2", (HeatCell(None, "not read"),) * 8, stale=True, unread=True)
    app = HeatApp([*heat_rows(1), never])
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        assert "1 row not read" in screen_lines(app)[0]
        await pilot.press("j")
        assert screen_lines(app)[-1].endswith("GPU 0 · not read")
        assert "stale" not in screen_text(app)
        assert screen_lines(app)[3].startswith("○gpu-st-p5-2")


async def test_a_stale_row_is_grey_and_says_so() -> None:
    rows = [*heat_rows(1), replace(with_cell(heat_rows(2), 1, 0, LOST)[1], stale=True)]
    app = HeatApp(rows)
    grey = themes.token_styles("cockpit-dark")["stale"].color
    assert grey is not None
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        assert screen_lines(app)[3].startswith("○gpu-st-p5-2 ✖ ▅")
        assert "1 row stale" in screen_lines(app)[0]
        assert {style_at(app, x, 3)[1] for x in (1, 13, 15)} == {grey.name}
        assert style_at(app, 15, 2)[1] != grey.name
        await pilot.press("j")
        assert screen_lines(app)[-1].endswith("stale")
        app.heat.set_stale("stale 34s")
        await pilot.pause()
        assert "○ stale 34s" in screen_lines(app)[0]
        assert style_at(app, 15, 2)[1] == grey.name


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("j l l", ("k2", 2)),
        ("j j k", ("k2", 0)),
        ("G", ("k300", 0)),
        ("G g", ("k1", 0)),
        ("h k", ("k1", 0)),
        ("pagedown pageup", ("k1", 0)),
        ("ctrl+d ctrl+u", ("k1", 0)),
    ],
)
async def test_moving_in_one_column(keys: str, wanted: tuple[str, int]) -> None:
    app = HeatApp(heat_rows(300))
    async with app.run_test(size=(30, 12), notifications=True) as pilot:
        await pilot.press(*keys.split())
        assert place(app) == wanted
        assert f"gpu-st-p5-{wanted[0][1:]} "[-4:] in screen_text(app)


async def test_moving_where_rows_stand_side_by_side() -> None:
    app = HeatApp(heat_rows(64))
    async with app.run_test(size=(160, 30), notifications=True) as pilot:
        per_line = app.heat.layout_now.per_line
        assert per_line == 3
        await pilot.press("j")
        assert place(app) == ("k4", 0)
        await pilot.press(*["l"] * 8)
        assert place(app) == ("k5", 0)
        await pilot.press("h")
        assert place(app) == ("k4", 7)
        await pilot.press("k", *["l"] * 30)
        assert place(app) == ("k3", 7)  # the end of the line
        await pilot.press("G", "h")
        assert place(app) == ("k64", 6)


async def test_all_of_64_and_256_nodes_are_seen_at_160x48() -> None:
    for count, width in ((64, 2), (256, 1)):
        app = HeatApp(heat_rows(count))
        async with app.run_test(size=(160, 48), notifications=True):
            text = screen_text(app)
            assert app.heat.layout_now.cell == width
            assert all(f"gpu-st-p5-{i} " in text for i in range(1, count + 1))
            assert text.replace("util 0 % ▁▂▃▄▅▆▇█", "").count("▅") == count * 8


async def test_cursor_survives_refreshes_by_key() -> None:
    rows = heat_rows(64)
    app = HeatApp(rows)
    async with app.run_test(size=(30, 14), notifications=True, message_hook=app.messages.append) as pilot:
        await pilot.press(*["j"] * 20, "l", "l")
        assert place(app) == ("k21", 2)
        line = next(number for number, text in enumerate(screen_lines(app)) if "p5-21 " in text)
        app.heat.show([HeatRow("new", "gpu-st-p5-0", ()), *rows[3:]], "util")
        await pilot.pause()
        assert place(app) == ("k21", 2)
        assert "p5-21 " in screen_lines(app)[line]
        app.heat.show([row for row in rows if row.key not in ("k21", "k22")], "util")
        assert place(app) == ("k23", 2)
        app.heat.show(rows[:9], "util")
        assert place(app) == ("k9", 2)
        app.heat.show([], "util")
        await pilot.pause()
        assert place(app) == (None, 0)
        assert "no GPUs" in screen_text(app)
        await pilot.press("enter", "j", "l", "G", "pagedown")
        moved = app.heard(Heatmap.CursorMoved)
    assert moved[-1].row_key is None
    assert not app.heard(Heatmap.Opened)


async def test_column_stays_when_a_shorter_row_is_passed() -> None:
    rows = [*heat_rows(1), HeatRow("short", "gpu-st-g5-1", (cell(0.5),)), *heat_rows(3)[2:]]
    app = HeatApp(rows)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("l", "l", "l", "j")
        assert place(app) == ("short", 0)
        await pilot.press("j")
        assert place(app) == ("k3", 3)


async def test_messages_and_mouse() -> None:
    app = HeatApp(heat_rows(20))
    async with app.run_test(size=SIZE, notifications=True, message_hook=app.messages.append) as pilot:
        await pilot.press("l", "enter", "d")
        x = app.heat.layout_now.cells_at(0)
        await pilot.click(Heatmap, offset=(x + 2 * 5, 4))
        assert place(app) == ("k3", 5)
        await pilot.pause()
        opened = [(event.row_key, event.column) for event in app.heard(Heatmap.Opened)]
        assert opened == [("k1", 1), ("k1", 1)]
        await pilot.click(Heatmap, offset=(x + 2 * 5 + 1, 4))
        await pilot.pause()
        opened = [(event.row_key, event.column) for event in app.heard(Heatmap.Opened)]
        assert opened[2:] == [("k3", 5)]
        moved = [(event.row_key, event.column) for event in app.heard(Heatmap.CursorMoved)]
        assert moved[-1] == ("k3", 5)
        # Beside the cells and in the title a click does nothing.
        await pilot.click(Heatmap, offset=(79, 4))
        await pilot.click(Heatmap, offset=(x, 0))
        assert place(app) == ("k3", 5)


async def test_the_wheel_takes_the_cursor_along_only_at_the_edge() -> None:
    app = HeatApp(heat_rows(300))
    async with app.run_test(size=(30, 12), notifications=True) as pilot:
        await pilot.press("j", "j", "j", "j")
        wheel = MouseScrollDown(app.heat, 5, 5, 0, 1, 0, False, False, False)
        app.heat.on_mouse_scroll_down(wheel)
        assert place(app)[0] == "k5"
        app.heat.on_mouse_scroll_down(wheel)
        assert place(app)[0] == "k7"


async def test_only_changed_lines_are_sent() -> None:
    rows = heat_rows(12)
    app = HeatApp(rows)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        app.heat.repainted.clear()
        app.heat.show([replace(row) for row in rows], "util")
        await pilot.pause()
        assert app.heat.repainted == []
        app.heat.show(with_cell(rows, 3, 2, cell(1.0)), "util")
        # The cells of that row and nothing beside them.
        assert app.heat.repainted == [Region(0, 2 + 3, 14 + 2 * 8 - 1, 1)]
        app.heat.repainted.clear()
        await pilot.press("j")
        assert {region.y for region in app.heat.repainted if region} == {2, 3, 23}


async def test_equal_neighbours_are_one_segment() -> None:
    rows = [
        HeatRow(f"k{i}", f"n{i}", tuple(cell(0.5, group="a" if g < 4 else "b") for g in range(8))) for i in range(2)
    ]
    app = HeatApp(rows)
    async with app.run_test(size=SIZE, notifications=True):
        values = list(app.heat.render_line(3))
        app.heat.set_colour_by("group")
        groups = list(app.heat.render_line(3))
    assert [segment.text for segment in values][1] == "▅ ▅ ▅ ▅ ▅ ▅ ▅ ▅ "
    assert [segment.text for segment in groups][1:3] == ["▅A▅ ▅ ▅ ", "▅B▅ ▅ ▅ "]


async def test_groups_keep_colour_and_letter() -> None:
    rows = [HeatRow(f"k{i}", f"n{i}", (cell(0.9, group=f"job {i}"),)) for i in range(9)]
    app = HeatApp([*rows, HeatRow("idle", "n10", (cell(0.0),)), HeatRow("bad", "n11", (LOST,))], colour_by="group")
    async with app.run_test(size=(160, 24), notifications=True) as pilot:
        before = [style_at(app, 5, 2 + line) for line in range(1, 9)]
        assert len({colour for _, colour in before[:5]}) == 5
        assert style_at(app, 6, 3)[0] == "B"
        assert before[0][1] == before[6][1]  # the colours start again
        assert style_at(app, 5, 12) == ("✖", "#ff5f00")
        assert "A job 0 · B job 1" in screen_lines(app)[0]
        app.heat.show(rows[1:], "util")
        await pilot.press("G")
        assert [style_at(app, 4, 2 + line) for line in range(7)] == before[:7]


@pytest.mark.parametrize("colour_by", ["value", "group"])
async def test_ascii(colour_by: str) -> None:
    rows = [with_cell(row, 0, 1, LOST)[0] for row in ([row] for row in fleet_rows(30))]
    app = HeatApp(rows, ascii_only=True, colour_by="group" if colour_by == "group" else "value")
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("G", "l")
        assert screen_text(app).isascii()
        assert "x crit" in screen_lines(app)[-1]


def test_signs_of_ramp_states_and_missing_value_are_all_different() -> None:
    for signs in (themes.UNICODE, themes.ASCII):
        others = [sign for health, sign in signs.states.items() if health is not Health.OK]
        assert len({*signs.ramp, *others, signs.dot}) == 8 + 4 + 1


async def test_no_color_sends_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = HeatApp(random_rows(8), theme="cockpit-ansi")
    async with app.run_test(size=SIZE, notifications=True):
        styles = [s.style for strip in app.screen._compositor.render_strips() for s in strip if s.style]
        assert all(s.color is None or s.color.is_default for s in styles)
        assert len(set("▁▂▃▄▅▆▇█") & set("".join(screen_lines(app)[2:-1]))) == 8


@pytest.mark.parametrize("size", [(80, 24), (160, 48), (20, 5), (9, 3), (3, 1)])
async def test_hostile_words_everywhere(size: tuple[int, int]) -> None:
    rows = [
        HeatRow(f"{i}{text}", text + str(i), (HeatCell(0.4, text, group=text), cell(0.2)), note=text)
        for i, text in enumerate(HOSTILE)
    ]
    app = HeatApp(rows, title=HOSTILE[5], colour_by="group")
    async with app.run_test(size=size, notifications=True) as pilot:
        for text in HOSTILE:
            app.heat.show(rows, text, stale=text, low=text, high=text)
            await pilot.press("j", "enter")
            assert not CONTROL & set(screen_text(app))
            assert {app.heat.render_line(y).cell_length for y in range(size[1])} == {size[0]}
        app.heat.set_colour_by("value")
        await pilot.press("g")
        assert app.is_running


async def test_small_screens_keep_what_matters() -> None:
    app = HeatApp(with_cell(heat_rows(64), 0, 7, LOST))
    async with app.run_test(size=(20, 5), notifications=True) as pilot:
        lines = screen_lines(app)
        assert lines[1].startswith(" gpu…p5-1 ")
        assert lines[1].endswith("▅▅▅▅▅▅▅✖┃")
        assert "50%" in lines[-1]
        await pilot.resize_terminal(12, 5)
        await pilot.press(*["l"] * 7)
        # The cells follow the cursor where the row is wider than the terminal.
        assert "✖" in screen_lines(app)[1]
        await pilot.resize_terminal(160, 48)
        await pilot.pause()
        assert place(app) == ("k1", 7)
        assert "gpu-st-p5-64" in screen_text(app)


async def test_not_read_yet_and_a_switch_of_theme() -> None:
    app = HeatApp(None)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        app.heat.set_waiting("reading from head …")
        await pilot.pause()
        assert "reading from head …" in screen_text(app)
        app.heat.show(heat_rows(2), "util")
        await pilot.pause()
        before = style_at(app, 15, 3)
        app.register_theme(themes.theme("cockpit-light"))
        app.theme = "cockpit-light"
        await pilot.pause()
        await pilot.pause()
        assert style_at(app, 15, 3)[0] == before[0] == "▅"
        assert style_at(app, 15, 3)[1] != before[1]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    program = Terminal([sys.executable, "-m", "tests.screens.heat_app", "64"], colours="256")
    yield program
    program.close()


def _sent(terminal: Terminal, key: bytes, until: str) -> int:
    """How many bytes a key costs: up to the text it leads to, and what follows at once."""
    since = len(terminal.chunks)
    terminal.press(key)
    assert terminal.wait(lambda text: until in text, 15, since) is not None
    time.sleep(0.3)
    return sum(len(chunk) for _, chunk in terminal.chunks[since:])


@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid is not installed")
def test_bytes_to_a_real_terminal_at_160x48_with_512_gpus(terminal: Terminal) -> None:
    assert terminal.wait(lambda text: "GPU 0" in text, 15) is not None
    time.sleep(0.5)
    frames = b"".join(chunk for _, chunk in terminal.chunks).split(b"\x1b[?2026h")[1:]
    assert 5_000 < max(map(len, frames)) < 15_000
    assert _sent(terminal, b"l", "GPU 1") < 1000
    assert _sent(terminal, b"c", "CHANGED") < 1000
    assert _sent(terminal, b"h", "GPU 0") < 1000
    assert _sent(terminal, b"n", "NEW") < 15_000
