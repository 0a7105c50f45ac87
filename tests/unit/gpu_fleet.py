"""A small fleet for the rules: readings that last some minutes, looked at as the cockpit does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cockpit.config import Rules
from cockpit.fleet import FleetJoin
from cockpit.fleet_state import Fleet, Silence
from cockpit.gpu_models import Driver, DriverState, GpuSample, NodeReading
from cockpit.gpu_problems import FleetProblems
from cockpit.models import Job, Node, Problem
from cockpit.sources.gpu_events import NodeEvents
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import FleetReading, NodeWatch
from tests.unit.test_fleet import NODE

JOB = Job(7, "R", user="maria", hostlist="p5-1", gpus=4)
WHOLE = replace(NODE, gpus_used=4, gpu_indices=(0, 1, 2, 3))
FREE = replace(NODE, gpus_used=0, gpu_indices=())
STEADY_AHEAD_S = 5000.0  # of the steady clock over the node's, so that mixing them up is seen
WALL_AHEAD_S = 100.0  # of our wall clock over the node's


def reading(samples: Sequence[GpuSample], at: float, **changes: object) -> NodeReading:
    told = [replace(one, taken_at=at) for one in samples]
    values: dict[str, object] = {"driver": Driver(DriverState.OK), "gpus": tuple(told), "interval_s": 2.0, **changes}
    return NodeReading(at, 1, **values)  # type: ignore[arg-type]


@dataclass
class Looks:
    """One cockpit's memory of the fleet; each call is one look, in which `nodes` tell these readings."""

    history: GpuHistory = field(default_factory=GpuHistory)
    rules: FleetProblems = field(default_factory=FleetProblems)

    def feed(self, name: str, samples: Sequence[GpuSample], *, begin: float, end: float, step_s: float = 4) -> None:
        """What went before: readings at a steady step, into the history only."""
        at = begin
        while at <= end:
            self.history.add(name, reading(samples, at))
            at += step_s

    def look(
        self,
        watches: Sequence[NodeWatch],
        at: float,
        *,
        nodes: Sequence[Node] = (WHOLE,),
        jobs: Mapping[str, tuple[Job, ...]] | None = None,
        stale: str = "",
        silences: Mapping[int, Silence] | None = None,
    ) -> dict[str, Problem]:
        """The problems by key when the node's clock shows `at`; `stale` names the answer of Slurm that is old."""
        fleet = FleetReading({one.node: one for one in watches})
        rows = FleetJoin(Rules()).rows(fleet, tuple(nodes), jobs or {})
        by_name = {node.name: node for node in nodes}
        steady, now = at + STEADY_AHEAD_S, at + WALL_AHEAD_S
        live = (stale != "nodes_live", stale != "queue_live")
        look = Fleet(rows, fleet, by_name, self.history, Rules(), steady, now, *live, silences or {})
        told = self.rules.of(look)
        return {problem.key: problem for problem in told}


def watch(told: NodeReading, *, name: str = "p5-1", late_s: float = 0.0, events: NodeEvents | None = None) -> NodeWatch:
    """A node heard when it told this, or `late_s` after that."""
    return NodeWatch(name, told, told.taken_at + STEADY_AHEAD_S + late_s, events=events or NodeEvents())


def problems(
    samples: Sequence[GpuSample],
    *,
    minutes: float = 6,
    jobs: tuple[Job, ...] = (JOB,),
    node: Node = WHOLE,
    silences: Mapping[int, Silence] | None = None,
    **changes: object,
) -> dict[str, Problem]:
    """The problems of one node after these readings have lasted for some minutes; looked at first and last."""
    looks, end = Looks(), 1000.0 + minutes * 60
    looks.feed("p5-1", samples, begin=1000.0, end=end)
    held = {"p5-1": jobs}
    looks.look([watch(reading(samples, 1000.0, **changes))], 1000.0, nodes=[node], jobs=held)
    return looks.look([watch(reading(samples, end, **changes))], end, nodes=[node], jobs=held, silences=silences)
