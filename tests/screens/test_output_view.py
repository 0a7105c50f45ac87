"""A job's output in a running app: following, loading more, the first error, two streams, hostile text."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.remote_file import PIECE
from screens.text_messages import CopyText, PagerWanted
from tests.screens.golden import assert_golden
from tests.screens.helpers import screen_lines, screen_text
from tests.screens.output_app import OutputApp, until
from tests.screens.test_app import SIZES
from tests.screens.test_grid_hostile import CONTROL, HOSTILE

SIZE = (100, 12)
WATCHDOG = (
    b"[rank3]:[E810 03:04:10.94 ProcessGroupNCCL.cpp:683] [Rank 3] Watchdog caught collective operation timeout: "
    b"WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600057 milliseconds\n"
)


@pytest.fixture(name="out")
def _out(tmp_path: Path) -> Path:
    path = tmp_path / "slurm-42.out"
    path.write_bytes(numbered(0, 40))
    return path


def numbered(first: int, last: int) -> bytes:
    return b"".join(b"step %06d loss 1.23\n" % number for number in range(first, last))


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_output(out: Path, size: tuple[int, int]) -> None:
    """All but the title, which tells the time since it grew and the test's own folder."""
    bar = b"\r 10%|#         |\r100%|##########| 500/500 [00:09<00:00, 51.2it/s]\n"
    add(
        out,
        bar + WATCHDOG + "训练 loss \x1b[31mnan\x1b[0m\n".encode() + b"\xff\xfe binary \x00\n" + b"saving checkpoint",
    )
    app = OutputApp(out)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: "saving checkpoint" in screen_text(app))
        assert_golden(f"output-{size[0]}x{size[1]}", "\n".join(screen_lines(app)[1:]))


def last_row(app: OutputApp) -> str:
    return screen_lines(app)[-1].rstrip(" ┃")


async def test_it_begins_at_the_end_and_follows(out: Path) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))
        title = screen_lines(app)[0]
        for words in ("output › 42", "following", "grew ", "s ago", "880B", f"local:{out}"[-30:]):
            assert words in title
        add(out, numbered(40, 43) + b"half a li")
        await until(pilot, lambda: last_row(app).endswith("half a li"))
        add(out, b"ne\n")
        await until(pilot, lambda: last_row(app).endswith("half a line"))


async def test_scrolling_up_stays_there_and_the_end_follows_again(out: Path) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))
        await pilot.press("k", "k")
        first = screen_lines(app)[1]
        await until(pilot, lambda: "G follows" in screen_lines(app)[0])
        add(out, numbered(40, 50))
        await until(pilot, lambda: "1K" in screen_lines(app)[0])
        assert screen_lines(app)[1].split()[:2] == first.split()[:2]
        await pilot.press("G")
        await until(pilot, lambda: "following" in screen_lines(app)[0] and "step 000049" in last_row(app))


async def test_coming_to_the_end_follows_again(out: Path) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))
        await pilot.press("pageup")
        await until(pilot, lambda: "G follows" in screen_lines(app)[0])
        await pilot.press("pagedown")
        await until(pilot, lambda: "following" in screen_lines(app)[0])


async def test_more_is_loaded_at_the_top_and_at_the_bottom(out: Path) -> None:
    count = 4 * PIECE // 21
    out.write_bytes(numbered(0, count))
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: f"step {count - 1:06d}" in screen_text(app))
        held = len(app.view.state.lines)
        for _ in range(held):
            app.view.action_cursor_up()
        top = next(line.split()[1] for line in screen_lines(app)[1:] if "step" in line)
        await until(pilot, lambda: len(app.view.state.lines) > held)
        assert top in screen_text(app)  # what is read has not moved away
        assert "before this are not loaded" not in screen_text(app)
        await pilot.press("g")
        await until(pilot, lambda: "step 000000" in screen_lines(app)[1])
        app.view.point_at(len(app.view.state.lines) - 1)
        await until(pilot, lambda: "behind this are not loaded" in screen_text(app))
        held = len(app.view.state.lines)
        await pilot.press("k", "j")
        await until(pilot, lambda: len(app.view.state.lines) > held)
        await pilot.press("G")
        await until(pilot, lambda: f"step {count - 1:06d}" in screen_text(app))


async def test_the_first_error_and_what_it_means(out: Path) -> None:
    add(out, b"srun: error: node-44: task 3: Exited with exit code 1\n" + WATCHDOG + numbered(40, 90) + WATCHDOG)
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "Watchdog caught" in screen_text(app))
        await pilot.press("f")
        await until(pilot, lambda: "error: a collective operation timed out" in screen_lines(app)[0])
        text = screen_text(app)
        assert "✖ [rank3]" in text
        assert "This rank waited too long for ANOTHER rank" in text
        assert "suspects" in text
        assert "G follows" in screen_lines(app)[0]
        assert app.view.state.cursor == 41
        add(out, numbered(0, 3))
        await pilot.press("f")
        await until(pilot, lambda: app.view.state.cursor == 92)
        await pilot.press("f")
        await until(pilot, lambda: "no known error behind this line" in screen_lines(app)[0])
        await pilot.press("G")
        await until(pilot, lambda: last_row(app).endswith("step 000002 loss 1.23"))


