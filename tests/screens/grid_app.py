"""A small app around one Grid, and rows to fill it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message

import themes
from cockpit.models import Health
from screens.filter_bar import FilterBar
from screens.grid import Column, Grid
from screens.last_steps import LookApp


@dataclass(frozen=True)
class Row:
    """A node as small as a test needs it."""

    name: str
    state: str = "idle"
    load: float | None = None
    note: str = ""
    health: Health = Health.OK


def node_rows(count: int, **changes: Any) -> list[Row]:
    """Rows n000, n001, ... in that order."""
    return [replace(Row(f"n{i:03d}", load=float(i)), **changes) for i in range(count)]


def _state(row: Row) -> tuple[str, str]:
    return row.state, "warning" if row.state == "down" else ""


COLUMNS: tuple[Column[Row], ...] = (
    Column("name", "node", lambda r: r.name, lambda r: r.name, width=4, max_width=12),
    Column("state", "state", _state, lambda r: r.state, 5),
    Column("load", "load", lambda r: "–" if r.load is None else f"{r.load:.1f}", lambda r: r.load, 5,
           align="right", down_first=True),
    Column("note", "note", lambda r: r.note, None, 6, 30, drop=1),
    Column("extra", "extra", lambda r: f"x{r.name}", None, 8, 20, wide=True),
)  # fmt: skip
FIELDS: dict[str, Callable[[Row], str]] = {
    "node": lambda r: r.name,
    "state": lambda r: r.state,
    "note": lambda r: r.note,
}


class CountingGrid(Grid[Row]):
    """Notes which regions it had repainted; None stands for the whole widget."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.repainted: list[Region | None] = []

    def refresh(self, *regions: Region, **kwargs: Any) -> Any:
        """Note it and do it."""
        if hasattr(self, "repainted"):
            self.repainted += regions or [None]
        return super().refresh(*regions, **kwargs)


class GridApp(LookApp[None]):
    """One grid and the filter line, in the cockpit's own look."""

    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("slash", "filter", priority=True)]

    def __init__(
        self,
        rows: Sequence[Row] | None = None,
        *,
        theme: str = themes.DEFAULT,
        columns: Sequence[Column[Row]] = COLUMNS,
        title: str = "nodes",
        ascii_only: bool = False,
    ) -> None:
        super().__init__(themes.Look(theme, ascii_only))
        self.rows = rows
        self.messages: list[Message] = []
        self.grid = CountingGrid(
            columns,
            lambda r: r.name,
            health=lambda r: r.health,
            fields=FIELDS,
            title=title,
            empty="no nodes",
            id="grid",
        )

    def compose(self) -> ComposeResult:
        """The grid over the filter line."""
        yield self.grid
        yield FilterBar()

    def on_mount(self) -> None:
        """Focus the grid and fill it, unless the test wants it unread."""
        self.grid.focus()
        if self.rows is not None:
            self.grid.show(self.rows)

    def action_filter(self) -> None:
        """Open the filter line."""
        self.query_one(FilterBar).open(self.grid)

    def heard(self, kind: type[Message]) -> list[Any]:
        """The messages of one kind that the grid sent, oldest first."""
        return list(dict.fromkeys(message for message in self.messages if type(message) is kind))
