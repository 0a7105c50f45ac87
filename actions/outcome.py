"""What a run tells while it goes on, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from actions.errors import Refusal
from actions.spec import Finding, Look, Plan, Step
from cockpit.models import Fault, FaultKind

# After these nobody knows whether a command took effect: only a look at the cluster tells.
UNCLEAR = frozenset({FaultKind.TIMEOUT, FaultKind.CONTROLLER_HUNG, FaultKind.UNREACHABLE, FaultKind.GARBLED})
# After these the next command would fare no better.
HOPELESS = UNCLEAR | {FaultKind.CONTROLLER_DOWN, FaultKind.AUTH, FaultKind.HOST_KEY, FaultKind.DENIED}


@dataclass(frozen=True, slots=True)
class Progress:
    """One thing to show: `kind` is step, done, watch, note or end; `look` says how a watched target stands."""

    kind: str
    text: str
    step: int | None = None  # from 0
    target: str = ""
    look: Look | None = None


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class StepResult:
    """One command that was run; `rc` is None when it gave no answer."""

    step: Step
    rc: int | None
    took_s: float
    said: str = ""
    fault: Fault | None = None
    failed: frozenset[str] = frozenset()  # the subjects that its error is about
    found: object = None  # what a step measured, such as a PairResult

    @property
    def unclear(self) -> bool:
        """True when it may have taken effect although it failed."""
        return self.fault is not None and self.fault.kind in UNCLEAR

    @property
    def denied(self) -> bool:
        """True when it was refused for want of a right, and so has changed nothing."""
        return self.fault is not None and self.fault.kind is FaultKind.DENIED


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a run. outcome: ok, failed, unverified, cancelled or refused; `text` says it in a sentence."""

    plan: Plan
    outcome: str
    text: str
    audit_id: str = ""
    steps: tuple[StepResult, ...] = ()
    findings: Mapping[str, Finding] = field(default_factory=dict)  # target -> how it was last seen
    notes: tuple[str, ...] = ()
    refusal: Refusal | None = None
    took_s: float = 0.0

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def changed(self) -> frozenset[str]:
        """The targets that were, or may have been, changed.

        Of a list Slurm changes all that it can and then tells one error: what is as wished after that counts, too.
        """
        good = {name for name, finding in self.findings.items() if finding.look in (Look.DONE, Look.UNDERWAY)}
        return frozenset(
            name
            for each in self.steps
            for name in each.step.subjects
            if each.unclear or name not in each.failed or (name in good and not each.denied)
        )

    @property
    def can_undo(self) -> bool:
        """True when something was done and there is a way back."""
        return bool(self.plan.undo) and bool(self.changed)
