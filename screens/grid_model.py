"""Rows of a Grid before anything is drawn: columns, and the filtered, sorted order. Safe on any thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, Union

from cockpit.models import Health

R = TypeVar("R")
T = TypeVar("T")

# The text of a cell, or (text, style token of the theme); the token "" is normal.
Cell = Union[str, "tuple[str, str]"]


# No slots on generic dataclasses: with them `Column[Node](...)` fails on some Python versions.
@dataclass(frozen=True)
class Column(Generic[R]):
    """One column. Widths are in cells: it is as wide as what it shows, between `width` and `max_width`.

    `sort` gives the value to sort by (None: this column cannot be sorted by); rows whose value is None or NaN
    come last in both directions. `down_first` sorts largest first when the column is chosen. `cut` says that a
    part of the text is still of use, so that the column may be narrower than what it shows; the others are
    shown whole up to `max_width`, or dropped: when the terminal is narrow the highest `drop` goes first, 0
    never goes. `wide` columns show only in wide mode. `live` says that the text depends on more than the row,
    such as the clock, and is drawn anew on every refresh.
    """

    id: str
    title: str
    cell: Callable[[R], Cell]
    sort: Callable[[R], Any] | None = None
    width: int = 4
    max_width: int = 40
    align: Literal["left", "right"] = "left"
    drop: int = 0
    wide: bool = False
    note: str = ""
    down_first: bool = False
    cut: bool = False
    live: bool = False


def cell_text(cell: Cell) -> str:
    """The text of a cell without its style, as exports and copies want it."""
    return cell if isinstance(cell, str) else cell[0]


@dataclass(frozen=True)
class Recipe(Generic[R]):
    """How rows become what is shown: which are kept, and in which order. Immutable, so a thread may use it.

    `keep` is the text filter; `health` is set when only rows that deviate from OK are wanted. `joined` is what
    filter and sort look at besides the rows; with another one every row is asked again.
    """

    key: Callable[[R], str]
    keep: Callable[[R], bool] | None = None
    health: Callable[[R], Health] | None = None
    sort: Callable[[R], Any] | None = None
    descending: bool = False
    joined: object = None

    def prepare(self, rows: Sequence[R], old: Prepared[R] | None = None) -> Prepared[R]:
        """Filter and sort `rows` in one pass; rows that are the very objects of `old` are not asked again."""
        frozen = rows if isinstance(rows, tuple) else tuple(rows)
        keys = [self.key(row) for row in frozen]
        passes = values = None
        if old is not None and old.recipe.joined is not self.joined:
            old = None
        if self.keep is not None or self.health is not None:
            same = old is not None and old.recipe.keep is self.keep and old.recipe.health is self.health
            passes = _carry(frozen, keys, self._passes, old, old.passes if old and same else None)
        if self.sort is not None:
            same = old is not None and old.recipe.sort is self.sort
            values = _carry(frozen, keys, self._value, old, old.values if old and same else None)
        order = _order(len(frozen), passes, values, self.descending)
        return Prepared(self, frozen, keys, {key: index for index, key in enumerate(keys)}, passes, values, order)

    def _passes(self, row: R) -> bool:
        # Health first: it is one look at a field, the filter reads them all.
        if self.health is not None and self.health(row) is Health.OK:
            return False
        return self.keep is None or self.keep(row)

    def _value(self, row: R) -> Any:
        value = self.sort(row) if self.sort is not None else None
        return None if value != value else value  # NaN would make the order depend on chance


@dataclass(frozen=True, eq=False)
class Prepared(Generic[R]):
    """Rows ready to be shown. `rows`, `keys`, `passes`, `values` lie side by side in the order of arrival.

    `order` lists the indices of the rows shown, in their order; `at` finds an index by key.
    """

    recipe: Recipe[R]
    rows: tuple[R, ...]
    keys: list[str]
    at: dict[str, int]
    passes: list[bool] | None
    values: list[Any] | None
    order: list[int]

    def __len__(self) -> int:
        return len(self.order)

    def row(self, place: int) -> R:
        """The row shown at `place`."""
        return self.rows[self.order[place]]

    def key(self, place: int) -> str:
        """The key of the row shown at `place`."""
        return self.keys[self.order[place]]

    def place(self, key: str) -> int | None:
        """Where the row with that key is shown; None when it is not."""
        index = self.at.get(key)
        if index is None or (self.passes is not None and not self.passes[index]):
            return None
        try:
            return self.order.index(index)
        except ValueError:
            return None

    def get(self, key: str) -> R | None:
        """The row with that key, shown or not."""
        index = self.at.get(key)
        return None if index is None else self.rows[index]


def _carry(
    rows: tuple[R, ...],
    keys: list[str],
    ask: Callable[[R], T],
    old: Prepared[R] | None,
    known: list[T] | None,
) -> list[T]:
    """What `ask` says about each row, taken from `known` where the row is the very object it was."""
    if old is None or known is None:
        return [ask(row) for row in rows]
    if rows is old.rows:
        return known
    old_rows, at = old.rows, old.at
    answers = []
    for key, row in zip(keys, rows, strict=True):
        index = at.get(key, -1)
        answers.append(known[index] if index >= 0 and old_rows[index] is row else ask(row))
    return answers


def _order(count: int, passes: list[bool] | None, values: list[Any] | None, descending: bool) -> list[int]:
    shown = list(range(count)) if passes is None else [i for i, kept in enumerate(passes) if kept]
    if values is None:
        return shown
    told = [i for i in shown if values[i] is not None]
    untold = [i for i in shown if values[i] is None] if len(told) < len(shown) else []
    try:
        told.sort(key=values.__getitem__, reverse=descending)
    except TypeError:
        # A column that mixes kinds of values still gets one stable order.
        told.sort(key=lambda i: (type(values[i]).__name__, str(values[i])), reverse=descending)
    return told + untold
