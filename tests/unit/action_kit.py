"""Actions on the cluster that stands still: plan, run and look at what went over the wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from actions.audit import AuditLog
from actions.outcome import Progress, Result
from actions.runner import Runner
from actions.spec import Options, Plan, Scope, Targets
from actions.table import action
from actions.targets import job_targets, node_targets, queue_target
from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig
from cockpit.models import Job
from tests.still import StillClock, StillHost, still_cluster

_VERBS = {
    *("update", "create", "delete", "reboot", "cancel_reboot", "hold", "uhold"),
    *("release", "requeue", "requeuehold", "top"),
}


def is_write(argv: Sequence[str]) -> bool:
    """True for a command that changes something; `sudo -l` only asks."""
    words = list(argv[2:] if argv[0] == "sudo" else argv)
    if argv[0] == "sudo" and "-l" in argv:
        return False
    program = words[0].rsplit("/", 1)[-1]
    return program == "scancel" or (program == "scontrol" and words[1] in _VERBS)


class Kit:
    """One still cluster, read once, with a runner whose naps move the clock."""

    def __init__(self, folder: Path, kind: str = "slurm", *, read_only: bool = False, **simulation: Any) -> None:
        config = ClusterConfig("still", kind=kind, region="us-east-1", stack="still-stack", read_only=read_only)
        self.cluster: Cluster
        self.head: StillHost
        self.clock: StillClock
        self.cluster, self.head, self.clock = still_cluster(config, **simulation)
        self.log = AuditLog("still", folder)
        self.runner = Runner(self.cluster, audit=self.log, sleep=self.nap)
        self.told: list[Progress] = []
        self.cluster.read_once()

    def nap(self, seconds: float) -> bool:
        self.clock.time += seconds
        return False

    def read(self) -> None:
        self.cluster.read_once()

    def nodes(self, text: str) -> Targets:
        return node_targets(self.cluster, text)

    def queue(self, name: str) -> Targets:
        return queue_target(self.cluster, name)

    def jobs(self, *words: str) -> Targets:
        return job_targets(words)

    def plan(self, action_id: str, what: str | Targets, **options: Any) -> Plan:
        """The plan for a hostlist, a queue's name, or a job id."""
        return action(action_id).plan(self.cluster, self._targets(action_id, what), Options(**options))

    def _targets(self, action_id: str, what: str | Targets) -> Targets:
        if isinstance(what, Targets):
            return what
        by_scope: dict[Scope, Callable[[str], Targets]] = {
            Scope.NODE: self.nodes,
            Scope.QUEUE: self.queue,
            Scope.JOB: self.jobs,
        }
        return by_scope[action(action_id).scope](what)

    def run(self, plan: Plan, typed: str | None = None) -> Result:
        """Confirmed as it asks for, unless `typed` is something else."""
        return self.runner.run(plan, plan.confirm.word if typed is None else typed, self.told.append)

    def do(self, action_id: str, what: str | Targets, **options: Any) -> Result:
        """Plan and run, and read what the cluster is like then."""
        self.read()
        result = self.run(self.plan(action_id, what, **options))
        self.read()
        return result

    @property
    def writes(self) -> list[Sequence[str]]:
        """Every command that went over the wire and changes something."""
        return [argv for argv in self.head.calls if is_write(argv)]

    @property
    def queued(self) -> tuple[Job, ...]:
        """Every entry of the queue as it was last read."""
        assert self.cluster.view.queue is not None
        return self.cluster.view.queue.jobs

    def job(self, test: Callable[[Job], bool]) -> Job:
        return next(job for job in self.queued if test(job))


def running(job: Job) -> bool:
    return job.state == "R" and job.array_job_id is None


def waiting(job: Job) -> bool:
    return (
        job.state == "PD" and job.array_job_id is None and job.het_job_id is None and not job.reason.startswith("Job")
    )
