"""Where a scenario's GPU troubles strike: chosen once, among the nodes that run jobs at the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cockpit.demo.jobs import SimJob
from cockpit.demo.machines import GPUS, Power

if TYPE_CHECKING:
    from cockpit.demo.scenarios import GpuTrouble
    from cockpit.demo.sim import Simulation

ODD_HOST, ODD_GPU = -1, 5  # the rank that did not come to the collective operation


@dataclass(frozen=True, slots=True)
class Struck:
    """One trouble on one GPU, from the time `at` on."""

    kind: str
    gpu: int
    at: float


def place(sim: Simulation, lead: SimJob | None) -> None:
    """Note on the simulation which job is the big run and which GPUs get the scenario's troubles."""
    sim.lead_id = None if lead is None else lead.job_id
    for trouble in sim.scenario.troubles:
        host = _host(sim, trouble, lead)
        if host is not None:
            struck = Struck(trouble.kind, trouble.gpu, sim.now + trouble.begins_s)
            sim.struck.setdefault(host, []).append(struck)


def _host(sim: Simulation, trouble: GpuTrouble, lead: SimJob | None) -> str | None:
    """The node for a trouble; None in a cluster too small to have one."""
    led = lead.hosts if lead is not None else ()
    if trouble.on == "lead":
        return led[trouble.place % len(led)] if led else None
    if trouble.on == "first":
        return next((node.name for node in sim.nodes.values() if node.power is Power.UP and node.responding), None)
    lone = [
        job.hosts[0]
        for job in sim.jobs.values()
        if job.state == "RUNNING"
        and not job.configuring
        and job is not lead
        and (job.ask.nodes, job.ask.gpus) == (1, GPUS)
    ]
    found = [*sorted(lone, key=lambda host: sim.nodes[host].index), *reversed(led)]
    return found[trouble.place] if trouble.place < len(found) else None
