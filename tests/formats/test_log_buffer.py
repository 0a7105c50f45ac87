"""A piece of a growing file as lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.log_buffer import GONE, LONGEST_LINE, LogBuffer


def texts(buffer: LogBuffer) -> list[str]:
    return [line.text for line in buffer.held().lines]


def numbered(first: int, last: int) -> bytes:
    return b"".join(b"line %06d\n" % number for number in range(first, last))


@given(st.binary(max_size=200), st.lists(st.integers(1, 20), max_size=30))
def test_pieces_of_any_size_give_the_same_lines(data: bytes, sizes: list[int]) -> None:
    whole, pieces = LogBuffer(), LogBuffer()
    whole.feed(data)
    at = 0
    for size in [*sizes, len(data)]:
        pieces.feed(data[at : at + size])
        at += len(data[at : at + size])
    assert texts(pieces) == texts(whole)
    assert (pieces.end, pieces.start) == (len(data), 0)


def test_a_last_line_without_newline_is_there_and_grows() -> None:
    buffer = LogBuffer()
    buffer.feed(b"one\ntw")
    assert texts(buffer) == ["one", "tw"]
    assert buffer.held().partial
    buffer.feed(b"o\n")
    assert texts(buffer) == ["one", "two"]
    assert not buffer.held().partial


def test_half_a_letter_at_the_end_waits_for_its_other_half() -> None:
    buffer = LogBuffer()
    for raw in (b"caf\xc3", b"\xa9 ", b"\xe6\xb1"):
        buffer.feed(raw)
        assert "\ufffd" not in texts(buffer)[0]
    assert texts(buffer) == ["café "]
    buffer.feed(b"\n")  # the other half never came
    assert texts(buffer) == ["café \ufffd"]


def test_a_progress_bar_of_an_hour_takes_no_memory_and_shows_its_last_state() -> None:
    buffer = LogBuffer()
    for percent in range(20_000):
        buffer.feed(b"\r%3d%%|" % (percent % 100) + b"#" * 60)
    assert len(texts(buffer)) == 1
    assert texts(buffer)[0].startswith(" 99%|")
    assert len(buffer._partial) < 200
    assert buffer.end == 20_000 * 66


def test_a_line_that_never_ends_is_bounded() -> None:
    buffer = LogBuffer()
    for _ in range(10):
        buffer.feed(b"x" * LONGEST_LINE)
    assert len(buffer._partial) == LONGEST_LINE
    buffer.feed(b"\nnext\n")
    assert texts(buffer)[1] == "next"
    assert buffer.end == 10 * LONGEST_LINE + 6


def test_beginning_in_the_middle_leaves_half_a_line_out() -> None:
    data = numbered(0, 10)
    buffer = LogBuffer()
    buffer.begin(data[25:], 25)
    assert texts(buffer)[0] == "line 000003"
    assert (buffer.start, buffer.end) == (36, len(data))
    alone = LogBuffer()
    alone.begin(b"no newline at all", 1000)
    assert texts(alone) == ["no newline at all"]


def test_what_is_let_go_at_the_top_is_counted() -> None:
    buffer = LogBuffer(most_lines=100)
    buffer.feed(numbered(0, 250))
    held = buffer.held()
    assert (held.first, held.start, len(held.lines)) == (150, 150 * 12, 100)
    assert held.lines[0].text == "line 000150"
    assert buffer.number_at(200 * 12) == 200
    assert buffer.number_at(200 * 12 - 3) == 200
    assert buffer.number_at(10**9) == 250


def test_paging_back_puts_lines_before_and_lets_the_end_go() -> None:
    data = numbered(0, 200)
    buffer = LogBuffer(most_lines=120)
    buffer.begin(data[1200:], 1200)
    buffer.feed(b"half")
    before = buffer.held()
    buffer.prepend(data[605 : before.start], 605)
    held = buffer.held()
    assert held.first == before.first - 50
    assert held.start == 612
    assert held.lines[0].text == "line 000051"
    assert held.lines[before.first - held.first].text == before.lines[0].text
    assert len(held.lines) == 120
    assert held.end == held.start + 120 * 12  # where reading has to go on
    buffer.feed(data[held.end :])
    assert texts(buffer)[-1] == "line 000199"


def test_another_file_begins_behind_a_mark() -> None:
    buffer = LogBuffer()
    buffer.feed(b"old\nhalf")
    buffer.restart("cut")
    buffer.feed(b"new\n")
    held = buffer.held()
    assert [(line.text, line.mark) for line in held.lines] == [
        ("old", False),
        ("half", False),
        ("cut", True),
        ("new", False),
    ]
    assert (held.start, held.end) == (GONE, 4)
