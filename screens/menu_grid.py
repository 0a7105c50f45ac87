"""The list of a menu or of the palette: a Grid of entries that can only be moved in and chosen from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from screens.commands import Entry
from screens.grid import Grid
from screens.grid_model import Cell, Column
from screens.keys import bindings
from screens.lines import Line

# Nothing to filter, mark, sort or export here.
_MOVES = ("down", "up", "top", "bottom", "half_down", "half_up", "page_down", "page_up")
_TIERS = ("", "y/n", "type the count", "type the name")


class MenuGrid(Grid[Entry], inherit_bindings=False):
    """Shows entries in their order; what is disabled is dim and says why."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding
        for binding in bindings("grid")
        if isinstance(binding, Binding) and binding.id in {f"grid.{move}" for move in _MOVES}
    ]

    def __init__(self, columns: Sequence[Column[Entry]], title: str) -> None:
        super().__init__(columns, entry_key, health=lambda entry: entry.health, title=title, empty="")

    def sort_by(self, column_id: str | None) -> None:
        """A click on a column's title sorts nothing: the order is the meaning."""


def entry_key(entry: Entry) -> str:
    """What the row of an entry is known by."""
    return f"{entry.command.id} {entry.command.argument}"


def palette_columns() -> tuple[Column[Entry], ...]:
    """What one types first."""
    return (
        Column("text", "command", _dimmed(lambda entry: entry.text), None, 10, 44),
        Column("key", "key", lambda entry: (entry.key, "accent"), None, 3, 10),
        Column("help", "what it does", entry_words, None, 12, 90, cut=True),
    )


def menu_columns(entries: Sequence[Entry]) -> tuple[Column[Entry], ...]:
    """The key first; how a change is confirmed, and what an entry does, only where there is something to tell."""
    columns = [
        Column[Entry]("key", "key", lambda entry: (entry.key, "accent"), None, 3, 10),
        Column[Entry]("text", "action", _dimmed(lambda entry: entry.text), None, 8, 40),
    ]
    if any(entry.tier for entry in entries):
        columns.append(Column("tier", "asks", lambda entry: _TIERS[entry.tier], None, 4, 14))
    if any(entry.help for entry in entries):
        columns.append(Column("help", "what it does", entry_words, None, 12, 90, cut=True))
    return tuple(columns)


def entry_words(entry: Entry) -> Cell:
    """What it does, or why it cannot be done now."""
    return (f"not now: {entry.disabled}", "dim") if entry.disabled else entry.help


def entry_lines(entry: Entry | None) -> list[Line]:
    """The same in full, for below the list: why it cannot be done now, and what it would do."""
    if entry is None:
        return []
    why: list[Line] = [[(f"not now: {entry.disabled}", "warning")]] if entry.disabled else []
    return [*why, *([[(entry.help, "dim")]] if entry.help else [])]


def _dimmed(text: Callable[[Entry], str]) -> Callable[[Entry], Cell]:
    return lambda entry: (text(entry), "dim" if entry.disabled else "")
