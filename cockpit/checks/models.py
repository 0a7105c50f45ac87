"""What checks say, frozen. Every string has passed `cockpit.text.printable`; times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from cockpit.catalog.checks import CheckFact, check_fact
from cockpit.models import Fault, Health


class Verdict(str, Enum):
    """What a check says of a node. UNKNOWN: it could not be asked or answered; that is not the same as bad."""

    FAIL = "fail"
    WARN = "warn"
    UNKNOWN = "unknown"
    PASS = "pass"  # noqa: S105
    NA = "not applicable"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Verdict).index(self)

    @property
    def health(self) -> Health:
        """The state on the screen."""
        return {
            Verdict.FAIL: Health.CRITICAL,
            Verdict.WARN: Health.WARN,
            Verdict.UNKNOWN: Health.UNKNOWN,
        }.get(self, Health.OK)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some; NA when there are none."""
    return min(verdicts, key=lambda verdict: verdict.rank, default=Verdict.NA)


@dataclass(frozen=True, slots=True)
class Result:
    """One check on one node. `says` is the finding in a few words, `evidence` the raw lines it rests on.

    `commands` is what was run or read on the node; `next_step` is "" when there is nothing to do.
    """

    check: str
    verdict: Verdict
    says: str
    evidence: tuple[str, ...] = ()
    next_step: str = ""
    commands: tuple[str, ...] = ()

    @property
    def fact(self) -> CheckFact:
        """What the catalogue tells of this check: title, meaning, thresholds, sources."""
        return check_fact(self.check)


@dataclass(frozen=True, slots=True)
class NodeResult:
    """One node. `fault` is set when it could not be asked; then there are no results."""

    node: str
    at: float
    took_s: float
    results: tuple[Result, ...] = ()
    fault: Fault | None = None
    queue: str = ""
    instance_type: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    asked_again: int = 0  # times it was asked once more, for devices that come late after the boot

    @property
    def verdict(self) -> Verdict:
        """The worst of its checks; UNKNOWN when it could not be asked."""
        return Verdict.UNKNOWN if self.fault else worst(result.verdict for result in self.results)

    @property
    def health(self) -> Health:
        return self.verdict.health

    @property
    def worst(self) -> Result | None:
        """The worst check that is not fine, the first of equals; None when all is well."""
        bad = [result for result in self.results if result.verdict in (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN)]
        return min(bad, key=lambda result: result.verdict.rank, default=None)

    def of(self, check: str) -> Result | None:
        """The result of one check."""
        return next((result for result in self.results if result.check == check), None)

    @property
    def drain_reason(self) -> str:
        """What to propose as the reason of a drain: the worst failing check; "" when none fails."""
        found = self.worst
        if found is None or found.verdict is not Verdict.FAIL:
            return ""
        return f"{found.fact.title}: {found.says}"[:180]


@dataclass(frozen=True, slots=True)
class Drift:
    """One version that is not the same over a queue: what most nodes have, and the odd ones."""

    queue: str
    name: str
    title: str
    usual: str
    usual_count: int
    odd: tuple[tuple[str, tuple[str, ...]], ...]  # (version, nodes)


@dataclass(frozen=True, slots=True)
class PairResult:
    """Two nodes over EFA: `server` was asked to listen, `client` talked to it."""

    server: str
    client: str
    at: float
    took_s: float
    result: Result
    mb_s: float | None = None  # of the largest size, one small stream: no bandwidth
    latency_us: float | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One run over some nodes; `kind` is efa, health, pair or deep."""

    id: str
    kind: str
    at: float
    took_s: float = 0.0
    nodes: tuple[NodeResult, ...] = ()
    drift: tuple[Drift, ...] = ()
    pairs: tuple[PairResult, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()  # (node, why it was not asked)
    cancelled: bool = False

    @property
    def verdict(self) -> Verdict:
        """The worst of all; nodes that could not be asked are UNKNOWN."""
        return worst(
            [
                *(node.verdict for node in self.nodes),
                *(pair.result.verdict for pair in self.pairs),
                *([Verdict.WARN] if self.drift else []),
            ]
        )

    @property
    def asked(self) -> tuple[NodeResult, ...]:
        """The nodes that answered."""
        return tuple(node for node in self.nodes if node.fault is None)

    @property
    def ranked(self) -> tuple[NodeResult, ...]:
        """Worst first, those alike in their order."""
        return tuple(sorted(self.nodes, key=lambda node: (node.verdict.rank, -_bad(node))))


def _bad(node: NodeResult) -> int:
    return sum(1 for result in node.results if result.verdict in (Verdict.FAIL, Verdict.WARN))
