"""What environment variables really do on EFA."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from cockpit.catalog.reader import load


@cache
def _remarks() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(entry["match"]), entry["says"]) for entry in load("nccl_env")["remarks"])


def env_remarks(names: Iterable[str]) -> tuple[str, ...]:
    """One line for each variable that the catalogue says something about."""
    found = []
    for name in names:
        says = next((says for pattern, says in _remarks() if pattern.fullmatch(name)), None)
        if says is not None:
            found.append(f"{name}: {says}")
    return tuple(found)
