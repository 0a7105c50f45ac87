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
    """`order` names columns from left to right, `hidden` those of them that are not shown.

    A column in neither (of another version, a check that is new) stands beside its usual neighbour and is shown
    where it would be without any choice; with `only`, as the config has it, it is hidden, behind the others. Names
    that the table does not have now are kept, for when it has them.
    """

    order: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    only: bool = False


def arranged(columns: Sequence[Column[Any]], choice: Choice | None) -> tuple[Column[Any], ...]:
    """The columns in their chosen order, the hidden ones `wide`. The first one names the row: it stays first."""
    if choice is None or not columns:
        return tuple(columns)
    at = {column.id: column for column in columns}
    order = [name for name in dict.fromkeys((columns[0].id, *choice.order)) if name in at]
    chosen, before = set(order), columns[0].id
    for column in columns:
        if column.id not in chosen:
            order.insert(len(order) if choice.only else order.index(before) + 1, column.id)
        before = column.id
    return tuple(_shown(at[name], choice, named=name in chosen) for name in order)


def _shown(column: Column[Any], choice: Choice, *, named: bool) -> Column[Any]:
    if column.id in choice.hidden or (choice.only and not named):
        return replace(column, wide=True)
    if not named:
        return column
    return replace(column, wide=False, drop=column.drop or CHOSEN_DROP) if column.wide else column


def toggled(columns: Sequence[Column[Any]], before: Choice | None, name: str) -> Choice:
    """Show a column that is hidden, or hide it; `columns` are as they are arranged now. Never the first."""
    now = _as_it_is(columns, before)
    return now if name == columns[0].id else replace(now, hidden=now.hidden ^ {name})


def moved(columns: Sequence[Column[Any]], before: Choice | None, name: str, step: int) -> Choice:
    """Move a column by one place to the right (1) or left (-1); nothing goes before the first."""
    now = _as_it_is(columns, before)
    order = list(now.order)
    place = order.index(name)
    other = place + step
    if min(place, other) >= 1 and other < len(columns):
        order[place], order[other] = order[other], order[place]
    return replace(now, order=tuple(order))


def _as_it_is(columns: Sequence[Column[Any]], before: Choice | None) -> Choice:
    """What is seen now as a choice by hand, with the names of an earlier one that the table does not have now."""
    names = [column.id for column in columns]
    absent = [name for name in before.order if name not in names] if before else []
    hidden = {column.id for column in columns if column.wide} | (set(absent) & before.hidden if before else set())
    return Choice((*names, *absent), frozenset(hidden))


def as_json(choice: Choice) -> dict[str, Any]:
    """A choice by hand, for the file it is kept in."""
    return {"order": list(choice.order), "hidden": sorted(choice.hidden)}


def from_json(kept: object) -> Choice | None:
    """A choice as it was kept; None for what is none. Names of columns that there are not are no harm."""
    if not isinstance(kept, Mapping):
        return None
    order, hidden = _names(kept.get("order")), _names(kept.get("hidden"))
    return Choice(order, frozenset(hidden)) if order else None


def _names(kept: object) -> tuple[str, ...]:
    names = kept if isinstance(kept, list) else []
    return tuple(name for name in names[:_MOST] if isinstance(name, str) and len(name) <= _LONGEST)
