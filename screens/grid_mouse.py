"""What the mouse does in a Grid: select, open, sort, scroll. Everything has a key as well."""

from __future__ import annotations

from textual import events

from screens.grid_actions import GridActions
from screens.grid_canvas import TOP_LINES
from screens.grid_model import R

HEADER_LINE = 1


class GridMouse(GridActions[R]):
    """The mouse of Grid."""

    _clicked_key: str | None = None  # the row that the last click chose

    def on_click(self, event: events.Click) -> None:
        """Choose a row, open the one that a click chose before, or sort by a column's title."""
        place = event.get_content_offset(self)
        if place is None or place.x >= self.size.width - 1:
            return
        if place.y == HEADER_LINE:
            column = self.canvas.layout.column_at(place.x)
            if column is not None and column.sort is not None:
                self.sort_by(column.id)
        elif place.y >= TOP_LINES:
            self._click_row(self.state.top + place.y - TOP_LINES)

    def _click_row(self, place: int) -> None:
        if place >= self.state.count:
            return
        self.state.move_to(place)
        self.sync()
        # Compared by key: when a refresh moved another row under the mouse, the click only selects.
        if self.cursor_key == self._clicked_key:
            self.action_open()
            self._clicked_key = None
        else:
            self._clicked_key = self.cursor_key

    def wheel_sideways(self, step: int) -> None:
        """Scroll by whole columns."""
        self.canvas.scroll_columns(step)

    def scroll_to_share(self, share: float) -> None:
        """Put that share of the rows above the screen."""
        state = self.state
        state.scroll(round(share * max(0, state.count - state.height)) - state.top)
