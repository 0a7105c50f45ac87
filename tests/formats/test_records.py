import re

import pytest

from cockpit.formats.errors import FormatError
from cockpit.formats.records import format_args, split_fields, split_records
from tests.formats.slurm_text import queue

START = re.compile(rb"[0-9]+\x1f")


def split(raw: bytes, trusted: int = 2) -> list[bytes]:
    return split_records(raw, start=START, trusted=trusted, what="reading a test")


def test_fields_are_asked_for_in_full_with_control_characters_behind_them() -> None:
    assert format_args(["JobID", "Name"]) == "JobID:0\x1f,Name:0\x1e"
    assert format_args(["JobID", "Name"], "0abc") == "JobID:0\x1f,Name:0\x1e0abc"


def test_records_end_with_a_mark_and_a_newline() -> None:
    assert split(queue(b"1\x1fa\x1fx", b"2\x1fb\x1fy")) == [b"1\x1fa\x1fx", b"2\x1fb\x1fy"]


@pytest.mark.parametrize("raw", [b"", b"\n"])
def test_an_empty_answer_has_no_records(raw: bytes) -> None:
    assert split(raw) == []


def test_an_end_mark_inside_free_text_ends_nothing() -> None:
    name = b"x\x1e\ny\x1fz"
    assert split(queue(b"1\x1fa\x1f" + name, b"2\x1fb\x1fy")) == [b"1\x1fa\x1f" + name, b"2\x1fb\x1fy"]


def test_a_piece_that_looks_like_a_record_but_lacks_fields_is_glued() -> None:
    name = b"x\x1e\n77\x1f"
    assert split(queue(b"1\x1fa\x1f" + name)) == [b"1\x1fa\x1f" + name]


@pytest.mark.parametrize("cut", range(1, 15))
def test_an_answer_that_ends_anywhere_in_its_last_record_is_refused(cut: int) -> None:
    raw = queue(b"1\x1fa\x1fx", b"2\x1fbbbbbb\x1fyyyy")
    with pytest.raises(FormatError, match="middle of a record"):
        split(raw[:-cut])


def test_lines_that_a_wrapper_prints_first_are_left_out() -> None:
    assert split(b"Welcome to cluster1!\n\n" + queue(b"1\x1fa\x1fx")) == [b"1\x1fa\x1fx"]


@pytest.mark.parametrize("raw", [b"slurm is down for maintenance\n", b"hello\x1e\n", b"a\x1fb\x1fc\x1e\n"])
def test_other_text_is_refused(raw: bytes) -> None:
    with pytest.raises(FormatError):
        split(raw)


def test_fields() -> None:
    assert split_fields("1\x1fa\x1fx", 3) == ["1", "a", "x"]
    assert split_fields("1\x1fa", 3) == ["1", "a", ""]
    assert split_fields("1\x1fa\x1fx\x1fy", 3) == ["1", "a", "x\x1fy"]


def test_an_anchor_tells_which_free_text_holds_the_separator() -> None:
    anchor = "\x1f-\x1f-\x1f"
    assert split_fields("1\x1fwhy\x1fco\x1fmment\x1f-\x1f-\x1fname", 6, 1, anchor) == [
        *("1", "why", "co\x1fmment", "-", "-", "name")
    ]
    assert split_fields("1\x1fwhy\x1f-\x1f-\x1f-\x1fna\x1fme", 6, 1, anchor) == [
        *("1", "why", "-", "-", "-", "na\x1fme")
    ]
    assert split_fields("1\x1fwhy\x1fcomment\x1fA\x1f-\x1fna\x1fme", 6, 1, anchor) == [
        *("1", "why", "comment", "A", "-", "na\x1fme")
    ]
