"""What the keys do in a Grid; which keys they are stands in screens/keys.py."""

from __future__ import annotations

from textual.actions import SkipAction

from screens import grid_messages as messages
from screens.grid_core import GridCore
from screens.grid_model import R


class GridActions(GridCore[R]):
    """The actions that screens/keys.py names with the scope `grid`."""

    def go_back(self) -> bool:
        """Leave the range, else clear the filter, else show all; False when there was nothing to leave."""
        if self.state.anchor is not None:
            self.state.anchor = None
            self.sync()
        elif self.filter_text:
            self.set_filter("")
        elif self.problems_only:
            self.set_problems_only(False)
        else:
            return False
        return True

    def action_back(self) -> None:
        """Go back inside the table, or leave the key to whoever is above."""
        if not self.go_back():
            raise SkipAction

    def action_cursor_down(self) -> None:
        """One line down."""
        self.state.move_to(self.state.cursor + 1)
        self.sync()

    def action_cursor_up(self) -> None:
        """One line up."""
        self.state.move_to(self.state.cursor - 1)
        self.sync()

    def action_cursor_top(self) -> None:
        """To the first line."""
        self.state.move_to(0)
        self.sync()

    def action_cursor_bottom(self) -> None:
        """To the last line."""
        self.state.move_to(self.state.count - 1)
        self.sync()

    def action_scroll_columns(self, step: int) -> None:
        """Scroll by whole columns; the first one stays."""
        self.canvas.scroll_columns(step)
        self.sync()

    def action_open(self) -> None:
        """Ask for the details of the cursor row."""
        if self.cursor_key is not None:
            self.post_message(messages.Opened(self, self.cursor_key))

    def action_problems_only(self) -> None:
        """Only what deviates, or all again."""
        self.set_problems_only(not self.problems_only)

    def action_sort_column(self, step: int) -> None:
        """Sort by the next column on screen, left or right; before the first is the order of arrival."""
        shown = [slot.column for slot in self.canvas.layout.slots if slot.column.sort is not None]
        order = [None, *(column.id for column in shown)]
        now = self.sort[0]
        place = order.index(now) if now in order else 0
        self.sort_by(order[(place + step) % len(order)])

    def sort_by(self, column_id: str | None) -> None:
        """Sort by a column in its natural direction; the one sorted by already is turned round."""
        now, descending = self.sort
        if column_id is not None and column_id == now:
            self.set_sort(now, not descending)
            return
        column = next((column for column in self.columns if column.id == column_id), None)
        self.set_sort(column_id, column is not None and column.down_first)

    def action_sort_invert(self) -> None:
        """Turn the order round."""
        column, descending = self.sort
        if column is not None:
            self.set_sort(column, not descending)

    def action_mark(self) -> None:
        """Mark the cursor row, or take its mark away, and go one line down."""
        self.state.toggle_mark()
        self.state.move_to(self.state.cursor + 1)
        self.sync()

    def action_mark_range(self) -> None:
        """Start a range at the cursor row; the second time, mark from there to here."""
        if self.state.anchor is None:
            self.state.anchor = self.cursor_key
        else:
            self.state.mark_places(self.state.pending_range())
            self.state.anchor = None
        self.sync()

    def action_mark_all(self) -> None:
        """Mark every row that the filter lets through."""
        self.state.mark_places(range(self.state.count))
        self.sync()

    def action_unmark_all(self) -> None:
        """Take all marks away, also those that the filter hides."""
        self.state.unmark()
        self.sync()

    def action_wide(self) -> None:
        """More columns, or the usual ones."""
        self.canvas.wide = not self.canvas.wide
        self.canvas.skip = 0
        self.canvas.fit(self.state.view, self.canvas.width)
        self.sync()

    def action_columns(self) -> None:
        """Ask which columns are wanted."""
        self.post_message(messages.ColumnsRequested(self))

    def action_zoom(self) -> None:
        """Ask for the whole screen, or to give it back."""
        self.post_message(messages.ZoomRequested(self))

    def action_copy(self) -> None:
        """Ask to copy the keys of the marked rows, else that of the cursor row."""
        if self.target_keys:
            self.post_message(messages.CopyRequested(self, self.target_keys))

    def action_export(self) -> None:
        """Ask to write the rows shown to files."""
        self.post_message(messages.ExportRequested(self))
