"""What lines in a job's output mean: the catalogue behind log_patterns.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cockpit.catalog.reader import load

CRITICAL, WARN, INFO = "critical", "warn", "info"


@dataclass(frozen=True, slots=True)
class LogPattern:
    """One kind of line. `effect`: it follows from something else, so that it is never the first error."""

    id: str
    title: str
    severity: str  # critical, warn or info
    class_: str  # hardware, storage, memory, code, network, timeout, launcher or slurm
    meaning: str
    next_step: str
    find: tuple[str, ...]  # each such line holds one of these
    match: re.Pattern[str]
    effect: bool = False
    near: bool = False  # `find` is too common to search a whole file for
    source: str = ""


@cache
def log_patterns() -> tuple[LogPattern, ...]:
    """Every kind of line; the first that fits a line is the one."""
    return tuple(map(_pattern, load("log_patterns")["patterns"]))


@cache
def first_error_texts() -> tuple[str, ...]:
    """Plain texts of which the first error of a file holds one: what to search a whole file for."""
    kinds = [one for one in log_patterns() if one.severity == CRITICAL or one.id == "xid"]
    return tuple(dict.fromkeys(text for kind in kinds if not (kind.effect or kind.near) for text in kind.find))


def _pattern(entry: Mapping[str, Any]) -> LogPattern:
    return LogPattern(
        id=entry["id"],
        title=entry["title"],
        severity=entry["severity"],
        class_=entry["class"],
        meaning=entry["means"],
        next_step=entry["next"],
        find=tuple(entry["find"]),
        match=re.compile(entry["match"]),
        effect=entry.get("effect", False),
        near=entry.get("near", False),
        source=entry["from"],
    )
