"""Turns the state of a Grid into lines, drawing again only the rows that look different."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from rich.segment import Segment
from textual.strip import Strip

from cockpit.models import Health
from screens.drawn import thumb
from screens.grid_layout import Layout, arrange
from screens.grid_model import Column, Prepared, R, cell_text
from screens.grid_paint import Palette, draw_header, draw_row, draw_title, draw_words, safe_cells
from screens.grid_state import GridState
from themes import STATE_TOKENS
from themes.glyphs import Signs

Look = tuple[Palette, Signs]
Short = dict[str, int]  # columns that cut a text, and the width it needs

TOP_LINES = 2  # the title and the column titles
SAMPLE = 200  # rows measured for the widths of the columns


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the rows: pieces of the title, and words where there are no rows."""

    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]
    rule: str
    words: str
    sort: str | None
    descending: bool


@dataclass(frozen=True, slots=True)
class _How:
    """Everything but the row itself that decides how a row is drawn."""

    cursor: bool
    mark: str
    bar: str


@dataclass
class Canvas(Generic[R]):
    """Layout and drawn rows of one grid. Holds strips only for the rows on screen."""

    columns: Sequence[Column[R]]
    health: Callable[[R], Health] | None
    wide: bool = False
    skip: int = 0  # columns scrolled away after the first
    width: int = 0
    layout: Layout = field(default_factory=lambda: Layout((), 0, 1))
    _wanted: dict[str, int] = field(default_factory=dict)
    _drawn: dict[str, tuple[R, _How, Strip]] = field(default_factory=dict)
    _drawn_with: tuple[Palette, Signs] | None = None

    @property
    def margin(self) -> int:
        """Cells before the first column: marks, and the sign of the state where rows have one."""
        return 1 if self.health is None else 3

    def fit(self, view: Prepared[R] | None, width: int) -> None:
        """Choose the widths of the columns anew from a sample of the rows shown."""
        self.width = width
        self._wanted = {column.id: len(column.title) + bool(column.sort) for column in self.columns}
        if view is not None and len(view):
            step = max(1, len(view) // SAMPLE)
            places = {*range(min(len(view), 50)), *range(0, len(view), step)}
            for row in map(view.row, places):
                for column in self.columns:
                    cells = safe_cells(cell_text(column.cell(row)))[1]
                    if cells > self._wanted[column.id]:
                        self._wanted[column.id] = cells
        self.lay_out()

    def lay_out(self) -> None:
        """Place the columns again, after `wide` or `skip` changed."""
        self.layout = arrange(
            self.columns, self._wanted, self.width, margin=self.margin, wide=self.wide, skip=self.skip
        )
        self.skip = self.layout.left
        self._drawn.clear()

    def scroll_columns(self, step: int) -> None:
        """Scroll by whole columns; the first one stays."""
        if step < 0 or self.layout.right:
            self.skip = max(0, self.skip + step)
            self.lay_out()

    def forget_live(self) -> None:
        """Draw every row again next time if a column on screen depends on more than the row."""
        if any(slot.column.live for slot in self.layout.slots):
            self._drawn.clear()

    def draw(self, state: GridState[R], height: int, look: Look, frame: Frame) -> list[Strip]:
        """All lines from top to bottom, as many as `height`."""
        if look != self._drawn_with:
            self._drawn.clear()
            self._drawn_with = look
        rows = self._rows(state, look)
        styles, signs = look[0].plain, look[1]
        lines = [
            draw_title(frame.left, frame.right, self.width, styles, signs, frame.rule),
            draw_header(self.layout, styles, signs, frame.sort, frame.descending),
            *rows,
        ]
        if not rows and frame.words:
            lines += draw_words(frame.words, self.width, styles, "", signs.cut)
        blank = Strip([Segment(" " * self.width, styles[""])], self.width)
        return (lines + [blank] * (height - len(lines)))[:height]

    def _rows(self, state: GridState[R], look: Look) -> list[Strip]:
        short: Short = {}
        rows = self._draw_rows(state, look, short)
        if self._widen(short):
            rows = self._draw_rows(state, look, {})
        return rows

    def _draw_rows(self, state: GridState[R], look: Look, short: Short) -> list[Strip]:
        view = state.view
        if view is None:
            return []
        kept, self._drawn = self._drawn, {}
        pending, bar = state.pending_range(), thumb(state.top, state.height, state.count, state.height)
        lines = []
        for place in range(state.top, min(state.top + state.height, len(view))):
            key, row = view.key(place), view.row(place)
            mark = "mark" if key in state.marks else "dim" if place in pending else ""
            how = _How(place == state.cursor, mark, look[1].thumb if place - state.top in bar else " ")
            before = kept.get(key)
            if before is not None and before[1] == how and (before[0] is row or before[0] == row):
                strip = before[2]
            else:
                strip = self._draw_row(row, how, look, short)
            self._drawn[key] = (row, how, strip)
            lines.append(strip)
        return lines

    def _draw_row(self, row: R, how: _How, look: Look, short: Short) -> Strip:
        palette, signs = look
        gutter = [(signs.mark if how.mark else " ", how.mark)]
        if self.health is not None:
            health = self.health(row)
            # The normal state is not drawn: only what deviates catches the eye.
            gutter.append((" ", "") if health is Health.OK else (signs.states[health], STATE_TOKENS[health]))
        styles = palette.cursor if how.cursor else palette.plain
        strip = draw_row(row, self.layout, styles, gutter, signs.cut, short)
        return Strip([*strip, Segment(how.bar, palette.plain["rule"])], self.layout.width)

    def _widen(self, short: Short) -> bool:
        """Give columns that cut a text more room where they may grow; True when the layout changed."""
        grown = False
        for column in self.columns:
            need = min(short.get(column.id, 0), column.max_width)
            if need > self._wanted.get(column.id, 0):
                self._wanted[column.id] = need
                grown = True
        if grown:
            before = self.layout
            self.lay_out()
            return self.layout != before
        return False
