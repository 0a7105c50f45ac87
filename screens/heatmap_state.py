"""Cursor and scroll position of a heatmap: kept by key, so that they survive every refresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from screens.heatmap_model import HeatCell, HeatRow


@dataclass
class HeatState:
    """Where the person is. `cursor` is a place in `rows`, `top` the first line on screen, `height` the lines."""

    rows: Sequence[HeatRow] = ()
    at: Mapping[str, int] = field(default_factory=dict)
    cursor: int = 0
    wanted_column: int = 0  # stays when the cursor passes rows with fewer cells
    top: int = 0
    height: int = 1
    per_line: int = 1

    @property
    def row(self) -> HeatRow | None:
        """The row under the cursor; None when there are no rows."""
        return self.rows[self.cursor] if self.rows else None

    @property
    def column(self) -> int:
        """The cell of that row under the cursor; 0 also where a row has no cells."""
        return 0 if self.row is None else max(0, min(self.wanted_column, len(self.row.cells) - 1))

    @property
    def cell(self) -> HeatCell | None:
        """The cell under the cursor; None when the row has none."""
        return self.row.cells[self.column] if self.row is not None and self.row.cells else None

    @property
    def lines(self) -> int:
        """How many lines all rows take."""
        return -(-len(self.rows) // self.per_line)

    @property
    def line(self) -> int:
        """The line of the cursor among them."""
        return self.cursor // self.per_line

    def adopt(self, rows: Sequence[HeatRow]) -> None:
        """Take new rows over: the cursor stays with its row and that row on its line of the screen.

        A row that is gone hands the cursor to the next one that is still there, else to the one before.
        """
        at: dict[str, int] = {}
        for place, row in enumerate(rows):
            at.setdefault(row.key, place)
        on_screen, was_at_top = self.line - self.top, self.top == 0
        self.cursor = self._new_place(at)
        self.rows, self.at = rows, at
        self.cursor = max(0, min(self.cursor, len(rows) - 1))
        self.top = 0 if was_at_top and self.line < self.height else self.line - on_screen
        self._clamp()

    def arrange(self, per_line: int, height: int) -> None:
        """Take a new layout; the cursor's row stays visible."""
        on_screen = self.line - self.top
        self.per_line, self.height = max(1, per_line), max(1, height)
        self.top = self.line - on_screen
        self._clamp()

    def move_to(self, place: int, column: int | None = None) -> None:
        """Put the cursor on a row, and on a cell of it, and scroll no further than needed."""
        if self.rows:
            self.cursor = max(0, min(place, len(self.rows) - 1))
            self.wanted_column = self.wanted_column if column is None else column
            self._clamp()

    def move_lines(self, lines: int) -> None:
        """Go up or down and stay in the same block of the line, as far as there is one."""
        if self.rows:
            line = max(0, min(self.line + lines, self.lines - 1))
            self.move_to(line * self.per_line + self.cursor % self.per_line)

    def move_cells(self, step: int) -> None:
        """Go one cell left or right, over the row's end into its neighbour on the same line."""
        row = self.row
        if row is None:
            return
        column = self.column + step
        if 0 <= column < len(row.cells):
            self.move_to(self.cursor, column)
            return
        place = self.cursor + (1 if step > 0 else -1)
        if 0 <= place < len(self.rows) and place // self.per_line == self.line:
            self.move_to(place, 0 if step > 0 else len(self.rows[place].cells) - 1)

    def page(self, lines: int) -> None:
        """Scroll by whole lines and take the cursor along."""
        self.top += lines
        self._clamp_top()
        self.move_lines(lines)

    def scroll(self, lines: int) -> None:
        """Scroll as a mouse wheel does; the cursor is taken along only where it would leave the screen."""
        self.top += lines
        self._clamp_top()
        self.move_lines(max(self.top, min(self.line, self.top + self.height - 1)) - self.line)

    def _new_place(self, at: Mapping[str, int]) -> int:
        if not self.rows or self.rows[self.cursor].key in at:
            return at[self.rows[self.cursor].key] if self.rows else 0
        for candidates in (self.rows[self.cursor + 1 :], reversed(self.rows[: self.cursor])):
            for row in candidates:
                if row.key in at:
                    return at[row.key]
        return 0

    def _clamp(self) -> None:
        self.top = max(self.line - self.height + 1, min(self.top, self.line))
        self._clamp_top()

    def _clamp_top(self) -> None:
        self.top = max(0, min(self.top, self.lines - self.height))
