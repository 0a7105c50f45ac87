"""One step of the way in, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from cockpit.models import Fault


class Verdict(str, Enum):
    """What came of a step; only FAIL is something to mend."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    UNKNOWN = "unknown"  # it could not be told
    NOT_APPLICABLE = "not applicable"  # this cluster does not need it
    NOT_TRIED = "not tried"  # an earlier step that it rests on failed


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict with its evidence in words, and what to do; `parts` are single verdicts within the step, by name."""

    verdict: Verdict
    detail: str
    remedy: tuple[str, ...] = ()
    parts: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A question put once; it is not put when a step in `after` failed. `look` may raise FaultError."""

    id: str
    title: str
    look: Callable[[], Finding]
    after: tuple[str, ...] = ()
    deadline_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one step, and how long it took."""

    id: str
    title: str
    finding: Finding
    took_s: float

    @property
    def verdict(self) -> Verdict:
        return self.finding.verdict


def passed(detail: str, **parts: Verdict) -> Finding:
    """All is well."""
    return Finding(Verdict.PASS, detail, parts=parts)


def failed(detail: str, *remedy: str) -> Finding:
    """It is not, and this is what to do."""
    return Finding(Verdict.FAIL, detail, tuple(line for line in remedy if line))


def unknown(detail: str, *remedy: str) -> Finding:
    """It could not be told."""
    return Finding(Verdict.UNKNOWN, detail, tuple(line for line in remedy if line))


def not_applicable(detail: str) -> Finding:
    """This cluster does not need it."""
    return Finding(Verdict.NOT_APPLICABLE, detail)


def of_fault(fault: Fault, *remedy: str) -> Finding:
    """A fault as a finding: what it was, its own next step, then what else helps."""
    return failed(f"{fault.what}: {fault.why}", fault.next_step, *remedy)
