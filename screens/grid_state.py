"""Cursor, scroll position and marks of a Grid: all kept by key, so that they survive every refresh."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic

from screens.grid_model import Prepared, R


@dataclass
class GridState(Generic[R]):
    """Where the person is. `cursor` and `top` are places in `view`; `height` is the number of lines."""

    view: Prepared[R] | None = None
    cursor: int = 0
    cursor_key: str | None = None
    pinned: bool = False  # the cursor stays on the first row, whichever that is, until somebody moves it
    top: int = 0
    height: int = 1
    marks: dict[str, None] = field(default_factory=dict)
    lost_marks: int = 0  # marked rows that have since vanished
    anchor: str | None = None  # where a range was started

    @property
    def count(self) -> int:
        """How many rows are shown, on screen or scrolled away."""
        return 0 if self.view is None else len(self.view)

    @property
    def at_home(self) -> bool:
        """True while the cursor is on the first row, where everybody starts."""
        return self.cursor == 0 and self.top == 0

    def adopt(self, view: Prepared[R], *, home: bool = False) -> None:
        """Take new rows over. The cursor stays with its row and that row on its line of the screen.

        A row that is gone hands the cursor to the one that took its place; one that a new filter hides, to the
        first. At the very top the view stays at the top as long as the cursor row fits, so that what is worst is
        never hidden above. `home` puts the cursor on the first row whatever happens.
        """
        line, was_at_top = self.cursor - self.top, self.top == 0
        place = 0 if home or self.pinned else self._new_place(view)
        self.view = view
        self._forget_vanished(view)
        self.cursor = max(0, min(place, self.count - 1))
        if self.count:
            self.cursor_key = view.key(self.cursor)
        self.top = 0 if was_at_top and self.cursor < self.height else self.cursor - line
        self._clamp()

    def move_to(self, place: int) -> None:
        """Put the cursor on a row and scroll no further than needed."""
        self.pinned = False
        if not self.count or self.view is None:
            return
        self.cursor = max(0, min(place, self.count - 1))
        self.cursor_key = self.view.key(self.cursor)
        self._clamp()

    def page(self, lines: int) -> None:
        """Scroll by whole lines and take the cursor along, as ctrl+d does."""
        if not self.count:
            return
        self.top += lines
        self.cursor += lines
        self._clamp_top()
        self.move_to(self.cursor)

    def scroll(self, lines: int) -> None:
        """Scroll as a mouse wheel does; the cursor is taken along only where it would leave the screen."""
        if not self.count:
            return
        self.top += lines
        self._clamp_top()
        self.move_to(max(self.top, min(self.cursor, self.top + self.height - 1)))

    def resize(self, height: int) -> None:
        """Take a new number of rows on screen; the cursor row stays visible."""
        self.height = max(1, height)
        self._clamp()

    def toggle_mark(self) -> None:
        """Mark the cursor row or take its mark away."""
        if self.cursor_key is None or not self.count:
            return
        if not self.marks:
            self.lost_marks = 0
        if self.cursor_key in self.marks:
            del self.marks[self.cursor_key]
        else:
            self.marks[self.cursor_key] = None

    def mark_places(self, places: range) -> None:
        """Mark the rows shown at these places."""
        if self.view is not None:
            self.marks.update((self.view.key(place), None) for place in places)

    def unmark(self) -> None:
        """Take all marks away and forget about lost ones."""
        self.marks.clear()
        self.lost_marks = 0
        self.anchor = None

    def pending_range(self) -> range:
        """The places a second `v` would mark; empty when no range was started."""
        if self.anchor is None or self.view is None:
            return range(0)
        place = self.view.place(self.anchor)
        if place is None:
            return range(0)
        return range(min(place, self.cursor), max(place, self.cursor) + 1)

    def hidden_marks(self) -> int:
        """How many marked rows the filter hides."""
        view = self.view
        if view is None or view.passes is None:
            return 0
        return sum(1 for key in self.marks if not view.passes[view.at[key]])

    def _new_place(self, view: Prepared[R]) -> int:
        if self.cursor_key is None:
            return 0
        place = view.place(self.cursor_key)
        if place is not None or self.view is None:
            return place or 0
        old = self.view
        if view.recipe.keep is not old.recipe.keep:
            return 0  # somebody types a filter, and looks for the first that fits
        after = range(self.cursor + 1, len(old))
        before = range(min(self.cursor, len(old)) - 1, -1, -1)
        for candidates in (after, before):
            for candidate in candidates:
                place = view.place(old.key(candidate))
                if place is not None:
                    return place
        return 0

    def _forget_vanished(self, view: Prepared[R]) -> None:
        gone = [key for key in self.marks if key not in view.at]
        for key in gone:
            del self.marks[key]
        self.lost_marks += len(gone)
        if self.anchor is not None and self.anchor not in view.at:
            self.anchor = None

    def _clamp(self) -> None:
        self.top = max(self.cursor - self.height + 1, min(self.top, self.cursor))
        self._clamp_top()

    def _clamp_top(self) -> None:
        self.top = max(0, min(self.top, self.count - self.height))
