"""What a Heatmap knows and how its lines get to the screen; heatmap.py adds keys and mouse."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from screens import heatmap_messages as messages
from screens.drawn import thumb
from screens.grid_paint import draw_title, draw_words, safe_cells
from screens.heatmap_layout import HeatLayout, arrange
from screens.heatmap_model import Groups, HeatCell, HeatRow, Tally, tally
from screens.heatmap_paint import HeatLook, draw_line, draw_numbers, draw_pieces, heat_styles
from screens.heatmap_state import HeatState
from screens.heatmap_title import Metric, Pieces, description, legend, title_pieces
from screens.scrolled import Scrollable, Scrolled
from themes import token_styles
from themes.glyphs import signs

ColourBy = Literal["value", "group"]

NUMBERS_FROM = 8  # lines of height from which the cells' numbers get one
DESCRIPTION_FROM = 3

_Line = tuple[tuple[HeatRow, ...], "tuple[int, int] | None", str]


class HeatmapCore(Scrolled):
    """Rows, cursor and drawing of a heatmap; see Heatmap."""

    def __init__(
        self,
        title: str,
        empty: str = "nothing here",
        id: str | None = None,  # noqa: A002 - Textual's name for it
        *,
        noun: str = "GPU",
        colour_by: ColourBy = "value",
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.title = title
        self.empty = empty
        self.noun = noun
        self.state = HeatState()
        self.layout_now = HeatLayout()
        self._colour_by: ColourBy = colour_by
        self._rows: tuple[HeatRow, ...] | None = None
        self._columns = 0
        self._metric = Metric()
        self._groups = Groups()
        self._tally = Tally()
        self._first = 0
        self._laid_out: Hashable = None
        self._drawn: dict[int, tuple[_Line, Strip]] = {}
        self._drawn_with: Hashable = None
        self._look_kept: tuple[Hashable, HeatLook] | None = None
        self._told: tuple[str | None, int] = (None, 0)

    # What others read.

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor; None when there are no rows."""
        row = self.state.row
        return None if row is None else row.key

    @property
    def cursor_column(self) -> int:
        """The column of the cell under the cursor, from 0."""
        return self.state.column

    @property
    def cursor_cell(self) -> HeatCell | None:
        """The cell under the cursor; None where there is none."""
        return self.state.cell

    @property
    def colour_by(self) -> ColourBy:
        """What the colours stand for."""
        return self._colour_by

    def scrollable(self) -> Scrollable:
        """The lines of cells."""
        return self.state

    # What others tell it.

    def show(
        self,
        rows: Sequence[HeatRow],
        metric: str,
        stale: str | None = None,
        *,
        low: str = "0 %",
        high: str = "100 %",
    ) -> None:
        """Replace the rows and what they measure; `low` and `high` name the ends of the ramp in the legend.

        `stale` says how old the rows are when they are too old, such as "stale 34s".
        """
        rows = tuple(rows)
        self._metric, self._stale = Metric(metric, low, high), stale
        if rows != self._rows:
            self._rows = rows
            self._columns = max((len(row.cells) for row in rows), default=0)
            self._tally = tally(rows)
            self._groups.adopt(rows)
            self.state.adopt(rows)
        self.sync()

    def set_colour_by(self, what: ColourBy) -> None:
        """Let the colours stand for the values or for the groups."""
        if what != self._colour_by:
            self._colour_by = what
            self.sync()

    def move_to(self, row_key: str, column: int | None = None) -> None:
        """Put the cursor on a row, and on a cell of it; without effect when the row is not there."""
        place = self.state.at.get(row_key)
        if place is not None:
            self.state.move_to(place, column)
            self.sync()

    # Drawing.

    def _announce(self) -> None:
        told = (self.cursor_key, self.cursor_column)
        if told != self._told:
            self._told = told
            self.post_message(messages.CursorMoved(self, *told))

    @property
    def top_lines(self) -> int:
        """The lines above the rows: the title, and the cells' numbers where there is room."""
        return 1 + (self.size.height >= NUMBERS_FROM)

    def _draw(self) -> None:
        size = self.size
        self._lay_out(size)
        self._lines_size = size
        look = self._look()
        lines = [self._title(look)]
        if self.top_lines > 1:
            lines.append(draw_numbers(self._columns, len(self.state.rows), look))
        lines += self._row_lines(look)
        last = [self._description(look)] if size.height >= DESCRIPTION_FROM else []
        blank = draw_pieces((), look)
        lines = lines[: size.height - len(last)]
        self._lines = lines + [blank] * (size.height - len(last) - len(lines)) + last

    def _lay_out(self, size: Size) -> None:
        height = max(1, size.height - self.top_lines - (size.height >= DESCRIPTION_FROM))
        labels = tuple(row.label for row in self.state.rows)
        asked = (labels, self._columns, size.width, height)
        if asked != self._laid_out:
            self._laid_out = asked
            self.layout_now = arrange(labels, self._columns, size.width, height)
        self.state.arrange(self.layout_now.per_line, height)
        # Where a row is wider than the terminal, the cells that are seen follow the cursor.
        shown, column = max(1, self.layout_now.shown), self.state.column
        self._first = max(column - shown + 1, min(self._first, column, max(0, self._columns - shown)))

    def _look(self) -> HeatLook:
        tokens, chars = token_styles(self.app), signs(self.app)
        groups = self._groups if self._colour_by == "group" else None
        numbers = None if groups is None else tuple(groups.numbers.items())
        stale, focused = self._stale is not None, self.has_focus
        asked = (self.layout_now, id(tokens), self.rich_style, focused, stale, chars, self._first, numbers)
        if self._look_kept is None or self._look_kept[0] != asked:
            styles = self._styles(tokens, focused, stale)
            self._look_kept = (asked, HeatLook(self.layout_now, styles, chars, self._first, groups))
            self._drawn = {}
        return self._look_kept[1]

    def _styles(self, tokens: Mapping[str, Style], focused: bool, stale: bool) -> Mapping[str, Style]:
        return heat_styles(tokens, self.rich_style, focused=focused, stale=stale)

    def _title(self, look: HeatLook) -> Strip:
        width, rows = self.size.width, None if self._rows is None else len(self._rows)
        groups = self._groups if self._colour_by == "group" else None
        right: Pieces = ()
        # The legend of the ramp is worth more than the number of cells.
        for noun in (self.noun, ""):
            left = title_pieces(self.title, noun, rows, self._tally, self._stale, look.signs)
            room = width - 7 - sum(safe_cells(text)[1] for text, _ in left)
            right = legend(self._metric, groups, look.signs, room) if rows else ()
            if len(right) > 1:
                break
        return draw_title(left, right, width, look.styles, look.signs, "accent" if self.has_focus else "rule")

    def _row_lines(self, look: HeatLook) -> list[Strip]:
        state, kept, self._drawn = self.state, self._drawn, {}
        if not state.rows:
            words = self._waiting if self._rows is None else self.empty
            return draw_words(words, self.size.width, look.styles, "", look.signs.cut)
        lines = []
        for number in range(state.top, min(state.top + state.height, state.lines)):
            start = number * state.per_line
            rows = tuple(state.rows[start : start + state.per_line])
            cursor = (state.cursor - start, state.column) if number == state.line else None
            asked = (rows, cursor, self._bar(number - state.top, look))
            before = kept.get(number)
            strip = before[1] if before is not None and before[0] == asked else draw_line(*asked, look)
            self._drawn[number] = (asked, strip)
            lines.append(strip)
        return lines

    def _bar(self, line: int, look: HeatLook) -> str:
        state = self.state
        return look.signs.thumb if line in thumb(state.top, state.height, state.lines, state.height) else " "

    def _description(self, look: HeatLook) -> Strip:
        state = self.state
        words = description(state.row, state.column, state.cell, self.noun, look.signs, self.size.width)
        return draw_pieces(words, look)
