"""What the rules of the fleet look at, and the memory they need: since when something is so."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cockpit.config import Rules
from cockpit.fleet import GpuRow, watch_freshness
from cockpit.formats.hostlist import brief, fold
from cockpit.models import Freshness, Health, Node, Problem
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import FleetReading, NodeWatch
from cockpit.words import span


@dataclass(frozen=True, slots=True)
class Silence:
    """A job has written nothing for `age_s`, seen at `at` (steady clock), where it wrote every `rhythm_s` before."""

    age_s: float
    rhythm_s: float
    at: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """One look at everything; `steady` and `now` are the two clocks of the cockpit at that moment.

    `nodes_live` and `queue_live` tell whether Slurm's answers are fresh enough to be held against the probes.
    """

    rows: tuple[GpuRow, ...]
    reading: FleetReading
    nodes: Mapping[str, Node]
    history: GpuHistory
    rules: Rules
    steady: float
    now: float | None = None
    nodes_live: bool = True
    queue_live: bool = True
    silences: Mapping[int, Silence] = field(default_factory=dict)  # by job id; only those that are sure

    def silence(self, job_id: int) -> str:
        """`no output for 14m, usually every 20s`; "" for a job that is not known to be silent."""
        told = self.silences.get(job_id)
        if told is None:
            return ""
        return f"no output for {span(told.age_s + self.steady - told.at)}, usually every {span(told.rhythm_s)}"

    def as_of(self, watch: NodeWatch | None) -> str:
        """` (as of 3m ago)` for a node whose readings are old, "" while they are live."""
        if watch is None or watch.seen_at is None or watch_freshness(watch, self.steady) is Freshness.LIVE:
            return ""
        return f" (as of {span(self.steady - watch.seen_at)} ago)"

    def our_time(self, watch: NodeWatch, at: float | None) -> float | None:
        """A moment of the node's clock on ours; without a clock of ours the node's own."""
        if at is None or self.now is None or watch.reading is None or watch.seen_at is None:
            return at
        # The reading's own time came together with it, so that is where both clocks meet.
        return self.now - (self.steady - watch.seen_at) - (watch.reading.taken_at - at)

    def our_wall(self, steady: float | None) -> float | None:
        """A moment of the steady clock on the wall clock."""
        return None if steady is None or self.now is None else self.now - (self.steady - steady)


def of_several(
    key: str,
    health: Health,
    watches: Sequence[NodeWatch],
    title: str,
    step: str,
    fleet: Fleet,
    *,
    evidence: str = "",
    since: float | None = None,
) -> Problem:
    """One problem of one or more nodes; its age is told when none of them is heard live."""
    ages = [fleet.as_of(watch) for watch in watches]
    newest = max(watches, key=lambda watch: watch.seen_at or 0.0)
    title += fleet.as_of(newest) if all(ages) else ""
    return Problem(key, health, brief(watch.node for watch in watches), title, step,
                   evidence or fold(watch.node for watch in watches), since, len(watches),
                   about=about_nodes(watch.node for watch in watches))  # fmt: skip


def about_nodes(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Nodes as `Problem.about` names them."""
    return tuple(("node", name) for name in names)


def earliest(times: Iterable[float | None]) -> float | None:
    """The first of the times that are known."""
    return min((at for at in times if at is not None), default=None)


@dataclass(slots=True)
class Onsets:
    """Remembers since when each thing is so; what nobody asked for between two turns is over."""

    _first: dict[Hashable, float] = field(default_factory=dict)
    _asked: set[Hashable] = field(default_factory=set)

    def lasted_s(self, key: Hashable, at: float) -> float:
        """How long it has been so by time `at`, which may be of any clock as long as it is one for each key."""
        self._asked.add(key)
        first = self._first.get(key, at)
        self._first[key] = min(first, at)  # a clock that went back begins anew
        return max(0.0, at - first)

    def known(self, key: Hashable) -> bool:
        """True when it was so at the last turn, or is so in this one."""
        return key in self._first

    def turn(self) -> None:
        """End a look: forget what it did not ask for."""
        self._first = {key: at for key, at in self._first.items() if key in self._asked}
        self._asked = set()
