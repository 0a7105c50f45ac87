"""A small discrete-event Slurm: jobs start, run and end, cloud nodes boot and power down.

Pure: the clock is given, nothing runs by itself. `advance(now)` plays every event up to `now`, so the state
at a time is the same whether it was reached in one step or in many.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cockpit.demo import changes, scheduler, workload
from cockpit.demo.jobs import Ask, SimJob
from cockpit.demo.machines import Power, SimNode, build_nodes
from cockpit.demo.scenarios import SCENARIOS
from cockpit.demo.troubles import Struck

CLUSTER = "demo"
HEAD = "demo-head"
MAX_NODES = 1024
PASS_EVERY_S = 2.0
MIN_JOB_AGE_S = 300.0  # these four are ParallelCluster's settings, see `scontrol show config`
SUSPEND_TIME_S = 600.0
SUSPEND_TIMEOUT_S = 120.0
RESUME_TIMEOUT_S = 1800.0
BOOT_S = (150.0, 240.0)
EPILOG_S = (3.0, 12.0)


@dataclass(frozen=True, slots=True)
class SimReservation:
    """A reservation that began when it was made."""

    name: str
    nodes: tuple[str, ...]
    users: tuple[str, ...]
    flags: tuple[str, ...]
    began_at: float


class Simulation:
    """The controller's view of the demo cluster. Hold `lock` (or use `current()`) while reading it.

    Raises KeyError for an unknown scenario and ValueError for an impossible number of nodes.
    """

    def __init__(
        self,
        *,
        nodes: int = 12,
        scenario: str = "busy",
        seed: int = 7,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 1 <= nodes <= MAX_NODES:
            raise ValueError(f"nodes must be 1 to {MAX_NODES}, not {nodes}")
        self.scenario = SCENARIOS[scenario]
        self.clock = clock
        self.lock = threading.RLock()
        self.rng = random.Random(seed)  # noqa: S311 - repeatable, nothing secret
        self.now = self.booted_at = clock()
        self.nodes: dict[str, SimNode] = {node.name: node for node in build_nodes(nodes)}
        self.jobs: dict[int, SimJob] = {}
        self.outcomes: dict[int, str] = {}  # how jobs ended that somebody may depend on
        self.last_id = 48211
        self.lead_id: int | None = None  # the big training run
        self.struck: dict[str, list[Struck]] = {}  # host -> what is wrong with its GPUs
        self.queue_states: dict[str, str] = {}  # queues that are not UP
        self.kept_up = {node.name for node in self.nodes.values() if node.static}  # SuspendExcNodes
        self.reservations: dict[str, SimReservation] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._pass_due = False
        workload.populate(self)
        scheduler.run_pass(self)

    @contextmanager
    def current(self) -> Iterator[Simulation]:
        """The simulation, locked and brought up to the clock."""
        with self.lock:
            self.advance(self.clock())
            yield self

    def advance(self, now: float) -> None:
        """Play all events up to `now`; a clock that went backwards changes nothing."""
        with self.lock:
            while self._events and self._events[0][0] <= now:
                self.now, _, act = heapq.heappop(self._events)
                act()
            self.now = max(self.now, now)

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Have `act` called when the simulation reaches `when`."""
        heapq.heappush(self._events, (max(when, self.now), next(self._order), act))

    def poke(self) -> None:
        """Something changed that may let a job start: have the scheduler look soon."""
        if not self._pass_due:
            self._pass_due = True
            self.at((self.now // PASS_EVERY_S + 1) * PASS_EVERY_S, self._pass)

    def _pass(self) -> None:
        self._pass_due = False
        scheduler.run_pass(self)

    def new_id(self) -> int:
        """The next job id."""
        self.last_id += 1
        return self.last_id

    def submit(self, ask: Ask, *, ago_s: float = 0.0) -> SimJob:
        """Queue what is asked for, as if submitted `ago_s` seconds ago."""
        job = SimJob(self.new_id(), ask, self.now - ago_s, priority=0 if ask.held else ask.priority)
        if ask.tasks:
            job.array_job_id, job.rest = job.job_id, list(ask.tasks)
        if ask.begin_in_s is not None:
            self.at(job.submitted_at + ask.begin_in_s, self.poke)
        self.jobs[job.job_id] = job
        self.poke()
        return job

    def submit_het(self, asks: Sequence[Ask], *, ago_s: float = 0.0) -> list[SimJob]:
        """Queue one heterogeneous job, a component for each ask."""
        parts = [self.submit(ask, ago_s=ago_s) for ask in asks]
        for offset, part in enumerate(parts):
            part.het_job_id, part.het_offset, part.het_size = parts[0].job_id, offset, len(parts)
        return parts

    def start(self, job: SimJob, hosts: Sequence[str], *, age_s: float = 0.0) -> SimJob:
        """Give the job (or its next array task) its nodes, as if it had started `age_s` seconds ago."""
        job = self._split_task(job)
        job.state, job.reason, job.scheduled, job.dependency = "RUNNING", "None", (), ""
        job.hosts, job.started_at = tuple(hosts), self.now - age_s
        job.eligible_at = job.eligible_at or job.submitted_at
        for host in hosts:
            node = self.nodes[host]
            job.gpus[host] = node.take(job.job_id, job.ask.gpus).gpus
            node.idle_since, node.busy_at = None, job.started_at
            if node.power is Power.DOWN:
                self.power_up(node)
        job.configuring = any(self.nodes[host].power is Power.STARTING for host in hosts)
        if not job.configuring:
            self._plan_end(job)
        return job

    def _split_task(self, job: SimJob) -> SimJob:
        """The next array task as a job of its own; the last one keeps the array's record, as in Slurm."""
        if not job.rest:
            return job
        task = job.rest.pop(0)
        if not job.rest:
            job.task = task
            return job
        own = SimJob(self.new_id(), job.ask, job.submitted_at, priority=job.priority)
        own.array_job_id, own.task = job.array_job_id, task
        self.jobs[own.job_id] = own
        return own

    def _plan_end(self, job: SimJob) -> None:
        started = job.started_at if job.started_at is not None else self.now
        limit_s = job.ask.limit_s
        overruns = limit_s is not None and job.ask.runs_s > limit_s
        runs_s = limit_s if overruns and limit_s is not None else job.ask.runs_s
        run, outcome = job.run, "TIMEOUT" if overruns else job.ask.ends_as
        self.at(started + runs_s, lambda: self.finish(job, outcome) if job.run == run else None)

    def finish(self, job: SimJob, outcome: str) -> None:
        """End a running job: its GPUs are free at once, its nodes when the epilog is through."""
        self.stop_run(job, lambda: self.record_end(job, outcome))

    def stop_run(self, job: SimJob, then: Callable[[], None]) -> None:
        """Stop a running job and let its epilog run; `then` is what becomes of the job."""
        job.state, job.configuring, job.ended_at = "COMPLETING", False, self.now
        job.run += 1
        for host in job.hosts:
            node = self.nodes[host]
            node.shares.pop(job.job_id, None)
            node.completing.add(job.job_id)
            node.busy_at = self.now
        self.at(self.now + self.rng.uniform(*EPILOG_S), lambda: self._clean(job, then))
        self.poke()

    def _clean(self, job: SimJob, then: Callable[[], None]) -> None:
        for host in job.hosts:
            node = self.nodes[host]
            node.completing.discard(job.job_id)
            if not node.shares and not node.completing:
                self.rest(node)
        then()
        self.poke()

    def record_end(self, job: SimJob, outcome: str) -> None:
        """Keep an ended job in sight for MinJobAge, then forget it."""
        job.state = outcome
        job.reason = {"FAILED": "NonZeroExitCode", "TIMEOUT": "TimeLimit"}.get(outcome, "None")
        self.outcomes[job.job_id] = outcome
        ended = job.ended_at if job.ended_at is not None else self.now
        self.at(ended + MIN_JOB_AGE_S, lambda: self._forget(job.job_id))

    def _forget(self, job_id: int) -> None:
        self.jobs.pop(job_id, None)

    def rest(self, node: SimNode) -> None:
        """A node has nothing to do; a dynamic one powers down after SuspendTime."""
        if changes.at_rest(self, node):
            return
        node.idle_since = idle_since = self.now
        if not node.static:
            self.at(self.now + SUSPEND_TIME_S, lambda: self._suspend(node, idle_since))

    def _suspend(self, node: SimNode, idle_since: float) -> None:
        if node.idle_since == idle_since and node.power is Power.UP and node.name not in self.kept_up:
            self.power_down(node)

    def power_up(self, node: SimNode) -> None:
        """Boot an instance for a powered-down node."""
        node.power, node.responding = Power.STARTING, False
        node.phase_ends = ends = self.now + self.rng.uniform(*BOOT_S)
        self.at(ends, lambda: self._booted(node, ends))

    def _booted(self, node: SimNode, ends: float) -> None:
        if node.power is not Power.STARTING or node.phase_ends != ends:
            return  # powered down meanwhile
        node.power, node.responding, node.phase_ends = Power.UP, True, None
        node.boot_at = self.now - 90.0
        for job_id in list(node.shares):
            job = self.jobs[job_id]
            if all(self.nodes[host].power is Power.UP for host in job.hosts):
                job.configuring, job.started_at = False, self.now
                self._plan_end(job)
        if not node.shares:
            self.rest(node)
        self.poke()

    def power_down(self, node: SimNode, *, since_s: float = 0.0) -> None:
        """Give an idle node's instance back, as if begun `since_s` seconds ago."""
        node.power, node.idle_since = Power.STOPPING, None
        node.leaving = node.drain = node.down = False
        node.responding = True
        node.phase_ends = ends = self.now - since_s + SUSPEND_TIMEOUT_S
        self.at(ends, lambda: self._gone(node, ends))

    def _gone(self, node: SimNode, ends: float) -> None:
        if node.power is not Power.STOPPING or node.phase_ends != ends:
            return  # powered up again meanwhile
        node.power, node.phase_ends, node.boot_at = Power.DOWN, None, None
        self.poke()
