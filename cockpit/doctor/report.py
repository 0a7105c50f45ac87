"""Results as text, a step a line with its remedies below, and as JSON."""

from __future__ import annotations

import shutil
import sys
import textwrap
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
_USUAL_WIDTH = 120


def terminal_width() -> int | None:
    """The width of the terminal that is printed to; None for a file or a pipe, where every step stays one line."""
    return shutil.get_terminal_size((_USUAL_WIDTH, 1)).columns if sys.stdout.isatty() else None


def result_lines(result: Result, width: int | None = None) -> list[str]:
    """The line of one step, and below it what to do; wrapped at `width` cells, but never the lines to be copied."""
    first = f"{_WORDS[result.verdict]:{_WORD_WIDTH}}  {result.title:{_TITLE_WIDTH}}  {printable(result.finding.detail)}"
    indent = " " * (_WORD_WIDTH + 2)
    remedies = [f"{indent}-> {printable(line)}" for line in result.finding.remedy]
    return [*_wrapped(first, " " * (_WORD_WIDTH + _TITLE_WIDTH + 4), width), *remedies]


def _wrapped(line: str, indent: str, width: int | None) -> list[str]:
    if width is None or width < 2 * len(indent):
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True)


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
