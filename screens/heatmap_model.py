"""What a heatmap shows: rows of cells with a share between 0 and 1, a state and a group; pure data."""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from cockpit.models import Health
from themes import GROUP_TOKENS, RAMP_TOKENS

LETTERS = string.ascii_uppercase


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell, such as a GPU. `value` is its share of the ramp, 0 to 1, None where there is no number.

    `text` is the value as a person reads it, with its unit. A `health` other than OK is drawn instead of the
    value. `group` is what the cell belongs to, such as a job; empty for nothing.
    """

    value: float | None
    text: str
    health: Health = Health.OK
    group: str = ""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One row, such as a node; `key` names it for ever. `stale` says that all of its cells tell what was.

    Of a row that is also `unread`, nothing was ever known: it is drawn alike and called otherwise.
    """

    key: str
    label: str
    cells: tuple[HeatCell, ...]
    note: str = ""
    stale: bool = False
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cells there are, how many are in each state but OK (worst first), and how many lack a number."""

    cells: int = 0
    states: tuple[tuple[Health, int], ...] = ()
    missing: int = 0
    stale_rows: int = 0
    unread_rows: int = 0


def tally(rows: Sequence[HeatRow]) -> Tally:
    """Count what the title tells; a cell in a state other than OK is not also counted as missing."""
    states: Counter[Health] = Counter()
    missing = 0
    for row in rows:
        for cell in row.cells:
            if cell.health is not Health.OK:
                states[cell.health] += 1
            elif step_of(cell.value) is None:
                missing += 1
    worst_first = tuple((health, states[health]) for health in reversed(Health) if states[health])
    stale = [row for row in rows if row.stale]
    unread = sum(row.unread for row in stale)
    return Tally(sum(len(row.cells) for row in rows), worst_first, missing, len(stale) - unread, unread)


def step_of(value: float | None) -> int | None:
    """The step of the ramp, from 0; values outside 0 to 1 take the nearest end, None and NaN have no step."""
    if value is None or math.isnan(value):
        return None
    return min(len(RAMP_TOKENS) - 1, int(max(0.0, min(1.0, value)) * len(RAMP_TOKENS)))


@dataclass
class Groups:
    """Numbers the groups on show; each keeps its number, and so its colour, as long as it is there."""

    numbers: dict[str, int] = field(default_factory=dict)

    def adopt(self, rows: Sequence[HeatRow]) -> None:
        """Forget groups that are gone and give the lowest free numbers to new ones, in the order of the rows."""
        present = dict.fromkeys(cell.group for row in rows for cell in row.cells if cell.group)
        self.numbers = {group: number for group, number in self.numbers.items() if group in present}
        taken = set(self.numbers.values())
        free = (number for number in range(len(present)) if number not in taken)
        for group in present:
            if group not in self.numbers:
                self.numbers[group] = next(free)

    def token(self, group: str) -> str:
        """The style token of a group; the colours start again after the last."""
        return GROUP_TOKENS[self.numbers[group] % len(GROUP_TOKENS)]

    def letter(self, group: str) -> str:
        """The letter of a group, for eyes and terminals without colours."""
        return LETTERS[self.numbers[group] % len(LETTERS)]
