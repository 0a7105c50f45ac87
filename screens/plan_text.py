"""A plan as its dialog shows it: whom it hurts first, then what is sent, to what, and what else has to be known.

Pure functions, no Textual; the words are those of `actions.plan_lines`, which --dry-run prints too.
"""

from __future__ import annotations

from actions import blast
from actions.plan_lines import Section, sections
from actions.spec import Plan, Scope
from cockpit.text import printable
from cockpit.words import plural
from screens.lines import Line, section

JOBS_FIRST = 6  # jobs that stand at the top; the others come last
CLUSTER_JOBS_FIRST = 200  # of a whole cluster every job that loses its work stands before anything else
# What cannot be undone stands in the head already.
_ORDER = ("jobs", "warnings", "ahead", "effects", "commands", "left_out", "for_good", "offers")
_CLUSTER_ORDER = ("jobs", "effects", "warnings", "ahead", "commands", "left_out", "for_good", "offers")
_AHEAD = {"fail": "critical", "warn": "warning", "unknown": "stale"}
_MONEY = ("saves ", "what it saves ")  # how the effect begins that tells it
_TITLES = {"warnings": "warning"}


def head_lines(plan: Plan, note: str = "") -> list[Line]:
    """What is done to what, and whom that hurts: what must be seen without scrolling."""
    lines: list[Line] = [[(printable(plan.title), "bright")]]
    if note:
        lines.append([(note, "accent")])
    lines.append(hurt_line(plan))
    if plan.targets.scope is Scope.CLUSTER:
        lines += [[(printable(effect), "bright")] for effect in plan.effects if effect.startswith(_MONEY)]
    if failing := sum(line.startswith("fail") for line in plan.ahead):
        words = f"{plural(failing, 'check')} below {'fails' if failing == 1 else 'fail'}"
        lines.append([("AWS would refuse it: ", "critical"), words])
    if plan.irreversible:
        lines.append([("cannot be undone: ", "critical"), printable("; ".join(plan.irreversible))])
    return lines


def hurt_line(plan: Plan) -> Line:
    """Jobs, users and GPU-hours in one line."""
    if not plan.jobs:
        return ["touches no job"]
    told = printable(blast.summary(plan.jobs))
    if plan.losing:
        return [("hurts ", "critical"), told]
    return [("touches ", "warning"), told, (", none of them loses work", "dim")]


def plan_text(plan: Plan) -> list[Line]:
    """Everything else, in the order in which it matters."""
    told = {part.kind: part for part in sections(plan, all_jobs=True)}
    lines: list[Line] = []
    whole = plan.targets.scope is Scope.CLUSTER
    first = max(JOBS_FIRST, min(len(plan.losing), CLUSTER_JOBS_FIRST)) if whole else JOBS_FIRST
    for kind in _CLUSTER_ORDER if whole else _ORDER:
        part = told.get(kind)
        if part is not None and kind == "jobs":
            title, jobs = _jobs(plan, part)
            lines += _part(title, jobs[:first], "", hanging=True)
            if len(jobs) > first:
                lines.insert(-1, [(f"  and {len(jobs) - first} more, at the end", "dim")])
        elif part is not None and kind == "ahead":
            lines += [section(part.title), *map(_ahead_line, part.lines), []]
        elif part is not None:
            lines += _part(_named(part, plan), part.lines, _TITLES.get(kind, ""))
    rest = _jobs(plan, told["jobs"])[1][first:] if "jobs" in told else ()
    return (lines + _part("The other jobs", rest, "", hanging=True))[:-1] if rest else lines[:-1]


def _ahead_line(line: str) -> Line:
    """A check with the colour of what it found."""
    word, _, rest = line.partition(" ")
    return [(f"  {word:<8}", _AHEAD.get(word, "")), rest.lstrip()]


def _jobs(plan: Plan, part: Section) -> tuple[str, tuple[str, ...]]:
    """The heading and a line for each job; what becomes of all of them is said once."""
    fates = {job.fate for job in plan.jobs}
    if len(fates) > 1:
        return part.title, part.lines
    fate = printable(fates.pop())
    each = ", each of them" if len(plan.jobs) > 1 else ""
    return f"{plural(len(plan.jobs), 'job')}{each}: {fate}", tuple(
        line.removesuffix(f"  {fate}") for line in part.lines
    )


def _named(part: Section, plan: Plan) -> str:
    if part.kind == "commands" and any("sudo" in step.argv[:1] for step in plan.steps):
        return f"{part.title}, as root by sudo"
    return part.title


def _part(title: str, lines: tuple[str, ...], token: str, *, hanging: bool = False) -> list[Line]:
    """A heading and its lines; of `hanging` ones what goes on below stands in, so that each name is seen at once."""
    heading: Line = [(title, token)] if token else section(title)
    return [heading, *(_hung(line) if hanging else [f"  {line}"] for line in lines), []]


def _hung(line: str) -> Line:
    name, gap, rest = line.partition("  ")
    return [f"  {name}{gap}", rest]
