"""What each kind of problem means, and the commands that show it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from cockpit.catalog.reader import load


@dataclass(frozen=True, slots=True)
class ProblemFact:
    """`topic` is one of kind_notes.yaml; `show` holds (here, head or node, argv with `{node}` and the like)."""

    means: str = ""
    topic: str = ""
    show: tuple[tuple[str, tuple[str, ...]], ...] = ()


@lru_cache(maxsize=1024)
def problem_fact(key: str) -> ProblemFact:
    """The fact about a problem by its key; an empty one for a kind that is not in the catalogue."""
    for entry in load("problems"):
        if fnmatchcase(key, entry["key"]):
            show = tuple((where, tuple(map(str, argv))) for where, argv in entry.get("show", ()))
            return ProblemFact(entry["means"], entry.get("about", ""), show)
    return ProblemFact()
