"""Which columns of a table are shown, and in which order: as chosen by hand, by the config, or neither. No Textual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from screens.grid_model import Column

CHOSEN_DROP = 1  # of a column that is usually not shown: on a narrow terminal it goes after most of the others
_MOST = 200  # columns in a remembered choice; no table has more
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class Choice:
    """`order` names columns from left to right, `hidden` and `shown` those that were hidden or shown by hand.

    A column in none of them (of another version, a check that is new) stands beside its usual neighbour and is shown
    where it would be without any choice; with `only`, as the config has it, what `order` does not name is hidden,
    behind the others. Names that the table does not have now are kept, for when it has them.
    """

    order: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    only: bool = False


def arranged(columns: Sequence[Column[Any]], choice: Choice | None) -> tuple[Column[Any], ...]:
    """The columns in their chosen order, the hidden ones `wide`. The first one names the row: it stays first."""
    if choice is None or not columns:
        return tuple(columns)
    at = {column.id: column for column in columns}
    order = [name for name in dict.fromkeys((columns[0].id, *choice.order)) if name in at]
    named, before = set(order), columns[0].id
    for column in columns:
        if column.id not in named:
            order.insert(len(order) if choice.only else order.index(before) + 1, column.id)
        before = column.id
    return tuple(_as_chosen(at[name], choice, named=name in named) for name in order)


def _as_chosen(column: Column[Any], choice: Choice, *, named: bool) -> Column[Any]:
    hidden = not named if choice.only else column.wide
    hidden = (hidden or column.id in choice.hidden) and column.id not in choice.shown
    if hidden == column.wide:
        return column
    return replace(column, wide=True) if hidden else replace(column, wide=False, drop=column.drop or CHOSEN_DROP)


def toggled(columns: Sequence[Column[Any]], before: Choice | None, name: str) -> Choice:
    """Show a column that is hidden, or hide it; `columns` are as they are arranged now. Never the first.

    The order is left to the table: that of the checks puts those with trouble first.
    """
    now = before or Choice()
    column = next(column for column in columns if column.id == name)
    if column is columns[0]:
        return now
    if column.wide:
        return replace(now, hidden=now.hidden - {name}, shown=now.shown | {name})
    return replace(now, hidden=now.hidden | {name}, shown=now.shown - {name})


def moved(columns: Sequence[Column[Any]], before: Choice | None, name: str, step: int) -> Choice:
    """Move a column by one place to the right (1) or left (-1); nothing goes before the first."""
    now, order = before or Choice(), [column.id for column in columns]
    place = order.index(name)
    other = place + step
    if min(place, other) < 1 or other >= len(columns):
        return now
    order[place], order[other] = order[other], order[place]
    order += [absent for absent in now.order if absent not in order]
    if not now.only:
        return replace(now, order=tuple(order))
    hidden = {column.id for column in columns if column.wide}
    return Choice(tuple(order), frozenset(hidden), frozenset(order) - hidden)


def as_json(choice: Choice) -> dict[str, Any]:
    """A choice by hand, for the file it is kept in."""
    found = {"order": list(choice.order), "hidden": sorted(choice.hidden), "shown": sorted(choice.shown)}
    return {**found, "only": True} if choice.only else found


def from_json(kept: object) -> Choice | None:
    """A choice as it was kept; None for what is none. Names of columns that there are not are no harm."""
    if not isinstance(kept, Mapping):
        return None
    order, hidden, shown = (_names(kept.get(key)) for key in ("order", "hidden", "shown"))
    choice = Choice(order, frozenset(hidden), frozenset(shown), kept.get("only") is True and bool(order))
    return None if choice == Choice() else choice


def _names(kept: object) -> tuple[str, ...]:
    names = kept if isinstance(kept, list) else []
    return tuple(name for name in names[:_MOST] if isinstance(name, str) and len(name) <= _LONGEST)
