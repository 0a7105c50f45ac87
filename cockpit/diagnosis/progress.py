"""Whether a job goes on, by what it writes: step numbers, their rhythm, and what it says it is doing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from cockpit.formats.log_voice import moment_of

_STEP = re.compile(
    r"(?i)\b(?:global[ _]?)?(?:step|iter(?:ation)?|batch)\b[\s:=#\[(]*(\d{1,12})(?:\s*(?:/|of)\s*(\d{1,12}))?"
)
_BAR = re.compile(r"\|\s*(\d{1,12})/(\d{1,12})\s*\[")
# What a program says before it is quiet for long; the last such line counts, until a step comes.
_PHASES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("checkpoint", re.compile(r"(?i)\b(sav|writ)ing\b.{0,40}\b(checkpoint|model|state)|checkpoint(ing)? started")),
    ("evaluation", re.compile(r"(?i)\b(evaluat|validat)(ing|ion)\b(?!.{0,60}\b(done|finished|complete|loss|acc))")),
    ("compile", re.compile(r"(?i)\bcompiling\b|torch\.compile|inductor.{0,30}\b(compil|autotun)|building extension")),
    ("loading", re.compile(r"(?i)\bloading (checkpoint|model|weights|dataset|.{0,30}shards)|resuming from")),
)  # fmt: skip
PHASE_WORDS = {
    "checkpoint": "it writes a checkpoint",
    "evaluation": "it evaluates",
    "compile": "it compiles",
    "loading": "it still loads",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """`rhythm_s` is the usual time between steps, or else between lines, as far as lines tell their times."""

    step: int | None = None
    steps: int | None = None  # of how many
    rhythm_s: float | None = None
    longest_s: float | None = None  # the longest pause between two such lines
    phase: str = ""
    phase_text: str = ""

    def in_rhythm(self, age_s: float | None) -> bool:
        """Whether the next line is not due yet, so that the silence means nothing."""
        if age_s is None or self.rhythm_s is None:
            return False
        return age_s <= max(3 * self.rhythm_s, 1.5 * (self.longest_s or 0.0))

    def stale(self, age_s: float | None) -> bool | None:
        """Whether a silence of that length is longer than its own rhythm explains; None when that is not known."""
        if age_s is None or self.rhythm_s is None:
            return None
        return age_s > max(30.0, 6 * self.rhythm_s, 2 * (self.longest_s or 0.0))


def progress_of(lines: Sequence[str]) -> Progress:
    """From the last lines of a log, oldest first."""
    step: tuple[int, int | None] | None = None
    phase, phase_text = "", ""
    times: list[float] = []
    all_times: list[float] = []
    for text in lines:
        at_s = moment_of(text)[1]
        if at_s is not None:
            all_times.append(at_s)
        if (found := step_of(text)) is not None:
            step, phase, phase_text = found, "", ""
            if at_s is not None:
                times.append(at_s)
            continue
        for name, pattern in _PHASES:
            if pattern.search(text):
                phase, phase_text = name, text[:300]
    gaps = _gaps(times) or _gaps(all_times)
    return Progress(
        step=step[0] if step else None,
        steps=step[1] if step else None,
        rhythm_s=median(gaps) if len(gaps) >= 3 else None,
        longest_s=max(gaps) if len(gaps) >= 3 else None,
        phase=phase,
        phase_text=phase_text,
    )


def step_of(text: str) -> tuple[int, int | None] | None:
    """The step number a line tells, and of how many."""
    found = _STEP.search(text) or _BAR.search(text)
    return None if found is None else (int(found[1]), int(found[2]) if found[2] else None)


def _gaps(times: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(times) if after >= before]
