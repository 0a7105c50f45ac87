"""What the error texts and exit codes of a collective test mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from cockpit.catalog.reader import load


@dataclass(frozen=True, slots=True)
class ErrorFact:
    """One text: its kind, what it means, what to do; `line` when the line alone is a failure."""

    kind: str
    means: str
    next_step: str
    line: bool = False


@cache
def _entries() -> tuple[tuple[re.Pattern[str], ErrorFact], ...]:
    return tuple(
        (re.compile(entry["match"]), ErrorFact(entry["kind"], entry["means"], entry["next"], entry.get("line", False)))
        for entry in load("nccl_errors")["errors"]
    )


def error_fact(text: str) -> ErrorFact | None:
    """The first entry of the catalogue that the text matches."""
    return next((fact for pattern, fact in _entries() if pattern.search(text)), None)


def failing_line(text: str) -> ErrorFact | None:
    """The entry for a line that is a failure by itself, such as a launcher's refusal."""
    return next((fact for pattern, fact in _entries() if fact.line and pattern.search(text)), None)


def exit_code_fact(code: int) -> ErrorFact | None:
    """What an exit code of nccl-tests says; None for one that it does not use."""
    entry = load("nccl_errors")["exit_codes"].get(code)
    return None if entry is None else ErrorFact(entry["kind"], entry["means"], "")
