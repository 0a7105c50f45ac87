"""The words that Slurm's programs print where there is nothing to say, and texts without them."""

from __future__ import annotations

from sys import intern

from cockpit.text import printable

# Each program has spellings of its own beside the common ones. Only those count, since a user may well call an
# account `none` or write `NONE` into a comment. Seen on Slurm 22.05 to 25.11.
NOTHING = frozenset({"", "(null)", "N/A", "n/a"})
NO_VALUE = NOTHING | {"none", "NONE"}  # GRES and TRES texts, `scontrol show config` and `show partition`
NO_TEXT = NOTHING | {"None", "none", "Unknown"}  # sinfo, `scontrol show job` and `show node`
NO_TEXT_QUEUE = NOTHING | {"None", "NONE", "Unknown"}  # squeue
NO_HOST = NOTHING | {"None assigned"}  # host lists

_LONGEST_NUMBER = 18  # digits; more is no number of Slurm's, and int() refuses 4,300 of them


def word(text: str, nothing: frozenset[str] = NO_TEXT) -> str:
    """A text that may be shown, "" where it says that there is none; equal texts are one object."""
    return "" if text in nothing else intern(printable(text))


def digits(text: str) -> int | None:
    """The number that these ASCII digits write; None for anything else and for more than 18 of them."""
    return int(text) if len(text) <= _LONGEST_NUMBER and text.isascii() and text.isdecimal() else None
