"""How bad a fault of hardware is, and what to do about it: the words that all GPU catalogues share."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Severity(str, Enum):
    """From harmless to "give the instance back"; compare with worst() and `rank`, never as text."""

    INFO = "info"  # nothing to do
    WARN = "warn"  # look at it; nothing is done to the node
    DRAIN = "drain"  # let the jobs end, then take the node out
    CRITICAL = "critical"  # a job is already harmed: act now
    REPLACE = "replace"  # the instance cannot be mended

    @property
    def rank(self) -> int:
        """0 for info up to 4 for replace."""
        return list(Severity).index(self)


class Remedy(str, Enum):
    """What helps. RESET_LATER is a reset when the job has ended, BY_TEXT what the line itself says."""

    LOOK = "look"
    RESTART_APP = "restart_app"
    RESET = "reset"
    RESET_LATER = "reset_later"
    REBOOT = "reboot"
    REPLACE = "replace"
    BY_TEXT = "by_text"


def worst(severities: Iterable[Severity]) -> Severity:
    """The worst of some severities; INFO when there are none."""
    return max(severities, key=lambda severity: severity.rank, default=Severity.INFO)


def expand(codes: Iterable[int | str]) -> tuple[int, ...]:
    """The codes of a catalogue entry, in which a text such as `96-105` is a range."""
    found: list[int] = []
    for code in codes:
        first, _, last = str(code).partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)
