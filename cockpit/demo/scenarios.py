"""Starting conditions of the demo, as data. `busy` is what `cockpit demo` shows when nothing is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuTrouble:
    """Something wrong with one GPU; `begins_s` counts from the start of the demo and may be negative.

    kind: `hot` (thermal slowdown), `lost` (fallen off the bus), `remap` (a row remap waits for a reset) or
    `app` (a program's own memory fault). on: `lead` (nodes of the big run), `alone` (nodes with one job of
    eight GPUs) or `first`; `place` counts among them.
    """

    kind: str
    on: str
    gpu: int
    begins_s: float
    place: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A small set of starting conditions; counts are per 12 nodes and grow with the cluster."""

    name: str
    title: str
    load: float  # share of the nodes still free after the cast is placed that get a job at the start
    backlog: int  # new jobs come only while fewer than this many wait
    arrival_s: float  # mean time between submissions
    drained: int = 0
    down: int = 0
    training: float = 0.5  # share of the static nodes that the big training run holds
    queue: bool = True  # the cast of waiting jobs, one for every usual pending reason
    waking: bool = True  # a job that waits for dynamic nodes to boot, and a node powering down
    awake: int = 0  # dynamic nodes that are up and have nothing to do
    lead_does: str = "train"  # what the big run's GPUs show: train, hang or idle
    idle_for_s: int = 300  # the rule gpu_idle_for of the demo's config: nobody should wait minutes to see it at work
    lead_since_s: float = 0.0  # for how long it has hung or idled when the demo starts
    troubles: tuple[GpuTrouble, ...] = ()
    efa_lost: int = 0  # EFA devices that the last static node lacks
    odd_plugin: str = ""  # another version of the OFI plugin, on the second static node
    aws: bool = False  # a ParallelCluster with a simulated AWS around it, so that P stops and starts it


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "busy",
            "a full cluster with a queue, one drained and one lost node",
            1.0,
            6,
            90.0,
            1,
            1,
            troubles=(GpuTrouble("app", "first", 6, -26 * 60.0),),
            efa_lost=1,
            odd_plugin="1.16.1",
        ),
        Scenario("calm", "a half-empty healthy cluster", 0.2, 1, 300.0, training=0.25, queue=False, waking=False),
        Scenario(
            "hang",
            "a training run over several nodes hangs: one rank did not come to the all-reduce",
            1.0,
            3,
            120.0,
            lead_does="hang",
            lead_since_s=240.0,
        ),
        Scenario(
            "hot-gpu",
            "one GPU is too hot and slows the job that it is part of",
            1.0,
            3,
            120.0,
            troubles=(GpuTrouble("hot", "lead", 3, -900.0, place=1),),
        ),
        Scenario(
            "xid",
            "a GPU falls off the bus half a minute after the start, another waits for a row remap",
            1.0,
            3,
            120.0,
            troubles=(
                GpuTrouble("lost", "alone", 4, 30.0),
                GpuTrouble("remap", "lead", 2, -1500.0, place=-1),
            ),
        ),
        Scenario(
            "idle",
            "a big job holds its GPUs and uses none, and nodes run without a job",
            0.0,
            1,
            900.0,
            queue=False,
            waking=False,
            awake=3,
            lead_does="idle",
            idle_for_s=30,
            lead_since_s=5400.0,
            aws=True,
        ),
    )
}
