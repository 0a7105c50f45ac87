"""Columns of text read at once: each distinct text once, numbers and times without a call for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from cockpit.formats.gres import number
from cockpit.formats.times import instant

Column = Callable[[Sequence[Any]], list[Any]]

_K = TypeVar("_K")
_V = TypeVar("_V")
_NOT_SET = "4294967290"  # 4294967294 and 4294967295 are Slurm's "not set" and "infinite"


class Memo(dict[_K, _V], Generic[_K, _V]):
    """A dict that reads what it does not hold; equal texts give the very same value."""

    def __init__(self, read: Callable[[_K], _V]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, key: _K) -> _V:
        value = self[key] = self._read(key)
        return value


def each(read: Callable[[_K], _V]) -> Callable[[Sequence[_K]], list[_V]]:
    """A column reader that calls `read` once for each distinct text of the column."""

    def column(texts: Sequence[_K]) -> list[_V]:
        return list(map(Memo(read).__getitem__, texts))

    return column


def numbers(texts: Sequence[str]) -> list[int | None]:
    """Counts and ids as `gres.number` reads them."""
    other = Memo(number)
    return [int(text) if len(text) < 10 and text.isdecimal() else other[text] for text in texts]


def instants(texts: Sequence[str]) -> list[float | None]:
    """Points in time as `times.instant` reads them."""
    other = Memo(instant)
    return [float(text) if len(text) == 10 and text.isdecimal() and text < _NOT_SET else other[text] for text in texts]
