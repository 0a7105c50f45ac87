"""One scheduling pass over the demo's queue: start what fits, backfill, and say why the rest waits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.demo.jobs import Ask, SimJob
from cockpit.demo.machines import GPUS, Power, SimNode

if TYPE_CHECKING:
    from cockpit.demo.sim import Simulation


class Pool:
    """Free GPUs by node, kept current while one pass hands them out."""

    def __init__(self, nodes: Sequence[SimNode]) -> None:
        # Nodes that are up come first, so that nothing is booted while something stands idle.
        ordered = sorted(nodes, key=lambda node: (node.power is Power.DOWN, node.index))
        self.free = {node.name: node.free_gpus for node in ordered if node.free_gpus}
        self._nodes = {node.name: node for node in ordered}

    def fit(self, ask: Ask) -> tuple[str, ...] | None:
        """Names of nodes for the job, fullest first so that whole nodes stay free; None when too few."""
        able = [
            name
            for name, free in self.free.items()
            if free >= ask.gpus and ask.partition in self._nodes[name].partitions and ask.on in ("", name)
        ]
        if len(able) < ask.nodes:
            return None
        if ask.gpus < GPUS:
            able.sort(key=lambda name: (self._nodes[name].power is Power.DOWN, self.free[name]))
        chosen = sorted(able[: ask.nodes], key=lambda name: self._nodes[name].index)
        return tuple(chosen)

    def fit_all(self, asks: Sequence[Ask]) -> list[tuple[str, ...]] | None:
        """Nodes for every ask at once, or None; nothing stays taken when one of them does not fit."""
        before = dict(self.free)
        found: list[tuple[str, ...]] = []
        for ask in asks:
            hosts = self.fit(ask)
            if hosts is None:
                self.free = before
                return None
            found.append(hosts)
            self.take(hosts, ask.gpus)
        return found

    def take(self, hosts: Sequence[str], gpus: int) -> None:
        """Hand out `gpus` of every host."""
        for host in hosts:
            self.free[host] -= gpus
            if not self.free[host]:
                del self.free[host]


def run_pass(sim: Simulation) -> None:
    """Start every waiting job that may start now, by priority with backfill, and set the others' reasons."""
    pool = Pool(list(sim.nodes.values()))
    waiting = [job for job in sim.jobs.values() if job.state == "PENDING"]
    shadow = math.inf  # no job may start that could still run when the first blocked one is due
    blocked: set[str] = set()
    for job in sorted(waiting, key=lambda job: (-job.priority, job.job_id)):
        if job.het_size and job.het_offset:
            continue  # decided together with its leader
        why = obstacle(sim, job)
        if not why:
            why = _try(sim, pool, job, shadow, blocked)
        for part in _parts(sim, job):
            if part.state == "PENDING":
                part.reason, part.eligible_at, part.evaluated_at = why, job.eligible_at, sim.now
        if why == "Resources":
            shadow = min(shadow, _estimate(sim, job))


def _try(sim: Simulation, pool: Pool, job: SimJob, shadow: float, blocked: set[str]) -> str:
    """Start the job if it fits; else return `Resources` or `Priority`, as Slurm tells them apart."""
    parts = _parts(sim, job)
    while True:
        limits = [part.ask.limit_s if part.ask.limit_s is not None else math.inf for part in parts]
        late = sim.now + max(limits) > shadow
        found = None if late else pool.fit_all([part.ask for part in parts])
        if found is None:
            first = job.ask.partition not in blocked
            blocked.add(job.ask.partition)
            return "Resources" if first and not late else "Priority"
        more = len(job.rest) > 1
        for part, hosts in zip(parts, found, strict=True):
            sim.start(part, hosts)
        if not more:
            return "None"
        if why := obstacle(sim, job):
            return why


def _parts(sim: Simulation, job: SimJob) -> list[SimJob]:
    if not job.het_size:
        return [job]
    ids = range(job.job_id, job.job_id + job.het_size)
    return [sim.jobs[job_id] for job_id in ids if job_id in sim.jobs]


def obstacle(sim: Simulation, job: SimJob) -> str:
    """Why the job may not be looked at yet, in Slurm's words; "" when it may."""
    if job.ask.held:
        return "JobHeldAdmin" if job.ask.held == "admin" else "JobHeldUser"
    state = sim.queue_states.get(job.ask.partition, "UP")
    if state in ("DOWN", "INACTIVE"):
        return f"Partition{state.capitalize()}"
    if job.ask.after is not None and (why := _dependency(sim, job, job.ask.after)):
        return why
    begin = max(job.submitted_at + (job.ask.begin_in_s or 0.0), job.not_before or 0.0)
    job.eligible_at = begin
    if begin > sim.now:
        job.started_at = begin
        return "BeginTime"
    if job.ask.throttle and job.rest and _running_tasks(sim, job) >= job.ask.throttle:
        job.eligible_at = None
        return "JobArrayTaskLimit"
    job.started_at = None
    on = sim.nodes.get(job.ask.on)
    if on is not None and (on.drain or on.down or not on.responding):
        return f"ReqNodeNotAvail, UnavailableNodes:{on.name}"
    return ""


def _dependency(sim: Simulation, job: SimJob, after: int) -> str:
    outcome = sim.outcomes.get(after)
    if outcome == "COMPLETED":
        job.dependency = ""
        return ""
    job.eligible_at = None
    job.dependency = f"afterok:{after}({'unfulfilled' if outcome is None else 'failed'})"
    return "Dependency" if outcome is None else "DependencyNeverSatisfied"


def _running_tasks(sim: Simulation, job: SimJob) -> int:
    own = job.array_job_id
    return sum(1 for other in sim.jobs.values() if other.array_job_id == own and other.state == "RUNNING")


def _estimate(sim: Simulation, job: SimJob) -> float:
    """When the limits of running jobs would let this one start; noted on the job as Slurm does."""
    usable = [node for node in sim.nodes.values() if job.ask.partition in node.partitions and not node.out]
    due = sorted((_free_at(sim, node), node.index, node.name) for node in usable)[: job.ask.nodes]
    if len(due) < job.ask.nodes or due[-1][0] == math.inf:
        return math.inf
    job.started_at = due[-1][0]
    job.scheduled = tuple(name for _, _, name in sorted(due, key=lambda item: item[1]))
    return due[-1][0]


def _free_at(sim: Simulation, node: SimNode) -> float:
    """When the last job of a node must have ended by its limit."""
    free_at = sim.now
    for job_id in node.shares:
        ends_at = sim.jobs[job_id].ends_at
        free_at = max(free_at, math.inf if ends_at is None else ends_at)
    return free_at
