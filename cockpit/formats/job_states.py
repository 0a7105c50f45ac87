"""Slurm's job states in words and in groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cockpit.catalog.reader import load
from cockpit.text import printable

# Jobs in these states hold their nodes (squeue's manual); CF holds them while they still boot.
HOLDING = frozenset({"R", "CG", "CF", "S", "RS", "SI", "SO", "ST"})
# In these `started_at` is when the job really started: Slurm sets a configuring job's start anew once its nodes
# are up, and a pending job's start is an estimate.
STARTED = HOLDING - {"CF"}

_GROUPS = (
    ("R", "RS", "SI"),  # running
    ("CG", "SO"),  # completing
    ("CF",),  # configuring
    ("S", "ST"),  # suspended
    ("PD", "RH", "RQ", "RF", "RD", "SE"),  # pending
)
_ORDER = {code: place for place, codes in enumerate(_GROUPS) for code in codes}
_LONGEST_CODE = 3  # every compact code has at most three letters, every long name has more


@dataclass(frozen=True, slots=True)
class JobState:
    """One state: `kind` is active, waiting, good, bad, or unknown for a word that is not Slurm's so far."""

    code: str
    name: str
    word: str
    kind: str
    meaning: str


def job_state(state: str) -> JobState:
    """What a compact code (`PD`) or a long name (`PENDING`, `CANCELLED by 1000`) means; never raises."""
    code = compact_state(state)
    known = _states().get(code)
    return known or JobState(code, code, code.lower(), "unknown", f"Slurm calls it {code}.")


def compact_state(text: str) -> str:
    """The compact code of a state in either spelling; a word that is not known stays as it is."""
    text = printable(text.strip())
    if len(text) <= _LONGEST_CODE:
        return text
    return _codes().get(text.partition(" ")[0].upper(), text)


def order(state: str) -> int:
    """The place of a compact code in lists: running, completing, configuring, suspended, pending, the rest."""
    return _ORDER.get(state, len(_GROUPS))


@cache
def _states() -> dict[str, JobState]:
    return {code: JobState(code=code, **fields) for code, fields in load("slurm_job_states").items()}


@cache
def _codes() -> dict[str, str]:
    return {state.name: code for code, state in _states().items()}
