"""What a Grid tells the widgets above it. Handlers are named `on_grid_opened` and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.message import Message

if TYPE_CHECKING:
    from screens.grid import Grid
    from screens.grid_core import GridCore
    from screens.grid_model import Prepared


class GridMessage(Message, namespace="grid"):
    """Carries the grid that sent it; `control` lets `@on(..., "#id")` select by it."""

    def __init__(self, grid: GridCore[Any]) -> None:
        super().__init__()
        self.grid = cast("Grid[Any]", grid)

    @property
    def control(self) -> Grid[Any]:
        """The grid that sent this."""
        return self.grid


class _Latest(GridMessage):
    """Of several that wait in the queue only the last is delivered."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, type(self)) and message.grid is self.grid


class Opened(GridMessage, namespace="grid"):
    """Enter, `d` or a second click on a row."""

    def __init__(self, grid: GridCore[Any], key: str) -> None:
        super().__init__(grid)
        self.key = key


class CursorMoved(_Latest, namespace="grid"):
    """Another row is under the cursor, or none; `key` is its key."""

    def __init__(self, grid: GridCore[Any], key: str | None) -> None:
        super().__init__(grid)
        self.key = key


class MarksChanged(_Latest, namespace="grid"):
    """Marks were set, taken away, or went with their rows; read `grid.marked_keys`."""


class ViewChanged(_Latest, namespace="grid"):
    """The filter, the problems-only mode or the sort order changed."""


class CopyRequested(GridMessage, namespace="grid"):
    """`y`: put these keys on the clipboard."""

    def __init__(self, grid: GridCore[Any], keys: tuple[str, ...]) -> None:
        super().__init__(grid)
        self.keys = keys


class ExportRequested(GridMessage, namespace="grid"):
    """`x`: write `grid.visible_rows` with `grid.columns` to files."""


class ColumnsRequested(GridMessage, namespace="grid"):
    """`W`: choose the columns of this table."""


class ZoomRequested(GridMessage, namespace="grid"):
    """`z`: this table over the whole screen, or back."""


class RowsReady(GridMessage, bubble=False, namespace="grid"):
    """A thread has filtered and sorted rows, or failed; for the grid itself. `turn` numbers the requests."""

    def __init__(self, grid: GridCore[Any], turn: int, home: bool, result: Prepared[Any] | Exception) -> None:
        super().__init__(grid)
        self.turn = turn
        self.home = home
        self.result = result
