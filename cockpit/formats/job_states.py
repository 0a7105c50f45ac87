"""Slurm's job states in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cockpit.catalog.reader import load
from cockpit.text import printable

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


@cache
def _states() -> dict[str, JobState]:
    return {code: JobState(code=code, **fields) for code, fields in load("slurm_job_states").items()}


@cache
def _codes() -> dict[str, str]:
    return {state.name: code for code, state in _states().items()}
