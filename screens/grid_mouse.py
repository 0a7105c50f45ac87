"""What the mouse does in a Grid: select, open, sort, scroll. Everything has a key as well."""

from __future__ import annotations

from textual import events

from screens.grid_actions import GridActions
from screens.grid_canvas import TOP_LINES
from screens.grid_model import R

WHEEL_LINES = 3
HEADER_LINE = 1


class GridMouse(GridActions[R]):
    """The mouse of Grid."""

    _clicked_key: str | None = None  # the row that the last click chose
    _dragging = False

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

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down; the cursor stays on screen."""
        self._wheel(event, WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up; the cursor stays on screen."""
        self._wheel(event, -WHEEL_LINES)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        if event.ctrl or event.shift:
            self.canvas.scroll_columns(1 if lines > 0 else -1)
        else:
            self.state.scroll(lines)
        self.sync()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the scroll bar."""
        place = event.get_content_offset(self)
        if place is not None and place.x == self.size.width - 1 and place.y >= TOP_LINES:
            self._dragging = True
            self.capture_mouse()
            self._drag_to(place.y - TOP_LINES)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the scroll bar."""
        if self._dragging:
            self._drag_to(event.get_content_offset_capture(self).y - TOP_LINES)

    def on_mouse_up(self) -> None:
        """Let the scroll bar go."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def _drag_to(self, line: int) -> None:
        state = self.state
        share = max(0.0, min(1.0, line / max(1, state.height - 1)))
        state.scroll(round(share * max(0, state.count - state.height)) - state.top)
        self.sync()
