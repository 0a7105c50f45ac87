"""Starting conditions of the demo, as data. `busy` is what `cockpit demo` shows when nothing is asked for."""

from __future__ import annotations

from dataclasses import dataclass


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


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario("busy", "a full cluster with a queue, one drained and one lost node", 1.0, 6, 90.0, 1, 1),
        Scenario(
            "calm", "a half-empty healthy cluster", 0.2, 1, 300.0, training=0.25, queue=False, waking=False
        ),
    )
}
