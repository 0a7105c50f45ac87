"""What the first run says, as lines. Imports no Textual."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cockpit.doctor.models import Result, Verdict
from cockpit.setup.find import Candidate, Found
from cockpit.setup.trial import Trial, failures
from cockpit.words import plural
from screens.lines import Line

_SHOWN = {
    Verdict.PASS: ("pass", "ok"),
    Verdict.FAIL: ("FAIL", "critical"),
    Verdict.UNKNOWN: ("unknown", "unknown"),
    Verdict.NOT_APPLICABLE: ("n/a", "dim"),
    Verdict.NOT_TRIED: ("not tried", "dim"),
}
_TITLE_WIDTH, _NAME_WIDTH = 28, 20


def welcome(path: Path) -> list[Line]:
    """Why the cockpit shows no cluster."""
    return [
        [("No cluster is set up yet.", "bright")],
        [(f"{path} is not there, and this machine has no Slurm.", "dim")],
    ]


def candidate_line(candidate: Candidate) -> Line:
    """One cluster or host that was found."""
    name = f"{candidate.name:<{_NAME_WIDTH}}"
    return [(name, "bright"), f"  {candidate.head}  ", (candidate.told, "dim")]


def found_lines(found: Found | None) -> list[Line]:
    """What stands above the list."""
    if found is None:
        return [[("Looking through ~/.ssh/config, and for ParallelCluster stacks in AWS …", "dim")]]
    lines: list[Line] = [
        [f"{plural(len(found.candidates), 'place')} found. ", ("Choose one, or type the head below.", "dim")]
    ]
    if found.fault is not None:
        elsewhere = "; `cockpit init --profile P --region R` looks elsewhere"
        lines.append([(f"AWS tells no cluster: {found.fault.why.rstrip('.')}{elsewhere}", "dim")])
    return lines


def result_lines(result: Result) -> list[Line]:
    """One step, and what to do about it."""
    word, token = _SHOWN[result.verdict]
    first: Line = [(f"{word:<9}", token), f"  {result.title:<{_TITLE_WIDTH}}  ", (result.finding.detail, _tone(result))]
    remedies: list[Line] = [[("           -> ", "dim"), remedy] for remedy in result.finding.remedy]
    return [first, *remedies]


def _tone(result: Result) -> str:
    return "dim" if result.verdict in (Verdict.NOT_APPLICABLE, Verdict.NOT_TRIED) else ""


def outcome_lines(trial: Trial, path: Path) -> list[Line]:
    """What came of the test, and what enter does now."""
    bad = failures(trial.results)
    if not trial.usable:
        return [
            [
                ("Slurm is not reached, so nothing is written. ", "critical"),
                "Mend the first failure, then r tests again.",
            ]
        ]
    mend = f" {plural(len(bad), 'step')} failed; the rest works without." if bad else ""
    added = "adds it to" if path.exists() else "writes"
    return [[("The way is open.", "ok"), mend, " ", ("enter", "accent"), f" {added} {path} and opens the cluster."]]


def keys_line(keys: Sequence[tuple[str, str]]) -> Line:
    """The keys that work here."""
    return [piece for key, words in keys for piece in ((f" {key} ", "accent"), f"{words} ")]
