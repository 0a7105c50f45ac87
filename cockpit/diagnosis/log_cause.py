"""What a log tells together: the first cause, what only follows from it, and what to do next.

The rule of order: the strongest class counts, then the earliest line of it, unless that comes later than a time-out
after something else had broken already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cockpit.catalog.log_patterns import CRITICAL, INFO
from cockpit.diagnosis import log_details
from cockpit.diagnosis.naming import ranks_word
from cockpit.diagnosis.positions import Mismatch, mismatch_of
from cockpit.formats.log_models import Finding, LogDigest
from cockpit.words import plural

ORDER = ("hardware", "storage", "memory", "code", "network", "timeout", "launcher", "slurm")
TIMEOUT_S = 600.0  # PyTorch's, where no line tells another


@dataclass(frozen=True, slots=True)
class Cause:
    """The line where it began, as far as this log tells. `ranks` and `nodes` are those to look at."""

    id: str
    class_: str
    title: str
    sentence: str
    line: int
    text: str
    at: str
    ranks: tuple[int, ...]
    nodes: tuple[str, ...]
    meaning: str
    next_step: str
    severity: str = CRITICAL


@dataclass(frozen=True, slots=True)
class Victim:
    """A kind of line that only follows from something else, or ranks that only waited."""

    id: str
    sentence: str
    line: int
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that one log tells."""

    digest: LogDigest
    cause: Cause | None
    victims: tuple[Victim, ...] = ()
    next_steps: tuple[str, ...] = ()
    mismatch: Mismatch | None = None

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if self.cause is not None:
            return self.cause.sentence
        if self.digest.size_bytes == 0:
            return "it is empty"
        return f"no known sign of trouble in {plural(self.digest.lines, 'line')}"


def explain(digest: LogDigest) -> Explanation:
    """The cause, the victims and the next steps."""
    mismatch = mismatch_of(digest.positions)
    head = _head(digest.findings)
    if head is None:
        return Explanation(digest, None, (), (), mismatch)
    cause = _cause(head, digest, mismatch)
    victims = tuple(_victims(head, digest, cause))
    return Explanation(digest, cause, victims, _steps(cause, digest), mismatch)


def _head(findings: Iterable[Finding]) -> Finding | None:
    telling = [each for each in findings if each.sign.severity != INFO]
    for group in (
        [each for each in telling if each.sign.is_error],
        [each for each in telling if not each.sign.effect],
        telling,
    ):
        if group:
            return min(_in_time(group), key=_strength)
    return None


def _strength(finding: Finding) -> tuple[int, int, int]:
    """Strongest class first, then the earliest line."""
    # Within a class some lines say more than what stands before them.
    tells = {"desync": 0, "script-killed": 2}.get(finding.sign.id, 1)
    return ORDER.index(finding.sign.class_), tells, finding.line


def _in_time(findings: list[Finding]) -> list[Finding]:
    """Without those that came more than a time-out later than the first one that tells its time."""
    dated = [each.at_s for each in findings if each.at_s is not None]
    if not dated:
        return findings
    waited = max((_waited_s(each) for each in findings), default=0.0)
    limit = min(dated) + max(TIMEOUT_S, waited)
    return [each for each in findings if each.at_s is None or each.at_s <= limit]


def _waited_s(finding: Finding) -> float:
    text = finding.sign.fact("timeout_ms")
    return int(text) / 1000 if text.isdigit() and len(text) < 12 else 0.0


def _cause(head: Finding, digest: LogDigest, mismatch: Mismatch | None) -> Cause:
    sign = head.sign
    node = sign.fact("node")
    rank = sign.fact("rank")
    cause = Cause(
        id=sign.id,
        class_=sign.class_,
        title=sign.title,
        sentence="",
        line=head.line,
        text=head.text,
        at=head.at,
        ranks=(int(rank),) if rank.isdigit() else head.ranks,
        nodes=(node,) if node else head.nodes,
        meaning=sign.meaning,
        next_step=sign.next_step,
        severity=sign.severity,
    )
    if sign.id == "watchdog" and mismatch is not None:
        return replace(cause, **log_details.of_mismatch(mismatch))
    return replace(cause, **log_details.of_finding(head, digest))


def _victims(head: Finding, digest: LogDigest, cause: Cause) -> Iterable[Victim]:
    for each in digest.findings:
        if each is head or each.sign.severity == INFO:
            continue
        ranks = tuple(rank for rank in each.ranks if rank not in cause.ranks)
        follows = each.sign.effect or (each.sign.class_ == "timeout" and cause.class_ != "timeout")
        if follows or ORDER.index(each.sign.class_) > ORDER.index(cause.class_):
            who = f" · {ranks_word(ranks)}" if ranks else ""
            yield Victim(each.sign.id, f"{each.sign.title}{who}", each.line, ranks)
    if head.sign.id == "watchdog":
        waited = tuple(rank for rank in head.ranks if rank not in cause.ranks)
        if waited and cause.ranks != head.ranks:
            yield Victim("waited", f"{ranks_word(waited)} only waited", head.line, waited)
    for root in digest.root_causes:
        if root.rank in cause.ranks:
            continue
        how = log_details.exit_word(root.exit_code)
        words = f"torchrun calls rank {root.rank} the root cause: it was the first to END ({how}), not to fail"
        yield Victim("torchrun-root", words, 0, (root.rank,))


def _steps(cause: Cause, digest: LogDigest) -> tuple[str, ...]:
    steps = [cause.next_step]
    timed_out = any(each.sign.id == "watchdog" for each in digest.findings)
    if any(each.sign.id == "no-flight-record" for each in digest.findings):
        steps += [each.sign.next_step for each in digest.findings if each.sign.id == "no-flight-record"]
    if timed_out and cause.class_ == "timeout" and not cause.ranks:
        steps.append("Read the logs of the ranks that wrote no such line; they are the suspects.")
    return tuple(dict.fromkeys(steps))
