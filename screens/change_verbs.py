"""What palette and menus offer beside the table of actions: undo, NCCL tests, arming. No Textual."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.arming import LONGEST_S, ReadOnly
from cockpit.words import span
from screens.change_targets import Pointed
from screens.commands import Command, Context, Entry, Name, Names, Verb

_SPAN = re.compile(r"([0-9]{1,5})\s*([smh]?)")
_UNITS_S = {"s": 1, "m": 60, "": 60, "h": 3600}
_USUAL = ("15m", "30m", "1h", "2h", "4h")


def seconds_of(text: str) -> float | None:
    """`15m`, `1h`, `90s`, or minutes; None for anything else."""
    found = _SPAN.fullmatch(text.strip().casefold())
    return float(int(found[1]) * _UNITS_S[found[2]]) if found is not None else None


def other_entries(lock: ReadOnly, pointed: Pointed) -> Iterator[Entry]:
    """Undo of the entry of the record that the cursor is on, else of the last; NCCL tests; disarm."""
    found = [subject for subjects in pointed for subject in subjects]
    about = found[0].key if len(found) == 1 and found[0].kind == "log" else ""
    what = "Take this change back." if about else "Take the last change back that has a way back."
    yield Entry(Command("undo", about), "undo", what, "u", tier=1, disabled=lock.why())
    test = "Measure the collective bandwidth of idle nodes."
    sweep = "Find the node or pair that is slow, among idle ones."
    yield Entry(Command("nccl-run"), "NCCL test", test, "N", tier=1, disabled=lock.why())
    yield Entry(Command("nccl-sweep"), "NCCL sweep", sweep, tier=2, disabled=lock.why())
    if lock.armed_for_s is not None:
        yield Entry(Command("disarm"), "disarm", "Read-only again, at once.")


def arm_names(context: Context) -> Names:
    """How long a cluster may be armed: the usual times."""
    return Names(_USUAL, lambda index: Name(_USUAL[index], _USUAL[index], _arms(seconds_of(_USUAL[index]) or 0.0)))


def arm_time(context: Context, text: str) -> Name | None:
    """Any other time up to the longest."""
    seconds = seconds_of(text)
    return Name(text, text, _arms(seconds)) if seconds and seconds <= LONGEST_S else None


def _arms(seconds: float) -> str:
    return f"Allow changes for {span(seconds)}, then it is read-only again."


_HELP = "Allow changes of a read-only cluster for a while."
ARM = Verb("arm", "arm 15m", _HELP, arm_names, "", resolve=arm_time, as_typed=True)
