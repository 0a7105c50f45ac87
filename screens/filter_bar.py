"""The line in which a filter or a search is typed: one for the whole screen, working on whatever asked for it."""

from __future__ import annotations

from typing import ClassVar, Protocol

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Input, Static

from cockpit.text import printable
from screens.content import plain
from screens.filters import FilterError

DEBOUNCE_S = 0.08


class Filtered(Protocol):
    """What a FilterBar works on: a table that it filters, or a text that it searches."""

    filter_replaces: bool  # the first letter typed replaces what was typed the last time

    @property
    def filter_text(self) -> str:
        """What was typed the last time; empty for nothing."""

    @property
    def filter_hint(self) -> str:
        """What may be typed, shown while nothing is."""

    def set_filter(self, text: str) -> None:
        """Work with what is typed. Raises FilterError when that cannot be meant."""

    def filter_closed(self) -> None:
        """Nobody types any longer."""

    def focus(self) -> object:
        """Take the keys back."""


class FilterInput(Input):
    """An input whose pasted text is made harmless and one line."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "clear_filter", show=False)]

    def on_paste(self, event: events.Paste) -> None:
        """Insert pasted text with blanks for its line breaks, in place of what Input would do."""
        event.prevent_default()
        event.stop()
        text = printable(" ".join(event.text.split()))
        if self.max_length:  # Input would drop the whole of what is too long, without a word
            text = text[: max(0, self.max_length - len(self.value) + len(self.selected_text))]
        if self.selection.is_empty:
            self.insert_text_at_cursor(text)
        else:
            self.replace(text, *self.selection)

    def action_clear_filter(self) -> None:
        """Hand escape to the bar."""
        if isinstance(self.parent, FilterBar):
            self.parent.cancel()


class FilterBar(Horizontal):
    """Opened by `open(target)`; works while one types.

    Enter keeps the filter, escape clears it; both give the focus back.
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
        self._target: Filtered | None = None
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """A sign, the input, and room for an error."""
        yield Static(plain("/"), id="filter-sign")
        yield FilterInput(compact=True, select_on_focus=False)
        yield Static(id="filter-note")

    @property
    def is_open(self) -> bool:
        """True while somebody types a filter."""
        return self._target is not None

    def open(self, target: Filtered) -> None:
        """Edit the filter of that table or the search of that text, starting from the last one."""
        self._target = target
        line = self.query_one(FilterInput)
        with line.prevent(Input.Changed):
            line.value = target.filter_text
        line.placeholder = target.filter_hint
        line.cursor_position = len(line.value)
        if target.filter_replaces:
            line.select_all()
        self._note("")
        self.add_class("-open")
        self.screen.set_focus(line)  # at once: the next key of a burst belongs to the filter

    def cancel(self) -> None:
        """Clear the filter and close."""
        if self._target is not None:
            self._target.set_filter("")
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
        if self._target is None:
            return True
        try:
            self._target.set_filter(self.query_one(FilterInput).value)
        except FilterError as error:
            self._note(str(error))
            return False
        self._note("")
        return True

    def _note(self, error: str) -> None:
        self.query_one("#filter-note", Static).update(plain(error))

    def _close(self) -> None:
        target = self._target
        self._hide()
        if target is not None:
            target.focus()

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._target is not None:
            self._target.filter_closed()
        self._target = None
        self.remove_class("-open")