async def test_an_error_far_before_what_is_loaded_is_found(out: Path) -> None:
    add(out, WATCHDOG + numbered(40, 2 * PIECE // 10))
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: app.view.state.count > 1000)
        await pilot.press("f")
        await until(pilot, lambda: "Watchdog caught" in screen_text(app))
        await until(pilot, lambda: "ANOTHER rank" in screen_text(app))


async def test_no_error_is_said(out: Path) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))
        await pilot.press("f")
        await until(pilot, lambda: "no known error in all 880B" in screen_lines(app)[0])


async def test_the_other_stream(out: Path, tmp_path: Path) -> None:
    err = tmp_path / "slurm-42.err"
    err.write_bytes(b"warning: on stderr\n")
    app = OutputApp(out, err)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "stdout" in screen_lines(app)[0])
        await pilot.press("o")
        await until(pilot, lambda: "warning: on stderr" in screen_text(app))
        assert "42 stderr" in screen_lines(app)[0]
        await pilot.press("o")
        await until(pilot, lambda: "step 000039" in screen_text(app))


async def test_one_stream_is_said_to_be_all(out: Path) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))
        await pilot.press("o")
        await until(pilot, lambda: "standard error go to this" in screen_text(app))


async def test_why_there_is_nothing(tmp_path: Path) -> None:
    app = OutputApp(tmp_path / "none.out")
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "not there: looked on local" in screen_text(app))
        (tmp_path / "none.out").write_bytes(b"there\n")
        await until(pilot, lambda: "there" in screen_lines(app)[1])


async def test_trouble_is_told_and_what_was_read_stays(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))

        def lost(*_: object, **__: object) -> None:
            raise FaultError(Fault(FaultKind.UNREACHABLE, "here", "the cable is cut", "plug it in"))

        monkeypatch.setattr("cockpit.sources.output_file.read_piece", lost)
        await until(pilot, lambda: "the cable is cut" in screen_lines(app)[0])
        assert "step 000039" in screen_text(app)


async def test_a_file_that_is_written_anew_keeps_what_was_read(out: Path) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))
        out.write_bytes(b"requeued\n")
        await until(pilot, lambda: last_row(app).endswith("requeued"))
        assert "the file was cut and is written anew" in screen_text(app)
        assert "step 000039" in screen_text(app)


async def test_search_goes_on_while_it_grows(out: Path) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))
        await pilot.press("slash", *"00001", "enter")
        assert "/11" in screen_lines(app)[0]
        add(out, b"000010 again\n")
        await until(pilot, lambda: "/12" in screen_lines(app)[0])


async def test_copy_takes_what_is_on_screen_without_signs(out: Path) -> None:
    out.write_bytes(numbered(0, 3) + WATCHDOG)
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000002" in screen_text(app))
        await pilot.press("y", "b")
    copied = next(event for event in app.heard if isinstance(event, CopyText))
    assert copied.text.encode() + b"\n" == out.read_bytes()
    assert app.view.text == copied.text
    assert app.view.current_line == copied.text.splitlines()[0]
    pager = next(event for event in app.heard if isinstance(event, PagerWanted))
    assert (pager.node, pager.path) == ("", str(out))


async def test_hostile_lines(out: Path) -> None:
    lines = [text[:50] for text in HOSTILE]
    out.write_bytes("\n".join(lines).encode("utf-8", "replace") + bytes(range(256)))
    app = OutputApp(out)
    async with app.run_test(size=(60, 40), notifications=True) as pilot:
        await until(pilot, lambda: "[@click" in screen_text(app))
        for keys in ("w", "l", "g", "f", "o", "y", "G"):
            await pilot.press(keys)
            assert not CONTROL & set(screen_text(app))
            assert {app.view.render_line(y).cell_length for y in range(app.view.size.height)} == {60}


async def test_ascii(out: Path) -> None:
    out.write_bytes(numbered(0, 3) + WATCHDOG)
    app = OutputApp(out, ascii_only=True)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000002" in screen_text(app))
        await pilot.press("f")
        await until(pilot, lambda: "suspects" in screen_text(app))
        assert screen_text(app).isascii()


async def test_hiding_and_leaving_end_the_reading(out: Path) -> None:
    app = OutputApp(out)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "step 000039" in screen_text(app))
        app.view.display = False
        await until(pilot, lambda: not reading())
        app.view.display = True
        app.view.open(app.cluster, app.view._job, app._detail)  # type: ignore[arg-type]
        assert reading()
    await_end = threading.Event()
    for _ in range(500):
        if not reading():
            break
        await_end.wait(0.01)
    assert not reading()


def reading() -> bool:
    return any(thread.name == "output" for thread in threading.enumerate())
