"""The table of every pane: rows by key, drawn line by line, and only the lines that changed sent again."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeAlias

from textual.binding import Binding, BindingType

from screens import grid_messages as messages
from screens.grid_model import Cell, Column, Prepared, R, Recipe, cell_text
from screens.grid_mouse import GridMouse
from screens.keys import bindings

__all__ = ["Cell", "Column", "Grid", "Prepared", "Recipe", "cell_text"]


class Grid(GridMouse[R], Generic[R], can_focus=True):
    """A table of rows of one kind.

    `key` names a row for ever: cursor, marks and scroll position belong to keys. `health` puts a sign before
    rows that are not OK and makes `!` work. `fields` are what the filter searches, by lower-case name;
    without them it searches the cells. `empty` says that there is nothing, as in "no jobs in the queue".

    The title and the column titles take the first two lines, the scroll bar the last cell of each line; all
    of it is drawn here, because Textual's own border titles and scroll bars repaint the whole widget.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Grid {
        width: 1fr;
        height: 1fr;
        background: $background;
        color: $foreground;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("grid"),
        # The same id as the app's: leaves the range, then the filter, then it is the app's turn.
        Binding("escape", "back", "back", show=False, id="app.back"),
    ]

    Opened: TypeAlias = messages.Opened
    CursorMoved: TypeAlias = messages.CursorMoved
    MarksChanged: TypeAlias = messages.MarksChanged
    ViewChanged: TypeAlias = messages.ViewChanged
    CopyRequested: TypeAlias = messages.CopyRequested
    ExportRequested: TypeAlias = messages.ExportRequested
    ColumnsRequested: TypeAlias = messages.ColumnsRequested
    ZoomRequested: TypeAlias = messages.ZoomRequested
