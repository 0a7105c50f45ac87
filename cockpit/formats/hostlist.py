"""Slurm's host lists: `gpu-st-p5-[1-3,7],rack[1-2]n[01-02]-ib` to names and back."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from cockpit.formats.errors import FormatError
from cockpit.formats.words import NO_HOST
from cockpit.text import printable

MAX_HOSTS = 65_536  # Slurm's own bound for one range

_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_NUMBER_AT_END = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_NUMBERS = re.compile(r"([0-9]{1,18})")  # longer ones are compared piece by piece


def expand(text: str) -> list[str]:
    """Every host name of a host list, in its order.

    Zero padding follows the width of a range's low end (`[08-11]` is 08, 09, 10, 11). `(null)`, an empty
    string and `None assigned` name no host. Raises FormatError for an open bracket, a descending range or
    more than 65,536 hosts in one item.
    """
    names: list[str] = []
    for item in _items(text):
        pieces = _pieces(item)
        _size(item, pieces)
        groups = [[piece] if isinstance(piece, str) else list(_numbers(piece)) for piece in pieces]
        names += ["".join(parts) for parts in itertools.product(*groups)]
    return names


def count(text: str) -> int:
    """How many hosts a host list names, without writing them out; raises FormatError as `expand` does."""
    return sum(_size(item, _pieces(item)) for item in _items(text))


def fold(names: Iterable[str]) -> str:
    """Host names as a host list the way Slurm writes it: sorted, each once, ranges in a number at the end.

    Slurm takes nothing behind a last bracket (22.05: `Invalid hostlist` for `n[1-2]-ib`): such names stay whole.
    `expand(fold(names))` gives the same set of names back, provided that none holds a comma or a bracket.
    """
    families: dict[str, list[str]] = defaultdict(list)
    items: list[tuple[str, str]] = []  # (name to sort by, text)
    for name in sorted({printable(name) for name in names if name}, key=_natural):
        found = _NUMBER_AT_END.fullmatch(name)
        if found is None:
            items.append((name, name))
        else:
            families[found[1]].append(found[2])
    for prefix, numbers in families.items():
        for ranges in _batches(_ranges(numbers)):
            lone = len(ranges) == 1 and ranges[0].isdigit()
            group = ranges[0] if lone else f"[{','.join(ranges)}]"
            first = ranges[0].partition("-")[0]
            items.append((f"{prefix}{first}", f"{prefix}{group}"))
    return ",".join(text for _, text in sorted(items, key=lambda item: _natural(item[0])))


def split_outside(text: str, opening: str = "[", closing: str = "]") -> list[str]:
    """`text` split on the commas that stand outside brackets; empty items are kept."""
    parts: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        if char in opening:
            depth += 1
        elif char in closing:
            depth -= 1
        elif char == "," and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return parts


def _items(text: str) -> Iterator[str]:
    text = printable(text.strip())
    if text in NO_HOST:
        return
    for item in split_outside(text):
        if item := item.strip():
            yield item


def _pieces(item: str) -> list[str | list[tuple[str, str]]]:
    """Literal text and bracket groups in turn; a group is a list of (low, high) as written."""
    pieces: list[str | list[tuple[str, str]]] = []
    rest = item
    while rest:
        literal, bracket, rest = rest.partition("[")
        if "]" in literal:
            raise _broken("a closing bracket without an opening one", item)
        if literal:
            pieces.append(literal)
        if bracket:
            group, closed, rest = rest.partition("]")
            if not closed or "[" in group:
                raise _broken("a bracket that is not closed", item)
            pieces.append([_bounds(part, item) for part in group.split(",")])
    return pieces


def _bounds(part: str, item: str) -> tuple[str, str]:
    found = _RANGE.fullmatch(part.strip())
    if found is None:
        raise _broken("a range that is no range", item)
    low, high = found[1], found[2] or found[1]
    if len(high) > 18 or len(low) > 18:
        raise _broken("a number that is too long", item)
    if int(high) < int(low):
        raise _broken("a descending range", item)
    return low, high


def _size(item: str, pieces: list[str | list[tuple[str, str]]]) -> int:
    groups = [piece for piece in pieces if not isinstance(piece, str)]
    size = math.prod(sum(int(high) - int(low) + 1 for low, high in group) for group in groups)
    if size > MAX_HOSTS:
        raise _broken(f"more than {MAX_HOSTS:,} hosts", item)
    return size


def _numbers(group: list[tuple[str, str]]) -> Iterator[str]:
    for low, high in group:
        width = len(low)
        for number in range(int(low), int(high) + 1):
            yield str(number).zfill(width)


def _broken(why: str, item: str) -> FormatError:
    return FormatError("reading a host list", why, item)


def _natural(name: str) -> tuple[list[str | int], str]:
    # Text and numbers alternate, so that lists always compare text with text and number with number.
    parts = _NUMBERS.split(name)
    return [int(part) if at % 2 else part for at, part in enumerate(parts)], name


def _ranges(numbers: list[str]) -> list[str]:
    """`1`, `2`, `08`, `09`, `10` to `1-2`, `08-10`: a number joins the range whose low end pads it so."""
    done: list[tuple[str, str]] = []
    growing: list[int] = []  # places in `done` whose range may still grow
    for text in sorted(numbers, key=lambda number: (int(number), len(number))):
        value = int(text)
        growing = [place for place in growing if int(done[place][1]) >= value - 1]
        for place in growing:
            low, high = done[place]
            if int(high) == value - 1 and text == str(value).zfill(len(low)):
                done[place] = (low, text)
                break
        else:
            growing.append(len(done))
            done.append((text, text))
    return [low if low == high else f"{low}-{high}" for low, high in done]


def _batches(ranges: list[str]) -> Iterator[list[str]]:
    """Ranges in groups that Slurm still reads back; only a list of tens of thousands needs a second one."""
    batch: list[str] = []
    room = MAX_HOSTS
    for text in ranges:
        low, _, high = text.partition("-")
        size = int(high or low) - int(low) + 1
        if size > MAX_HOSTS:
            middle = int(low) + MAX_HOSTS - 1
            yield from _batches([f"{low}-{str(middle).zfill(len(low))}"])
            yield from _batches([f"{str(middle + 1).zfill(len(low))}-{high}"])
            continue
        if size > room:
            yield batch
            batch, room = [], MAX_HOSTS
        batch.append(text)
        room -= size
    if batch:
        yield batch


def brief(names: Iterable[str], width: int = 36) -> str:
    """The folded names, or the first of them and how many more when that is longer than `width`."""
    listed = list(names)
    folded = fold(listed)
    return folded if len(folded) <= width else f"{printable(listed[0])} and {len(listed) - 1} more"
