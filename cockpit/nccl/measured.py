"""What a sweep has measured so far, and how each node stands by it. Pure bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from cockpit.nccl.stats import SLOW, WEAK, usual

ALONE, PAIRS, CONFIRM, TOGETHER = "alone", "pairs", "confirm", "together"


@dataclass(frozen=True, slots=True)
class Trial:
    """One job of a sweep: these nodes together, in that round (from 1)."""

    number: int
    round: int
    phase: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial: a bandwidth, or why there is none. `failed` is the nodes' doing, else it is unknown.

    Unknown is what was cancelled, never started or lost with a node: it says nothing against the others.
    """

    busbw_gbs: float | None = None
    failed: bool = False
    text: str = ""


class Standing(str, Enum):
    """How a node stands among its peers."""

    GOOD = "good"
    WEAK = "weak"  # below 0.90 of its peers
    SLOW = "slow"  # below 0.75
    FAILING = "failing"  # no test with it ends, although its partners' other tests do
    UNKNOWN = "unknown"
    LOST = "lost"  # it died while the sweep ran


@dataclass(slots=True)
class Measured:
    """Trials with their outcomes. Nodes that are lost keep what was measured on them."""

    nodes: tuple[str, ...]
    outcomes: dict[Trial, Outcome] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)  # node -> why
    _by_node: dict[str, list[tuple[Trial, Outcome]]] = field(default_factory=dict, repr=False)
    _usual: dict[str, float | None] = field(default_factory=dict, repr=False)  # worked out since the last outcome

    def put(self, trial: Trial, outcome: Outcome) -> None:
        """Take in what came of a trial."""
        self.outcomes[trial] = outcome
        self._usual.clear()
        for node in trial.nodes:
            self._by_node.setdefault(node, []).append((trial, outcome))

    @property
    def live(self) -> tuple[str, ...]:
        """The nodes that are still there."""
        return tuple(node for node in self.nodes if node not in self.lost)

    def alone(self, node: str) -> list[float]:
        """Bandwidths of the node by itself."""
        return [outcome.busbw_gbs for trial, outcome in self._of(node, 1) if outcome.busbw_gbs is not None]

    def failed_alone(self, node: str) -> int:
        """How often the node's own test failed."""
        return sum(outcome.failed for _, outcome in self._of(node, 1))

    def pairs(self, node: str) -> list[tuple[str, float]]:
        """(partner, bandwidth) of every pair with the node that gave one."""
        return [
            (_other(trial, node), outcome.busbw_gbs)
            for trial, outcome in self._of(node, 2)
            if outcome.busbw_gbs is not None
        ]

    def failures(self, node: str) -> list[str]:
        """The partners with whom a test failed."""
        return [_other(trial, node) for trial, outcome in self._of(node, 2) if outcome.failed]

    def met(self, one: str, other: str) -> int:
        """How often these two were tried together, whatever came of it."""
        return sum(_other(trial, one) == other for trial, _ in self._of(one, 2))

    def values(self, one: str, other: str) -> list[float]:
        """The bandwidths of one pair, in their order."""
        return [value for partner, value in self.pairs(one) if partner == other]

    def score(self, node: str) -> float | None:
        """The node's best pair: a pair is as fast as its slower member."""
        return max((value for _, value in self.pairs(node)), default=None)

    def scores(self) -> dict[str, float]:
        """Every node that has one, also those that were lost later."""
        found = ((node, self.score(node)) for node in self.nodes)
        return {node: score for node, score in found if score is not None}

    def usual_alone(self) -> float | None:
        """What one node by itself usually reaches here."""
        if ALONE not in self._usual:
            self._usual[ALONE] = usual([max(values) for node in self.nodes if (values := self.alone(node))])
        return self._usual[ALONE]

    def usual_pair(self) -> float | None:
        """What a node's best pair usually reaches here."""
        if PAIRS not in self._usual:
            self._usual[PAIRS] = usual(list(self.scores().values()))
        return self._usual[PAIRS]

    def standing_alone(self, node: str) -> Standing:
        """By the node's own tests; one good one clears it."""
        peers, values = self.usual_alone(), self.alone(node)
        if values and peers:
            return _by_ratio(max(values) / peers)
        return Standing.FAILING if self.failed_alone(node) >= 2 else Standing.UNKNOWN

    def standing(self, node: str) -> Standing:
        """By the node's pairs; failures count when the partner ended another test."""
        if node in self.lost:
            return Standing.LOST
        peers, score = self.usual_pair(), self.score(node)
        if score is not None and peers:
            return _by_ratio(score / peers)
        proven = {partner for partner in self.failures(node) if self.score(partner) is not None}
        return Standing.FAILING if len(proven) >= 2 else Standing.UNKNOWN

    def _of(self, node: str, size: int) -> Iterator[tuple[Trial, Outcome]]:
        for trial, outcome in self._by_node.get(node, ()):
            if len(trial.nodes) == size:
                yield trial, outcome


def _other(trial: Trial, node: str) -> str:
    return trial.nodes[1] if trial.nodes[0] == node else trial.nodes[0]


def _by_ratio(ratio: float) -> Standing:
    return Standing.SLOW if ratio < SLOW else Standing.WEAK if ratio < WEAK else Standing.GOOD
