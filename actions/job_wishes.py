"""Wished states of jobs and queues, as Slurm itself must tell them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actions.looks import jobs_now, queue_states, waiting_of
from actions.node_wishes import QUICK_S
from actions.spec import Finding, Look
from actions.targets import Label
from cockpit.formats.job_now import JobNow
from cockpit.formats.job_states import job_state

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

END_S = 60.0  # KillWait is 30 s by default, then the job is completing
_GONE = "not in the queue any more"


class _OfJobs:
    """A wish that is looked at job by job: `_see` says how one name stands by the records that it covers."""

    __slots__ = ()
    names: tuple[str, ...]

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        records = jobs_now(cluster, self.names)
        labels = {name: Label.of(name) for name in self.names}
        return {name: self._see(name, [job for job in records if _covers(labels[name], job)]) for name in self.names}

    def _see(self, name: str, jobs: Sequence[JobNow]) -> Finding:
        raise NotImplementedError


def _ended(job: JobNow) -> bool:
    return job_state(job.state).kind in ("good", "bad")


def _waits(job: JobNow) -> bool:
    return job_state(job.state).kind == "waiting"


def _words(jobs: Sequence[JobNow]) -> str:
    return ", ".join(dict.fromkeys(job_state(job.state).word for job in jobs))


@dataclass(frozen=True, slots=True)
class Ended(_OfJobs):
    """The jobs are over, or ending."""

    names: tuple[str, ...]
    deadline_s: float = END_S

    def _see(self, _: str, jobs: Sequence[JobNow]) -> Finding:
        left = [job for job in jobs if not _ended(job)]
        if not left:
            return Finding(Look.DONE, _words(jobs) or _GONE)
        if all(job.state == "CG" for job in left):
            return Finding(Look.DONE, "ending: its nodes clean up")
        return Finding(Look.WAIT, _words(left))


@dataclass(frozen=True, slots=True)
class Held(_OfJobs):
    """Nothing of the jobs starts before it is released."""

    names: tuple[str, ...]
    deadline_s: float = QUICK_S

    def _see(self, _: str, jobs: Sequence[JobNow]) -> Finding:
        waiting = [job for job in jobs if _waits(job)]
        if not waiting:
            return Finding(Look.FAILED, f"{_words(jobs)}: a hold no longer keeps it" if jobs else _GONE)
        if all(job.held for job in waiting):
            return Finding(Look.DONE, f"held ({waiting[0].reason})")
        return Finding(Look.WAIT, f"waits ({waiting[0].reason or 'no reason told'})")


@dataclass(frozen=True, slots=True)
class Released(_OfJobs):
    """The jobs may start, or have started."""

    names: tuple[str, ...]
    deadline_s: float = QUICK_S

    def _see(self, _: str, jobs: Sequence[JobNow]) -> Finding:
        if not jobs:
            return Finding(Look.FAILED, _GONE)
        if any(_waits(job) and job.held for job in jobs):
            return Finding(Look.WAIT, "held")
        return Finding(Look.DONE, _words(jobs))


@dataclass(frozen=True, slots=True)
class Requeued(_OfJobs):
    """The jobs wait again, held if `held`; `restarts`: how often each, by its own id, had been started anew before."""

    names: tuple[str, ...]
    restarts: tuple[tuple[int, int], ...]
    held: bool = False
    deadline_s: float = END_S

    def _see(self, name: str, jobs: Sequence[JobNow]) -> Finding:
        left = [job for job in jobs if not _ended(job)]
        if not left:
            return Finding(Look.FAILED, _words(jobs) or _GONE)
        before = dict(self.restarts)
        if all(_waits(job) for job in left):
            held = all(job.held for job in left)
            if self.held and not held:
                return Finding(Look.WAIT, "waits, not held yet")
            return Finding(Look.DONE, "waits again, held" if held else "waits again")
        on = [job for job in left if not _waits(job)]
        # Of an array every task counts; one that was not started when it was planned has nothing to be put back from.
        if not self.held and all((job.restarts or 0) > before.get(job.job_id, -1) for job in on):
            return Finding(Look.DONE, "started again")
        return Finding(Look.WAIT, _words(left))


@dataclass(frozen=True, slots=True)
class Niced(_OfJobs):
    """The jobs have this nice value."""

    names: tuple[str, ...]
    nice: int
    deadline_s: float = QUICK_S

    def _see(self, _: str, jobs: Sequence[JobNow]) -> Finding:
        if not jobs:
            return Finding(Look.FAILED, _GONE)
        as_wished = all(job.nice == self.nice for job in jobs if not _ended(job))
        return Finding(Look.DONE if as_wished else Look.WAIT, f"nice {jobs[0].nice}")


@dataclass(frozen=True, slots=True)
class OnTop:
    """Each job comes first among the waiting ones of its user that are not on the list themselves."""

    names: tuple[str, ...]
    users: tuple[str, ...]
    deadline_s: float = QUICK_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        waiting = [job for user in self.users for job in waiting_of(cluster, user)]
        labels = [Label.of(name) for name in self.names]
        others = [job for job in waiting if not any(_covers(label, job) for label in labels)]
        best = max((job.priority or 0 for job in others), default=0)
        return {name: self._see(label, waiting, best) for name, label in zip(self.names, labels, strict=True)}

    def _see(self, label: Label, waiting: Sequence[JobNow], best: int) -> Finding:
        own = [job for job in waiting if _covers(label, job)]
        if not own:
            return Finding(Look.DONE, "waits no longer")
        first = min(job.priority or 0 for job in own) >= best
        return Finding(Look.DONE if first else Look.WAIT, f"priority {own[0].priority}")


def _covers(label: Label, job: JobNow) -> bool:
    return label.covers(job.job_id, job.array_job_id, job.array_tasks, job.het_job_id)


@dataclass(frozen=True, slots=True)
class QueueIs:
    """The queue is in this state (UP, DOWN, DRAIN, INACTIVE)."""

    names: tuple[str, ...]
    state: str
    deadline_s: float = QUICK_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        states = queue_states(cluster)
        found = {}
        for name in self.names:
            state = states.get(name, "")
            look = Look.DONE if state == self.state else Look.WAIT
            found[name] = Finding(look, state.lower() or "there is no such queue any more")
        return found
