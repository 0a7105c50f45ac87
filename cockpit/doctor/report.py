"""Results as text, a step a line with its remedies below, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cockpit.doctor.models import Result, Verdict
from cockpit.text import printable
from cockpit.words import plural

SCHEMA = 1
_WORDS = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "FAIL",
    Verdict.UNKNOWN: "unknown",
    Verdict.NOT_APPLICABLE: "n/a",
    Verdict.NOT_TRIED: "not tried",
}
_WORD_WIDTH, _TITLE_WIDTH = 9, 28


def result_lines(result: Result) -> list[str]:
    """The line of one step, and below it what to do."""
    word = _WORDS[result.verdict]
    first = f"{word:{_WORD_WIDTH}}  {result.title:{_TITLE_WIDTH}}  {printable(result.finding.detail)}"
    indent = " " * (_WORD_WIDTH + 2)
    return [first, *(f"{indent}-> {printable(line)}" for line in result.finding.remedy)]


def summary(results: Iterable[Result]) -> str:
    """How many of each, in one line."""
    found = list(results)
    tally = {verdict: sum(1 for result in found if result.verdict is verdict) for verdict in Verdict}
    rest = [
        f"{tally[verdict]} {_WORDS[verdict]}" for verdict in Verdict if tally[verdict] and verdict is not Verdict.FAIL
    ]
    bad = plural(tally[Verdict.FAIL], "failure") if tally[Verdict.FAIL] else "no failure"
    return f"{bad}; {', '.join(rest)}" if rest else bad


def result_json(result: Result) -> dict[str, Any]:
    """One step for scripts."""
    return {
        "id": result.id,
        "title": result.title,
        "verdict": result.verdict.value,
        "detail": result.finding.detail,
        "remedy": list(result.finding.remedy),
        "parts": {name: verdict.value for name, verdict in result.finding.parts.items()},
        "took_s": round(result.took_s, 3),
    }
