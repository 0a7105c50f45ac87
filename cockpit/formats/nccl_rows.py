"""Rows of nccl-tests' table, in every layout since 2017, with or without the table's head."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.nccl.models import IterationTimes, NcclRow, Placement
from cockpit.text import printable

_TYPES = frozenset(
    (
        "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3",
        "f8e5m2", "char", "int", "uint", "float16", "float32",
    )
)  # fmt: skip
_REDOP = re.compile(r"[a-z][a-z_]{1,11}")
_NUMERIC = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_UNKNOWN = frozenset(("N/A", "nan", "-nan", "inf", "-inf"))
_DATE, _TIME = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\d\d:\d\d:\d\d")
_MAX_DIGITS = 18
_MAX_VALUES = 19  # a root, two placements of eight, a date and a time
# The beginning of a row before its type is whole, of a reduction's name, and of a value or stamp.
_ROW_HEAD = re.compile(r"\s*\d{1,18}(?:\s+\d{1,18}(?:\s+[a-z]\w{0,9})?)?\s*", re.ASCII)
_REDOP_PART = re.compile(r"[a-z][a-z_]{0,11}")
_VALUE_PART = re.compile(r"[-+]|N/?|-?(?:n|na|i|in)|[-+]?[\d.]{1,18}(?:[eE][-+]?)?|[\d:-]{1,10}")


@dataclass(frozen=True, slots=True)
class Layout:
    """What a table's head says of its columns; the times of 2017's first version are milliseconds."""

    redop: bool
    root: bool
    group: int  # columns of one placement
    error: bool  # a float error column instead of a count of wrong elements
    time_scale: float = 1.0


def read_head(text: str) -> Layout | None:
    """The layout that a line of column names tells; None when it is none."""
    words = text.replace("#wrong", "wrong").replace("#", " ").split()
    names = {"time", "cputime"}
    if not {"algbw", "busbw", "type"} <= set(words) or names.isdisjoint(words):
        return None
    starts = [at for at, word in enumerate(words) if word in names]
    group = starts[1] - starts[0] if len(starts) > 1 else len(words) - starts[0]
    before = words[: starts[0]]
    first_version = "bytes" in before
    return Layout(
        redop="redop" in before or "op" in before,
        root="root" in before,
        group=group,
        error=not {"error", "res"}.isdisjoint(words),
        time_scale=1000.0 if first_version else 1.0,
    )


def starts_row(text: str) -> bool:
    """True when the text begins as a row does: size, count, type; one more word may stand before them."""
    return _type_at(text.split(None, 4)) is not None


def part_of_row(text: str) -> bool:
    """True for a row that breaks off anywhere, also in the middle of a word: what is missing may follow."""
    words = text.split()
    at = _type_at(words[:5])
    if at is None:
        return _ROW_HEAD.fullmatch(text) is not None
    rest = words[at + 1 :]
    if rest and _REDOP_PART.fullmatch(rest[0]):
        rest = rest[1:]
    whole, last = rest[:-1], rest[-1:]
    if len(rest) > _MAX_VALUES or not all(_is_value(word) or _is_stamp(word) for word in whole):
        return False
    return all(_is_value(word) or _VALUE_PART.fullmatch(word) is not None for word in last)


def read_row(text: str, layout: Layout | None, *, final: bool = False) -> NcclRow | None:
    """The row when both placements are there; with `final` also one that has only the first."""
    words = text.split()
    at = _type_at(words[:5])
    if at is None or len(words) > 30:
        return None
    rest = words[at + 1 :]
    stamp = " ".join(rest[-2:]) if len(rest) > 2 and _DATE.fullmatch(rest[-2]) and _TIME.fullmatch(rest[-1]) else ""
    rest = rest[:-2] if stamp else rest
    redop = rest.pop(0) if rest and _REDOP.fullmatch(rest[0]) and rest[0] not in _UNKNOWN else ""
    root, rest = _root(rest, layout)
    halves = _halves(rest, layout, has_root=root is not None)
    if not halves or (len(halves) < 2 and not final):
        return None
    return NcclRow(
        size_bytes=int(words[at - 2]),
        count=int(words[at - 1]),
        dtype=words[at],
        redop=redop,
        root=root,
        out_of_place=halves[0],
        in_place=halves[1] if len(halves) > 1 else None,
        stamp=printable(stamp),
        label=printable(words[0][:40]) if at == 3 else "",
    )


def _type_at(words: Sequence[str]) -> int | None:
    """Where the type name stands: third, or fourth in a table to which somebody added a column."""
    for at in (2, 3):
        if len(words) > at and words[at] in _TYPES and _is_count(words[at - 1]) and _is_count(words[at - 2]):
            return at
    return None


def _is_count(word: str) -> bool:
    return len(word) <= _MAX_DIGITS and word.isascii() and word.isdecimal()


def _is_value(word: str) -> bool:
    return word in _UNKNOWN or _NUMERIC.fullmatch(word) is not None


def _is_stamp(word: str) -> bool:
    return bool(_DATE.fullmatch(word) or _TIME.fullmatch(word))


def _root(rest: list[str], layout: Layout | None) -> tuple[int | None, list[str]]:
    """Take the root off, if the layout has one; groups are even, so without a head an odd word tells it, or a -1."""
    if not rest or not re.fullmatch(r"-?\d{1,9}", rest[0]):
        return None, rest
    with_root = layout.root if layout is not None else len(rest) % 2 == 1 or rest[0] == "-1"
    if not with_root:
        return None, rest
    return int(rest[0]), rest[1:]


def _halves(rest: list[str], layout: Layout | None, *, has_root: bool) -> list[Placement]:
    """One or two placements; none when a word is no value or the row is not yet whole."""
    if not rest or not all(_is_value(word) for word in rest):
        return []
    group = layout.group if layout is not None else (8 if len(rest) == 16 else 4)
    if group < 4 or len(rest) not in (group, 2 * group):
        return []
    error = layout.error if layout is not None else not has_root
    scale = layout.time_scale if layout is not None else 1.0
    return [_placement(rest[at : at + group], error, scale) for at in range(0, len(rest), group)]


def _placement(words: Sequence[str], error: bool, time_scale: float) -> Placement:
    time, algbw, busbw, last, *more = (_number(word) for word in words)
    return Placement(
        time_us=None if time is None else time * time_scale,
        algbw_gbs=algbw,
        busbw_gbs=busbw,
        wrong=None if error or last is None else round(last),
        error=last if error else None,
        iterations=IterationTimes(*more[:4]) if len(more) >= 4 else None,
    )


def _number(word: str) -> float | None:
    if word in _UNKNOWN:
        return None
    value = float(word)
    return value if math.isfinite(value) else None
