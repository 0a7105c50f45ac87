"""A site's own commands as checks: asked in the same look, read by a rule of a few words."""

from __future__ import annotations

import re
from typing import Any

from cockpit.checks.facts import Facts, unanswered
from cockpit.checks.models import Result, Verdict
from cockpit.config import OwnCheck
from cockpit.formats.look import Part, PartState

PREFIX = "own."
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_NAGIOS = {0: Verdict.PASS, 1: Verdict.WARN, 2: Verdict.FAIL}


def own_parts(checks: tuple[OwnCheck, ...], kind: str) -> dict[str, dict[str, Any]]:
    """What they ask of a node, by the name of the part."""
    return {
        f"{PREFIX}{check.name}": {"kind": "run", "argv": list(check.argv), "timeout_s": check.timeout_s}
        for check in checks
        if kind in check.kinds
    }


def judge_own(facts: Facts, check: OwnCheck) -> Result:
    """What one of them says of the node."""
    name = f"{PREFIX}{check.name}"
    part = facts.part(name)
    bad = Verdict(check.severity)
    if part.state in (PartState.LATE, PartState.ABSENT, PartState.UNASKED):
        verdict, says = Verdict.UNKNOWN, f"{check.argv[0]} {unanswered(part)}"
    else:
        verdict, says = _read(part, check, bad)
    step = check.next_step if verdict in (Verdict.FAIL, Verdict.WARN) else ""
    return Result(name, verdict, says[:160], part.lines[:40], step, (" ".join(check.argv),))


def _read(part: Part, check: OwnCheck, bad: Verdict) -> tuple[Verdict, str]:
    text = "\n".join(part.lines)
    if check.parse == "nagios":
        return _NAGIOS.get(part.rc if part.rc is not None else -1, Verdict.UNKNOWN), part.first or f"status {part.rc}"
    if check.parse == "number":
        return _number(text, check, bad)
    if check.parse in ("match", "no_match"):
        found = re.search(check.pattern, text)
        fits = (found is not None) is (check.parse == "match")
        line = next((line for line in part.lines if re.search(check.pattern, line)), part.first)
        return (Verdict.PASS if fits else bad), line or "no output"
    return (Verdict.PASS if part.rc == 0 else bad), part.first or f"status {part.rc}"


def _number(text: str, check: OwnCheck, bad: Verdict) -> tuple[Verdict, str]:
    found = re.search(check.pattern or _NUMBER, text)
    try:
        value = float(found[1] if found and found.re.groups else found[0] if found else "")
    except ValueError:
        return Verdict.UNKNOWN, "no number in its output"
    over = check.above is not None and value > check.above
    under = check.below is not None and value < check.below
    limit = f", limit {check.above:g}" if over and check.above is not None else ""
    limit = f", limit {check.below:g}" if under and check.below is not None else limit
    return (bad if over or under else Verdict.PASS), f"{value:g}{limit}"
