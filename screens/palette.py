"""`:` and ctrl+p: a line to type in and what it may mean; enter goes there or does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from screens import grid_messages
from screens.commands import Command, Context, Entry, Provider, Verb
from screens.content import plain, styled
from screens.filter_bar import FilterInput
from screens.keys import bindings
from screens.menu_grid import MenuGrid, entry_line, palette_columns
from screens.modal import Modal
from screens.palette_entries import PROVIDERS, VERBS
from screens.palette_search import Catalog


class PaletteInput(FilterInput):
    """The line; what is pasted into it becomes one line."""

    def action_clear_filter(self) -> None:
        """Escape closes the palette."""
        if isinstance(self.screen, PaletteScreen):
            self.screen.action_close()


class PaletteScreen(Modal[Command | None]):
    """Dismissed with the command that was chosen, None when it was closed. `text` is typed already."""

    AUTO_FOCUS = "PaletteInput"
    BINDINGS: ClassVar[list[BindingType]] = bindings("palette")
    DEFAULT_CSS = """
    PaletteScreen { align: center top; }
    PaletteScreen > #palette {
        width: 100;
        max-width: 100%;
        height: 100%;
        max-height: 30;
        border: solid $cockpit-accent;
        background: $background;
    }
    PaletteScreen #palette-line { height: 1; background: $surface; }
    PaletteScreen #palette-sign { width: 3; color: $cockpit-accent; text-style: bold; }
    PaletteScreen PaletteInput { width: 1fr; height: 1; background: $surface; }
    PaletteScreen #palette-note { height: 2; padding: 0 1; }
    """

    def __init__(
        self,
        context: Context,
        providers: Iterable[Provider] = PROVIDERS,
        verbs: Sequence[Verb] = VERBS,
        *,
        text: str = "",
    ) -> None:
        super().__init__()
        self._catalog = Catalog(context, providers, verbs)
        self._line = PaletteInput(text, compact=True, select_on_focus=False)
        self._line.placeholder = "a node, job, user, queue, or what to do"
        self._grid = MenuGrid(palette_columns(), "go to")
        self._grid.can_focus = False  # the keys stay with the line
        self._note = Static(id="palette-note")
        self._left_out = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="palette"):
            with Horizontal(id="palette-line"):
                yield Static(plain(" :"), id="palette-sign")
                yield self._line
            yield self._grid
            yield self._note

    def on_mount(self) -> None:
        """Show what is possible."""
        self._search()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what fits what is typed now."""
        event.stop()
        self._search()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run what the cursor is on."""
        event.stop()
        self.action_run()

    def _search(self) -> None:
        found = self._catalog.find(self._line.value)
        self._left_out = found.note
        self._grid.empty = found.note
        self._grid.show(found.entries)
        self._grid.action_cursor_top()
        self._tell()

    def _tell(self) -> None:
        entry = self._grid.cursor_row
        left_out = f"  ({self._left_out})" if entry is not None and self._left_out else ""
        self._note.update(styled([*entry_line(entry), (left_out, "dim")]))

    def on_grid_cursor_moved(self, event: grid_messages.CursorMoved) -> None:
        """Tell of the line that is under the cursor now."""
        event.stop()
        self._tell()

    def on_grid_opened(self, event: grid_messages.Opened) -> None:
        """A second click on a line runs it."""
        event.stop()
        self.action_run()

    def action_run(self) -> None:
        """Close with the command under the cursor, or go on typing where it needs a name."""
        entry = self._grid.cursor_row
        if entry is None or entry.disabled:
            self._tell()
        elif entry.unfinished:
            self.action_complete()
        else:
            self.dismiss(entry.command)

    def action_complete(self) -> None:
        """Type the rest of the line under the cursor."""
        entry: Entry | None = self._grid.cursor_row
        if entry is not None:
            self._line.value = f"{entry.command.id} " if entry.unfinished else entry.text
            self._line.cursor_position = len(self._line.value)

    def action_down(self) -> None:
        """The next line."""
        self._grid.action_cursor_down()

    def action_up(self) -> None:
        """The line before."""
        self._grid.action_cursor_up()

    def action_page_down(self) -> None:
        """One page down."""
        self._grid.action_page_down()

    def action_page_up(self) -> None:
        """One page up."""
        self._grid.action_page_up()

    def action_close(self) -> None:
        """Close without doing anything."""
        self.dismiss(None)
