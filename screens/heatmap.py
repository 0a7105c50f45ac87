"""The heatmap of every metric of the fleet: one small cell a GPU, all of them at once where they fit."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from textual import events
from textual.binding import Binding, BindingType

from screens import heatmap_messages as messages
from screens.heatmap_core import HeatmapCore
from screens.heatmap_model import HeatCell, HeatRow
from screens.keys import bindings

__all__ = ["HeatCell", "HeatRow", "Heatmap"]

# The keys of a table that mean the same here; a heatmap has nothing to sort, filter or mark.
KEY_IDS = (
    *("grid.down", "grid.up", "grid.top", "grid.bottom", "grid.left", "grid.right", "grid.open"),
    *("grid.half_down", "grid.half_up", "grid.page_down", "grid.page_up"),
)


class Heatmap(HeatmapCore, can_focus=True):
    """Rows of small cells, several rows on a line where the terminal is wide and there are many.

    A cell shows its value by colour and by the height of its sign, or the sign of its state where that is
    not OK. The cursor belongs to the row's key. `empty` says that there are no rows; `noun` names a cell.
    With `colour_by="group"` each group has a colour and a letter, and the height still tells the value.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Heatmap {
        width: 1fr;
        height: 1fr;
        background: $background;
        color: $foreground;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        binding for binding in bindings("grid") if isinstance(binding, Binding) and binding.id in KEY_IDS
    ]

    Opened: TypeAlias = messages.Opened
    CursorMoved: TypeAlias = messages.CursorMoved

    _clicked: tuple[str | None, int] | None = None  # the cell that the last click chose

    def action_cursor_down(self) -> None:
        """One line down."""
        self.state.move_lines(1)
        self.sync()

    def action_cursor_up(self) -> None:
        """One line up."""
        self.state.move_lines(-1)
        self.sync()

    def action_cursor_top(self) -> None:
        """To the first row."""
        self.state.move_to(0)
        self.sync()

    def action_cursor_bottom(self) -> None:
        """To the last row."""
        self.state.move_to(len(self.state.rows) - 1)
        self.sync()

    def action_scroll_columns(self, step: int) -> None:
        """One cell to the left or right."""
        self.state.move_cells(step)
        self.sync()

    def action_open(self) -> None:
        """Ask for the details of the cell under the cursor."""
        if self.cursor_key is not None:
            self.post_message(messages.Opened(self, self.cursor_key, self.cursor_column))

    def on_click(self, event: events.Click) -> None:
        """Choose a cell, or open the one that a click chose before."""
        place = event.get_content_offset(self)
        hit = None if place is None else self.layout_now.hit(place.x)
        if place is None or hit is None:
            return
        line = place.y - self.top_lines
        index = (self.state.top + line) * self.state.per_line + hit[0]
        if 0 <= line < self.state.height and index < len(self.state.rows):
            self._choose(index, None if hit[1] is None else hit[1] + self._first)

    def _choose(self, place: int, column: int | None) -> None:
        if column is not None and column >= max(1, len(self.state.rows[place].cells)):
            return
        self.state.move_to(place, column)
        self.sync()
        # Compared by key: when a refresh moved another row under the mouse, the click only selects.
        chosen = (self.cursor_key, self.cursor_column)
        if chosen == self._clicked:
            self.action_open()
            self._clicked = None
        else:
            self._clicked = chosen
