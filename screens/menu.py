"""A menu over a pane: a list, a line below it, and a key for every entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from screens import grid_messages
from screens.commands import Entry
from screens.content import styled
from screens.grid_canvas import TOP_LINES
from screens.key_names import shown_keys
from screens.keys import bindings
from screens.lines import Line
from screens.menu_grid import MenuGrid, entry_line, menu_columns
from screens.modal import Modal

Result = TypeVar("Result")
FRAME_LINES = 3  # the frame, and a blank line before the note


class MenuScreen(Modal[Result]):
    """The keys of its entries choose at once, enter chooses what the cursor is on; subclasses say what follows."""

    AUTO_FOCUS = "MenuGrid"
    NOTE_LINES: ClassVar[int] = 2
    BINDINGS: ClassVar[list[BindingType]] = bindings("menu")
    DEFAULT_CSS = """
    MenuScreen { align: center middle; }
    MenuScreen > #menu {
        width: 100;
        max-width: 100%;
        height: auto;
        max-height: 100%;
        border: solid $cockpit-accent;
        background: $background;
    }
    MenuScreen #menu-note { margin: 1 1 0 1; }
    """

    def __init__(self, title: str, entries: Sequence[Entry]) -> None:
        super().__init__()
        self.entries = tuple(entries)
        self._grid = MenuGrid(menu_columns(self.entries), title)
        self._note = Static(id="menu-note")

    def compose(self) -> ComposeResult:
        with Vertical(id="menu"):
            yield self._grid
            yield self._note

    def on_mount(self) -> None:
        """Show the entries; the first that can be done is under the cursor."""
        self._note.styles.height = self.NOTE_LINES
        self._grid.show(self.entries)
        possible = next((place for place, entry in enumerate(self.entries) if not entry.disabled), 0)
        self._grid.state.move_to(possible)
        self._grid.sync()
        self.tell()

    def on_resize(self) -> None:
        """As many lines as there are entries, when the line below and the frame still fit."""
        room = self.app.size.height - FRAME_LINES - self.NOTE_LINES
        self._grid.styles.height = max(TOP_LINES + 1, min(len(self.entries) + TOP_LINES, room))

    def tell(self) -> None:
        """Say below the list what is to be said of the line under the cursor."""
        self._note.update(Content("\n").join(styled(line) for line in self.note_of(self._grid.cursor_row)))

    def note_of(self, entry: Entry | None) -> list[Line]:
        """What is said of an entry; subclasses may show more."""
        return [entry_line(entry)]

    def choose(self, entry: Entry) -> None:
        """Do what was chosen, which is possible now."""
        raise NotImplementedError

    def _choose(self, entry: Entry) -> None:
        if entry.disabled:
            place = self.entries.index(entry)
            self._grid.state.move_to(place)
            self._grid.sync()
            self.tell()
        else:
            self.choose(entry)

    def on_key(self, event: events.Key) -> None:
        """The key of an entry chooses it."""
        pressed = shown_keys(event.key)
        meant = [entry for entry in self.entries if pressed in entry.key.split(" ")]
        # Hold and release share a key: the one that can be done is meant.
        entry = next((entry for entry in meant if not entry.disabled), meant[0] if meant else None)
        if entry is not None and event.key != "enter":
            event.stop()
            event.prevent_default()
            self._choose(entry)

    def on_grid_cursor_moved(self, event: grid_messages.CursorMoved) -> None:
        """Tell of the line that is under the cursor now."""
        event.stop()
        self.tell()

    def on_grid_opened(self, event: grid_messages.Opened) -> None:
        """A second click on a line chooses it."""
        event.stop()
        self.action_run()

    def action_run(self) -> None:
        """Choose what the cursor is on."""
        entry: Any = self._grid.cursor_row
        if entry is not None:
            self._choose(entry)

    def action_close(self) -> None:
        """Close without doing anything."""
        self.dismiss(None)
