"""Which columns of a Grid stand where, for a given width. Pure arithmetic in cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from screens.grid_model import Column

ROOMY = 100  # from this width on, columns stand two cells apart
SLIVER = 4  # a column cut off at the right edge is shown from this width on


@dataclass(frozen=True, slots=True)
class Slot:
    """One column on screen, `width` cells from `x` on."""

    column: Column[Any]
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns on screen from left to right; the first is frozen.

    `left` and `right` count the columns scrolled away on either side (one cut off counts), `dropped` those
    that a narrow terminal or the usual mode leaves out.
    """

    slots: tuple[Slot, ...]
    width: int
    gap: int
    left: int = 0
    right: int = 0
    dropped: int = 0

    def column_at(self, x: int) -> Column[Any] | None:
        """The column under that cell, with the gap behind it."""
        for slot in self.slots:
            if slot.x <= x < slot.x + slot.width + self.gap:
                return slot.column
        return None


def arrange(
    columns: Sequence[Column[Any]],
    wanted: Mapping[str, int],
    width: int,
    *,
    margin: int = 1,
    wide: bool = False,
    skip: int = 0,
) -> Layout:
    """Lay the columns out between a left margin and one cell for the scroll bar.

    `wanted` is the width each column would like, by id. Too little room first narrows columns, then drops
    those that may go; what still does not fit is scrolled: `skip` columns after the first are passed over,
    never more than needed to see the last one.
    """
    gap = 2 if width >= ROOMY else 1
    room = max(1, width - margin - 1)
    shown = [column for column in columns if wide or not column.wide]
    if not wide:
        shown = _drop(shown, wanted, room, gap)
    minimum = [_least(column, wanted) for column in shown]
    maximum = [_want(column, wanted) for column in shown]
    gaps = gap * (len(shown) - 1)
    dropped = len(columns) - len(shown)
    if sum(minimum) + gaps <= room:
        widths = _share(minimum, maximum, room - gaps)
        return Layout(_place(shown, widths, margin, gap), width, gap, dropped=dropped)
    return _scrolled(shown, maximum, width, margin, gap, skip, dropped)


def _want(column: Column[Any], wanted: Mapping[str, int]) -> int:
    return max(1, min(column.max_width, max(column.width, wanted.get(column.id, 0))))


def _least(column: Column[Any], wanted: Mapping[str, int]) -> int:
    """How narrow a column may get: half a node name or count says something wrong, half a reason does not."""
    want = _want(column, wanted)
    return min(column.width, want) if column.cut else want


def _drop(columns: list[Column[Any]], wanted: Mapping[str, int], room: int, gap: int) -> list[Column[Any]]:
    """Leave out columns, never the first: highest `drop` first, rightmost among equals, until all fit."""
    kept = list(columns)
    while len(kept) > 1 and sum(_least(column, wanted) for column in kept) + gap * (len(kept) - 1) > room:
        place = max(range(1, len(kept)), key=lambda i: (kept[i].drop, i))
        if kept[place].drop == 0:
            break
        del kept[place]
    return kept


def _share(minimum: list[int], maximum: list[int], room: int) -> list[int]:
    """Give spare cells round by round to the columns that want more, so that small wishes are met first."""
    widths = list(minimum)
    spare = room - sum(widths)
    while spare > 0:
        hungry = [i for i, width in enumerate(widths) if width < maximum[i]]
        if not hungry:
            break
        step = max(1, spare // len(hungry))
        for i in hungry:
            more = min(step, maximum[i] - widths[i], spare)
            widths[i] += more
            spare -= more
    return widths


def _place(columns: Sequence[Column[Any]], widths: Sequence[int], x: int, gap: int) -> tuple[Slot, ...]:
    slots = []
    for column, width in zip(columns, widths, strict=True):
        slots.append(Slot(column, x, width))
        x += width + gap
    return tuple(slots)


def _scrolled(
    columns: list[Column[Any]], widths: list[int], width: int, margin: int, gap: int, skip: int, dropped: int
) -> Layout:
    end = width - 1
    # The frozen column may take half of the line, or nothing else would ever be seen.
    first = max(1, min(widths[0], (end - margin) // 2))
    start = margin + first + gap
    skip = max(0, min(skip, _most_skipped(widths[1:], gap, end - start)))
    slots = [Slot(columns[0], margin, first)]
    cut, x = 0, start
    for column, wish in zip(columns[1 + skip :], widths[1 + skip :], strict=True):
        seen = min(wish, end - x)
        # A number is whole or not there, unless nothing but a part of it would fit the screen.
        if seen < (wish if column.align == "right" and len(slots) > 1 else min(wish, SLIVER)):
            break
        cut = int(seen < wish)
        slots.append(Slot(column, x, seen))
        x += seen + gap
    right = len(columns) - skip - len(slots) + cut
    return Layout(tuple(slots), width, gap, left=skip, right=right, dropped=dropped)


def _most_skipped(widths: list[int], gap: int, room: int) -> int:
    """The smallest number of columns to pass over so that the last one is seen whole."""
    used = 0
    for passed in range(len(widths) - 1, -1, -1):
        used += widths[passed] + (gap if used else 0)
        if used > room:
            return min(passed + 1, len(widths) - 1)
    return 0
