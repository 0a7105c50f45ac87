"""A diagnosis as the lines of a text view: the verdict, what to do, the ranks, what speaks for it. No Textual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cockpit.catalog.log_patterns import INFO
from cockpit.diagnosing import DiagnosisLook
from cockpit.diagnosis.cases_network import efa_words
from cockpit.diagnosis.diagnose import Diagnosis
from cockpit.diagnosis.evidence import Evidence, LogEvidence
from cockpit.diagnosis.gathered import GatheredGpu
from cockpit.diagnosis.hypothesis import (
    ENDED,
    HUNG,
    NOT_HUNG,
    SLOW,
    UNCLEAR,
    WAITING,
    Hypothesis,
    Move,
)
from cockpit.diagnosis.naming import folded
from cockpit.diagnosis.stacks import StackGroup
from cockpit.formats.hostlist import brief
from cockpit.formats.log_models import Finding
from cockpit.models import Health
from cockpit.words import plural, span
from screens.hang_grid import grid_lines
from screens.lines import Line, Link, Piece, Subject, section
from themes import STATE_TOKENS
from themes.glyphs import UNICODE, Signs

_HEALTH: Mapping[str, Health] = {
    HUNG: Health.CRITICAL,
    SLOW: Health.WARN,
    WAITING: Health.WARN,
    NOT_HUNG: Health.OK,
    ENDED: Health.UNKNOWN,
    UNCLEAR: Health.UNKNOWN,
}
_HYPOTHESES, _GROUPS, _FRAMES, _ERRORS, _LOGS, _MISSING = 4, 8, 5, 10, 4, 12
_KEY = 8  # cells for a key and the blanks after it


@dataclass(frozen=True, slots=True)
class Shown:
    """What the lines depend on besides the look: the time, the signs, the keys of actions by their id."""

    steady: float = 0.0
    signs: Signs = UNICODE
    keys: Mapping[str, str] = field(default_factory=dict)


def hang_title(look: DiagnosisLook, way: str, shown: Shown) -> list[Piece]:
    """The way here, and how far the look is, or how old."""
    dot = f" {shown.signs.dot} "
    pieces: list[Piece] = [(way, "bright")]
    told = f"{look.answered} of {plural(look.nodes, 'node')} answered" if look.nodes else "asking Slurm"
    if look.running:
        # The key first: a narrow screen cuts the end.
        pieces += [(f"{dot}looking", "accent"), (", esc stops", "dim")]
        return [*pieces, (f": {told}, {span(shown.steady - look.began_at)}", "accent")]
    if look.stopped:
        pieces.append((f"{dot}stopped after {told}", "warning"))
    if look.seen_at is not None:
        pieces.append((f"{dot}looked {span(shown.steady - look.seen_at)} ago, r looks again", "dim"))
    elif look.stopped:
        pieces.append((", r looks again", "dim"))
    return pieces


def hang_lines(look: DiagnosisLook, shown: Shown) -> list[Line]:
    """Everything that is known, what matters first."""
    lines: list[Line] = []
    if look.fault:
        lines += [[("it could not be looked at: ", "warning"), look.fault], [("r tries again", "dim")], []]
    diagnosis = look.diagnosis
    if diagnosis is None:
        return lines or [[("asking Slurm which job it is and where it runs …", "dim")]]
    blocks = (
        _verdict(diagnosis, look, shown.signs),
        _kept(look, shown.signs),
        _changes(look),
        _moves(diagnosis, shown),
        grid_lines(diagnosis.evidence, shown.signs),
        _stacks(diagnosis.groups),
        _errors(diagnosis.evidence),
        _why(diagnosis),
        _logs(diagnosis.evidence),
        _missing(diagnosis.evidence),
    )
    for block in blocks:
        lines += [*block, []] if block else []
    return lines[:-1]


def _verdict(diagnosis: Diagnosis, look: DiagnosisLook, signs: Signs) -> list[Line]:
    verdict = diagnosis.verdict
    health = _HEALTH.get(verdict.state, Health.UNKNOWN)
    token = STATE_TOKENS[health]
    said = verdict.sentence.removeprefix("not hung: ")
    head = f"{signs.states[health]} {verdict.state.upper()}"
    # A possibility among several is no answer: its own sentence says so.
    how_sure = f", {verdict.confidence}: " if verdict.state != UNCLEAR else ": "
    lines: list[Line] = [[(head, token), (how_sure, "dim"), (said, "bright")]]
    job = diagnosis.evidence.job
    if job.job_id:
        told = f" {signs.dot} ".join(word for word in (job.name, job.user, brief(job.nodes, 40)) if word)
        lines.append([("  ", ""), Link(f"job {job.label}", "", Subject("job", job.label)), (f" {told}", "dim")])
    if not verdict.final:
        waits = "more answers come: it may change" if look.running else "not everything was read: see the end"
        lines.append([(f"  {waits}", "warning")])
    return lines


def _kept(look: DiagnosisLook, signs: Signs) -> list[Line]:
    if look.keeping:
        return [[("  the evidence is being written to a file …", "accent")]]
    if not look.kept:
        return []
    if look.kept_well:
        return [[("  evidence kept: ", "accent"), look.kept]]
    return [[(f"  {signs.states[Health.WARN]} evidence ", "warning"), (look.kept, "warning")]]


def _changes(look: DiagnosisLook) -> list[Line]:
    if not look.changes:
        return []
    ago = f"Since the look before, {span(look.before_s)} earlier"
    return [section(ago), *([(f"  {words}", "")] for words in look.changes)]


# What to do.


def moves_of(diagnosis: Diagnosis) -> tuple[Move, ...]:
    """The actions of the first hypothesis that has some, as far as it says the same as the verdict."""
    state = diagnosis.verdict.state
    told = [each for each in diagnosis.hypotheses if each.state == state or state == UNCLEAR]
    return next((each.moves for each in told if each.moves), ())


def rescue_of(diagnosis: Diagnosis) -> tuple[tuple[str, ...], str] | None:
    """The nodes to drain and the job to requeue, where both are to be done; None elsewhere."""
    by_action = {move.action: move.targets for move in moves_of(diagnosis)}
    if "drain" not in by_action or "requeue" not in by_action or not diagnosis.evidence.job.running:
        return None
    return by_action["drain"], by_action["requeue"][0]


def _moves(diagnosis: Diagnosis, shown: Shown) -> list[Line]:
    lines: list[Line] = []
    first = diagnosis.hypotheses[0] if diagnosis.hypotheses else None
    if first is not None and first.next_step:
        lines.append([("  ", ""), first.next_step])
    moves = moves_of(diagnosis)
    both = rescue_of(diagnosis)
    if moves:  # in the order in which they are done: what ends the job ends the evidence
        words = "capture first: all evidence into one file, before the job is ended"
        lines.append([_key("x"), (words, "")])
    if both is not None:
        lines.append(_rescue(*both, shown))
    lines += [_move(move, shown) for move in moves if both is None or move.action != "drain"]
    lines.append([_key("r"), ("look again, and see what has changed since", "")])
    return [section("What to do"), *lines]


def _key(key: str) -> Piece:
    return (f"  {key:<{_KEY}}", "accent")


def _rescue(nodes: tuple[str, ...], job: str, shown: Shown) -> Line:
    key = shown.keys.get("drain", "D")
    told = f": one plan; {key} on a node's name drains it only"
    link = Link(job, "", Subject("job", job))
    return [_key(key), f"drain {brief(nodes, 40)} and requeue ", link, (told, "dim")]


def _move(move: Move, shown: Shown) -> Line:
    kind = "node" if move.action in ("drain", "quarantine", "reboot", "replace") else "job"
    pieces: list[Piece] = [_key(shown.keys.get(move.action, move.key)), f"{move.action} "]
    if len(move.targets) == 1:
        pieces.append(Link(move.targets[0], "", Subject(kind, move.targets[0])))
    else:
        pieces.append(brief(move.targets, 40))
    return [*pieces, (f": {move.words}", "dim")]


# Evidence.


def _stacks(groups: Iterable[StackGroup]) -> list[Line]:
    lines: list[Line] = []
    listed = list(groups)
    for group in listed[:_GROUPS]:
        word = "rank " if len(group.ranks) == 1 else f"{len(group.ranks)} ranks "
        lines.append([(f"  {word}{folded(group.ranks)}", "bright"), f": {group.words}"])
        lines += [[(f"      {place}", "dim")] for place in group.stack[:_FRAMES]]
        if len(group.stack) > _FRAMES:
            lines.append([(f"      and {len(group.stack) - _FRAMES} calls more", "dim")])
        lines += [[(f"      kernel: {place}", "dim")] for place in group.kernel[:3]]
    if len(listed) > _GROUPS:
        lines.append([(f"  and {len(listed) - _GROUPS} more", "dim")])
    return [section("Who stands where, the fewest first"), *lines] if lines else []


def _errors(evidence: Evidence) -> list[Line]:
    """Telling lines of all logs in the order of their times; those without one come last, in the order of the log."""
    found = [(log, each) for log in evidence.logs for each in log.explained.digest.findings if _tells(each)]
    found.sort(key=lambda item: (item[1].at_s is None, item[1].at_s or 0.0))
    lines = [_error(log, each) for log, each in found[:_ERRORS]]
    if len(found) > _ERRORS:
        lines.append([(f"  and {len(found) - _ERRORS} kinds of lines more", "dim")])
    lines += [[("  GPU       ", "dim"), f"{gpu.node}/{gpu.slot}: {word}"] for gpu, word in _gpu_trouble(evidence)]
    lines += [
        [("  EFA       ", "dim"), f"{efa.node}: {efa_words(efa)}", (f" within {span(evidence.now - efa.since)}", "dim")]
        for efa in evidence.efa[:_ERRORS]
        if efa.grown
    ]
    return [section("First errors, in time"), *lines] if lines else []


def _tells(finding: Finding) -> bool:
    return finding.sign.severity != INFO


def _gpu_trouble(evidence: Evidence) -> list[tuple[GatheredGpu, str]]:
    return [(gpu, word) for gpu in evidence.gpus for word in gpu.trouble][:_ERRORS]


def _error(log: LogEvidence, finding: Finding) -> Line:
    cause = log.explained.cause
    first = cause is not None and cause.line == finding.line
    token = "critical" if first else "warning" if not finding.sign.effect else "dim"
    who = f" rank {folded(finding.ranks)}" if len(finding.ranks) == 1 else ""
    who = f" ranks {folded(finding.ranks)}" if len(finding.ranks) > 1 else who
    times = f", {finding.count} times" if finding.count > 1 else ""
    note = " (the cause, as far as this log tells)" if first else " (follows from something else)" * finding.sign.effect
    name = log.path.rpartition("/")[2]
    return [
        (f"  {_time(finding.at_s):<9} ", "dim"),
        (finding.sign.title, token),
        (f"{who}{times}{note} {name}:{finding.line}", "dim"),
    ]


def _time(at_s: float | None) -> str:
    """The time of day on the clock of whoever wrote it."""
    if at_s is None:
        return "no time"
    of_day = int(at_s) % 86400
    return f"{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"


def _why(diagnosis: Diagnosis) -> list[Line]:
    lines: list[Line] = []
    for number, one in enumerate(diagnosis.hypotheses[:_HYPOTHESES]):
        lines += _hypothesis(one, first=number == 0)
    if len(diagnosis.hypotheses) > _HYPOTHESES:
        lines.append([(f"  and {len(diagnosis.hypotheses) - _HYPOTHESES} possibilities more", "dim")])
    return [section("What speaks for it, and against"), *lines] if lines else []


def _hypothesis(one: Hypothesis, *, first: bool) -> list[Line]:
    said = one.title if first else one.sentence.removeprefix("not hung: ")
    lines: list[Line] = [[(f"  {'' if first else 'also '}{one.confidence}: ", "dim"), (said, "bright")]]
    lines += [[("    for      ", "dim"), words] for words in one.speaks_for]
    lines += [[("    against  ", "dim"), words] for words in one.speaks_against]
    if not first and one.next_step:
        lines.append([("    then     ", "dim"), one.next_step])
    return lines


def _logs(evidence: Evidence) -> list[Line]:
    lines: list[Line] = []
    for log in evidence.logs[:_LOGS]:
        age = f"last line {span(log.age_s)} ago" if log.age_s is not None else "its age is not known"
        progress = log.progress
        step = f", step {progress.step}" if progress.step is not None else ""
        usual = f", usually every {span(progress.rhythm_s)}" if progress.rhythm_s else ""
        grows = ", growing" if log.grown else ""
        lines.append([(f"  {log.path}", ""), (f" on {log.where}: {age}{step}{usual}{grows}", "dim")])
        lines += [[(f"    {line}", "dim")] for line in log.lines[-3:]]
    if len(evidence.logs) > _LOGS:
        lines.append([(f"  and {plural(len(evidence.logs) - _LOGS, 'file')} more", "dim")])
    return [section("What it wrote last (o shows all of it)"), *lines] if lines else []


def _missing(evidence: Evidence) -> list[Line]:
    lines: list[Line] = [[(f"  {what}: ", "warning"), why] for what, why in evidence.missing[:_MISSING]]
    for node in evidence.nodes:
        if node.fault and node.next_step:
            lines.append([(f"  {node.name}: next: ", "dim"), node.next_step])
    if len(evidence.missing) > _MISSING:
        lines.append([(f"  and {len(evidence.missing) - _MISSING} more", "dim")])
    return [section("Not known, and why"), *lines] if lines else []
