"""Why a job waits or how it ended: Slurm's reason codes and free texts, explained."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

from cockpit.catalog.reader import load
from cockpit.formats.hostlist import split_outside
from cockpit.text import printable

_LOOK = "Compare what it asks for with what its queue has."
_EXACT = "The exact meaning: Slurm's list of job reason codes for this version, and slurmctld's log on the head."
_SHOW = (("squeue", "-j", "{job}", "--start"),)
_UNAVAILABLE = re.compile(r"[\s_]*,?[\s_]*UnavailableNodes:\s*([^()\s]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One reason in words. `code` is Slurm's own text, `hostlist` the nodes it names, if any."""

    code: str
    title: str
    meaning: str
    next_step: str
    hostlist: str = ""
    known: bool = True
    stuck: bool = False  # it will not go away by itself
    show: tuple[tuple[str, ...], ...] = ()  # commands that tell more, with {job} and the like in them


@lru_cache(maxsize=4096)
def is_stuck(reason: str) -> bool:
    """True when the job will not start unless somebody does something."""
    return any(told.stuck for told in explain_reason(reason))


@lru_cache(maxsize=4096)
def explain_reason(reason: str) -> tuple[Explanation, ...]:
    """Every reason in squeue's or scontrol's text, in its order; () for no reason at all.

    squeue joins the reasons of an array's tasks by commas; a text that holds commas itself and a list of
    unavailable nodes are kept whole. Unknown codes come back verbatim, with `known` False and what their name tells.
    """
    rest = printable(reason.strip())
    if rest.startswith("(") and rest.endswith(")") and rest != "(null)":  # squeue's %R
        rest = rest[1:-1]
    found: list[Explanation] = []
    while rest := rest.lstrip(" ,"):
        code, rest = _next_code(rest)
        if code.casefold() in ("none", "(null)"):
            continue
        nodes = _UNAVAILABLE.match(rest)
        if nodes:  # the list itself holds commas, and nothing follows it
            rest = rest[nodes.end() :]
        found.append(_explain(code, nodes[1] if nodes else ""))
    return tuple(dict.fromkeys(found))


def _next_code(text: str) -> tuple[str, str]:
    """The first reason of `text` as written, and what is left behind it."""
    for phrase in _phrases():
        if found := phrase.match(text):
            return found[0], text[found.end() :]
    code = split_outside(text, "([", ")]")[0]
    return code.strip(), text[len(code) :]


def _explain(code: str, hostlist: str) -> Explanation:
    folded = _fold(code.partition(":")[0])
    for pattern, entry in _entries():
        if fnmatchcase(folded, pattern):
            show = tuple(tuple(map(str, argv)) for argv in entry.get("show", ()))
            title, means, step, stuck = entry["title"], entry["means"], entry["next"], entry.get("stuck", False)
            return Explanation(code, title, means, step, hostlist, stuck=stuck, show=show)
    return _guess(code, folded, hostlist)


def _guess(code: str, folded: str, hostlist: str) -> Explanation:
    """What can be said of a reason that a newer Slurm or a plugin of the site writes: what its name tells."""
    fits = (entry for entry in load("slurm_reason_guesses") if any(word in folded for word in entry["words"]))
    entry: dict[str, Any] = next(fits, {})
    by_name = f"; by its name it is about {entry['about']}" if entry else ""
    return Explanation(
        code,
        f"by its name about {entry['about']}" if entry else "a reason the cockpit does not know",
        "Slurm's own word, which the cockpit's catalogue does not have: a newer Slurm, or a plugin of the "
        f"site{by_name}. Whether it goes away by itself is not known.",
        f"{entry.get('next', _LOOK)} {_EXACT}",
        hostlist,
        known=False,
        show=tuple(tuple(map(str, argv)) for argv in entry.get("show", _SHOW)),
    )


def _fold(code: str) -> str:
    return code.casefold().replace(" ", "").replace("_", "")


@cache
def _entries() -> tuple[tuple[str, dict[str, Any]], ...]:
    """(pattern, entry) in the order in which they are tried: exact codes first, then the longest pattern."""
    pairs = [(_fold(str(code)), entry) for entry in load("slurm_reasons") for code in entry["codes"]]
    return tuple(sorted(pairs, key=lambda pair: ("*" in pair[0], -len(pair[0]))))


@cache
def _phrases() -> tuple[re.Pattern[str], ...]:
    """Reasons that hold a comma themselves; scontrol writes their blanks as underscores."""
    codes = [str(code) for entry in load("slurm_reasons") for code in entry["codes"]]
    return tuple(
        re.compile(re.escape(code).replace(r"\ ", "[ _]?"), re.IGNORECASE)
        for code in sorted(codes, key=len, reverse=True)
        if "," in code
    )
