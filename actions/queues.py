"""Queues opened, paused, closed to new jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actions import blast
from actions.draft import Draft
from actions.errors import ActionError, Refusal
from actions.job_wishes import QueueIs
from actions.looks import queue_states
from actions.nodes import NEEDS
from actions.spec import COUNTED, NAMED, UNDONE_EASILY, Options, Plan, Targets, Undo
from actions.targets import queue_reading
from cockpit.formats.job_states import HOLDING
from cockpit.models import Job

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

STATES = {
    "UP": "jobs may be submitted and start",
    "DOWN": "jobs may be submitted, none starts; running ones go on",
    "DRAIN": "no job may be submitted; queued ones may still start, running ones go on",
    "INACTIVE": "no job may be submitted and none starts; running ones go on",
}
_TIERS = {"UP": UNDONE_EASILY, "DOWN": COUNTED, "DRAIN": COUNTED, "INACTIVE": NAMED}


def set_state(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """A queue up, down, drained or inactive."""
    draft = Draft(cluster, "queue", targets, options)
    queue, wanted = targets.names[0], options.state.upper()
    if wanted not in STATES:
        raise ActionError(Refusal.USAGE, f"a queue is set to {', '.join(STATES).lower()}, not to {options.state!r}")
    danger = draft.kind.inactive_danger()
    if wanted == "INACTIVE" and danger:
        raise ActionError(Refusal.REFUSED, f"not on {draft.kind.title}: {danger}")
    before = queue_states(cluster).get(queue, "")
    if before == wanted:
        raise ActionError(Refusal.REFUSED, f"nothing to do: queue {queue} is {wanted.lower()} already")
    draft.admin(
        f"set queue {queue} {wanted.lower()}", ["update", f"partitionname={queue}", f"state={wanted}"], (queue,)
    )
    jobs = [job for job in queue_reading(cluster).jobs if queue in job.partitions]
    return draft.plan(
        f"set queue {queue} {wanted.lower()}",
        tier=_TIERS[wanted],
        count=1,
        needs=NEEDS,
        jobs=tuple(blast.one(cluster, job, _fate(job, wanted), loses=False) for job in jobs),
        effects=(f"it is {before.lower() or 'in an unknown state'} now", STATES[wanted]),
        warnings=_warnings(draft, before),
        wishes=(QueueIs((queue,), wanted),),
        undo=(Undo("queue", (queue,), Options(state=before)),) if before in STATES else (),
    )


def _warnings(draft: Draft, before: str) -> tuple[str, ...]:
    if not draft.kind.inactive_danger():
        return ()
    again = "starting the fleet sets every queue up again"
    if before == "INACTIVE":
        return (again, "the fleet's manager set it inactive (fleet stopped, or protected): it will do so again")
    return (again,)


def _fate(job: Job, state: str) -> str:
    if job.state in HOLDING:
        return "runs on"
    return "may start" if state in ("UP", "DRAIN") else "waits until the queue is up"
