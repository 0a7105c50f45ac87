"""A running action, and what came of it, as lines: steps, what Slurm shows by now, the outcome. Imports no Textual."""

from __future__ import annotations

from collections.abc import Mapping

from actions.outcome import Result
from actions.plan_lines import command
from actions.spec import Finding, Look, Scope
from cockpit.formats.hostlist import brief
from cockpit.models import Health
from cockpit.text import printable
from cockpit.words import plural, span
from screens.lines import Line, Piece, section
from screens.runs import Run
from themes import STATE_TOKENS
from themes.glyphs import UNICODE, Signs

MOST_NAMES = 60  # cells of the names of a group
OUTCOMES: Mapping[str, tuple[Health, str]] = {
    "ok": (Health.OK, ""),
    "failed": (Health.CRITICAL, "failed"),
    "unverified": (Health.WARN, "not seen to be true"),
    "cancelled": (Health.WARN, "stopped"),
    "refused": (Health.UNKNOWN, "refused, nothing was sent"),
}
_LOOKS: Mapping[Look, tuple[Health | None, str]] = {
    Look.DONE: (Health.OK, "done"),
    Look.UNDERWAY: (Health.DRAINED, "accepted"),
    Look.WAIT: (None, "not yet"),
    Look.FAILED: (Health.CRITICAL, "failed"),
}


def outcome_line(result: Result, signs: Signs = UNICODE) -> Line:
    """What came of it in one sentence, with its sign."""
    health, word = OUTCOMES.get(result.outcome, (Health.UNKNOWN, result.outcome))
    token = STATE_TOKENS[health]
    words = f"{signs.states[health]} {word}: " if word else f"{signs.states[health]} "
    return [(words, token), (printable(result.text), "bright")]


def run_lines(run: Run, steady: float, signs: Signs = UNICODE) -> list[Line]:
    """Everything of a run, its outcome first once there is one."""
    result = run.result
    lines: list[Line] = []
    if result is not None:
        lines += [
            outcome_line(result, signs),
            *([(f"  {printable(note)}", "warning")] for note in result.notes),
            [],
        ]
    lines += _steps(run, result, signs)
    lines += _watch(run, result, steady, signs)
    if result is None:
        lines += [[(printable(note), "warning")] for note in run.notes]
    return lines


def _steps(run: Run, result: Result | None, signs: Signs) -> list[Line]:
    lines: list[Line] = [section(plural(len(run.plan.steps), "command"))]
    for number, step in enumerate(run.plan.steps):
        said = run.said.get(number)
        if said is not None:
            mark, words = (signs.states[Health.OK], ""), said
            if result is not None and number < len(result.steps) and result.steps[number].fault is not None:
                mark = (signs.states[Health.CRITICAL], "critical")
        elif number == run.step:
            mark, words = (signs.right, "accent"), "sent, no answer yet"
        else:
            mark, words = (signs.dot, "dim"), "not sent" if result is not None or run.stopping else "next"
        lines.append([("  ", ""), mark, " ", printable(step.title), (f"  {printable(words)}", "dim")])
        lines.append([(f"      {command(step.argv)}", "dim")])
    return lines


def _watch(run: Run, result: Result | None, steady: float, signs: Signs) -> list[Line]:
    found = result.findings if result is not None else run.seen
    if run.watch_at is None and not found:
        return []
    lines: list[Line] = [[], [(_seen_by(run), "bright"), (_pace(run, result, steady), "dim")]]
    for (look, words), names in _alike(found).items():
        health, word = _LOOKS[look]
        sign = signs.dot if health is None else signs.states[health]
        token = "dim" if health is None else "" if health is Health.OK else STATE_TOKENS[health]
        # Stretched, so that those of one kind stand under each other.
        told: list[Piece] = [(f"  {sign} {word:<9}", token), _names(run, names), f"  {printable(words)}"]
        lines.append(told)
    if result is None and not found:
        lines.append([("  nothing yet", "dim")])
    return lines


def _seen_by(run: Run) -> str:
    return "What AWS and Slurm show" if run.plan.targets.scope is Scope.CLUSTER else "What Slurm shows"


def _pace(run: Run, result: Result | None, steady: float) -> str:
    count = f"  {run.settled} of {max(run.plan.count, len(run.seen))}"
    if result is not None or run.watch_at is None:
        return ""
    limit = f", gives up after {span(run.deadline_s)}" if run.deadline_s is not None else ""
    return f"{count}, looking for {span(steady - run.watch_at)}{limit}"


def _alike(found: Mapping[str, Finding]) -> dict[tuple[Look, str], list[str]]:
    """Targets of which the same is known together, those that are not as wished first."""
    groups: dict[tuple[Look, str], list[str]] = {}
    for name, finding in tuple(found.items()):
        groups.setdefault((finding.look, finding.text), []).append(name)
    order = (Look.FAILED, Look.WAIT, Look.UNDERWAY, Look.DONE)
    return dict(sorted(groups.items(), key=lambda item: order.index(item[0][0])))


def _names(run: Run, names: list[str]) -> str:
    if run.plan.targets.scope is Scope.NODE:
        return printable(brief(names, MOST_NAMES))
    shown = ", ".join(names[:5])
    return printable(shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more")
