"""A plan and its outcome as text and as JSON: the same words in the dialog, from --dry-run and in the log."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from actions import blast
from actions.aws_steps import AWS, WAIT
from actions.outcome import Result
from actions.spec import COUNTED, Look, Plan, Step
from cockpit.text import printable

_MOST_JOBS = 20
_MOST_LEFT = 10
_MARKS = {Look.DONE: "ok", Look.UNDERWAY: "later", Look.WAIT: "not yet", Look.FAILED: "no"}


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its lines.

    kind: commands, jobs, ahead, effects, irreversible, warnings, left_out, for_good or offers.
    Every string is harmless text of one line each; nothing in it is markup.
    """

    kind: str
    title: str
    lines: tuple[str, ...]


def command(argv: Iterable[str]) -> str:
    """One command as a shell would take it, harmless to show."""
    return printable(shlex.join(argv))


def _commands_title(plan: Plan) -> str:
    ways = {step.via for step in plan.steps}
    if ways == {"head"}:
        return f"Commands, on the head of {plan.cluster}"
    return "Steps, in this order" if ways & {"head", AWS, WAIT} else f"Commands, on the nodes of {plan.cluster}"


def _step_line(step: Step) -> str:
    """The command itself; a wait, which is none, as a comment."""
    return f"# {step.title}" if step.via == WAIT else command(step.argv)


def ahead_title(plan: Plan) -> str:
    """How AWS would take the launch, by the worst of the checks."""
    found = Counter(line.split(" ", 1)[0] for line in plan.ahead)
    told = ", ".join(f"{found[word]} {word}" for word in ("fail", "unknown", "warn", "pass") if found[word])
    return f"Before the launch, by AWS: {told}"


def sections(plan: Plan, *, all_jobs: bool = False) -> tuple[Section, ...]:
    """The parts of a plan in the order in which they matter; empty ones are left out."""
    most = len(plan.jobs) if all_jobs else _MOST_JOBS
    # Those who lose work come first, the longest run before others.
    jobs = sorted(plan.jobs, key=lambda job: (not job.loses, -(job.gpu_hours or 0.0)))
    listed = [blast.job_line(job) for job in jobs[:most]]
    if len(jobs) > most:
        listed.append(f"and {len(jobs) - most} more")
    left = [f"{name} {why}" for name, why in plan.left_out[:_MOST_LEFT]]
    if len(plan.left_out) > _MOST_LEFT:
        left.append(f"and {len(plan.left_out) - _MOST_LEFT} more")
    told = blast.summary(plan.jobs)
    found = (
        Section("warnings", "Warning", plan.warnings),
        Section("irreversible", "Cannot be undone", plan.irreversible),
        Section("jobs", f"Whom it touches: {told}" if told else "", tuple(listed)),
        Section("ahead", ahead_title(plan), plan.ahead),
        Section("effects", "What happens", plan.effects),
        Section("left_out", "Left out", tuple(left)),
        Section("commands", _commands_title(plan), tuple(_step_line(step) for step in plan.steps)),
        Section("for_good", "To have it for good", plan.for_good),
        Section("offers", "Instead", tuple(f"{offer.action_id}: {offer.why}" for offer in plan.offers)),
    )
    return tuple(Section(s.kind, printable(s.title), tuple(map(printable, s.lines))) for s in found if s.lines)


def plan_lines(plan: Plan) -> list[str]:
    """The whole plan as plain lines."""
    where = f"{plan.cluster}{' (production)' if plan.production else ''}"
    lines = [printable(f"{plan.title} on {where}")]
    if not plan.jobs:
        lines.append("  touches no job")
    for section in sections(plan):
        lines += [section.title, *(f"  {line}" for line in section.lines)]
    if plan.tier >= COUNTED:
        lines.append(f"Tier {plan.tier}: {plan.confirm.prompt}")
    return lines


def result_lines(result: Result) -> list[str]:
    """What came of it, with every target that is not as wished."""
    open_ = [(name, f) for name, f in result.findings.items() if f.look is not Look.DONE]
    lines = [f"{result.outcome}: {result.text}"]
    lines += [f"  {_MARKS[finding.look]:<8} {name}: {finding.text}" for name, finding in open_]
    lines += [f"  {note}" for note in result.notes]
    if result.audit_id and result.can_undo:
        lines.append(f"  to take it back: cockpit undo {result.audit_id}")
    return [printable(line) for line in lines]


def plan_record(plan: Plan) -> dict[str, Any]:
    """A plan as JSON; missing values null."""
    return {
        "action": plan.action_id,
        "title": plan.title,
        "scope": plan.targets.scope.value,
        "targets": plan.targets.folded,
        "names": list(plan.targets.names),
        "tier": plan.tier,
        "confirm": plan.confirm.kind,
        "count": plan.count,
        "reason": plan.reason or None,
        "commands": [list(step.argv) for step in plan.steps if step.via != WAIT],
        "steps": [{"title": step.title, "via": step.via, "writes": step.writes} for step in plan.steps],
        "jobs": [asdict(job) | {"gpu_hours": job.gpu_hours} for job in plan.jobs],
        "gpu_hours_lost": plan.gpu_hours_lost,
        "effects": list(plan.effects),
        "ahead": list(plan.ahead),
        "irreversible": list(plan.irreversible),
        "warnings": list(plan.warnings),
        "left_out": [{"name": name, "why": why} for name, why in plan.left_out],
        "for_good": list(plan.for_good),
        "offers": [{"action": offer.action_id, "why": offer.why} for offer in plan.offers],
    }


def result_record(result: Result) -> dict[str, Any]:
    """What came of it as JSON."""
    return {
        "outcome": result.outcome,
        "text": result.text,
        "audit_id": result.audit_id or None,
        "took_s": round(result.took_s, 2),
        "steps": [
            {
                "command": list(each.step.argv),
                "rc": each.rc,
                "took_s": round(each.took_s, 3),
                "said": each.said,
                "error": each.fault.line() if each.fault else None,
            }
            for each in result.steps
        ],
        "targets": {name: {"state": f.look.value, "text": f.text} for name, f in result.findings.items()},
        "notes": list(result.notes),
    }
