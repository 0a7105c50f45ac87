"""The line in which a filter is typed: one for the whole screen, working on whichever table asked for it."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Input, Static

from cockpit.text import printable
from screens.content import plain
from screens.filters import FilterError
from screens.grid import Grid

DEBOUNCE_S = 0.08


class FilterInput(Input):
    """An input whose pasted text is made harmless and one line."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "clear_filter", show=False)]

    def on_paste(self, event: events.Paste) -> None:
        """Insert pasted text with blanks for its line breaks, in place of what Input would do."""
        event.prevent_default()
        event.stop()
        text = printable(" ".join(event.text.split()))
        if self.selection.is_empty:
            self.insert_text_at_cursor(text)
        else:
            self.replace(text, *self.selection)

    def action_clear_filter(self) -> None:
        """Hand escape to the bar."""
        if isinstance(self.parent, FilterBar):
            self.parent.cancel()


class FilterBar(Horizontal):
    """Opened by `open(grid)`; filters while one types.

    Enter keeps the filter, escape clears it; both give the focus back to the table.
    """

    DEFAULT_CSS = """
    FilterBar {
        display: none;
        height: 1;
        background: $surface;
    }
    FilterBar.-open { display: block; }
    FilterBar > #filter-sign { width: 2; color: $cockpit-accent; text-style: bold; }
    FilterBar > FilterInput { width: 1fr; height: 1; background: $surface; }
    FilterBar > #filter-note { width: auto; max-width: 70%; padding: 0 1; color: $cockpit-warning; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self._grid: Grid[Any] | None = None
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """A sign, the input, and room for an error."""
        yield Static(plain("/"), id="filter-sign")
        yield FilterInput(compact=True, select_on_focus=False)
        yield Static(id="filter-note")

    @property
    def is_open(self) -> bool:
        """True while somebody types a filter."""
        return self._grid is not None

    def open(self, grid: Grid[Any]) -> None:
        """Edit the filter of that table, starting from the one it has."""
        self._grid = grid
        line = self.query_one(FilterInput)
        with line.prevent(Input.Changed):
            line.value = grid.filter_text
        line.placeholder = f"words · field:value · !not · fields: {', '.join(grid.fields)}"
        line.cursor_position = len(line.value)
        self._note("")
        self.add_class("-open")
        self.screen.set_focus(line)  # at once: the next key of a burst belongs to the filter

    def cancel(self) -> None:
        """Clear the filter and close."""
        if self._grid is not None:
            self._grid.set_filter("")
        self._close()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter a moment after the last key, so that fast typing sorts once."""
        event.stop()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(DEBOUNCE_S, self._apply)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter and close; a filter that cannot be meant stays open with its error."""
        event.stop()
        if self._apply():
            self._close()

    def on_descendant_blur(self) -> None:
        """Keep what was typed and close when the focus goes elsewhere, as by a click into a table."""
        if self.is_open and self.app.app_focus:
            self._apply()
            self._hide()

    def _apply(self) -> bool:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._grid is None:
            return True
        try:
            self._grid.set_filter(self.query_one(FilterInput).value)
        except FilterError as error:
            self._note(str(error))
            return False
        self._note("")
        return True

    def _note(self, error: str) -> None:
        self.query_one("#filter-note", Static).update(plain(error))

    def _close(self) -> None:
        grid = self._grid
        self._hide()
        if grid is not None:
            grid.focus()

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._grid = None
        self.remove_class("-open")
