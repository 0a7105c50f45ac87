"""The JSON of `cockpit status`, `nodes` and `jobs`: the same models as the panes, missing values null."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from cockpit import joins
from cockpit.cluster import Cluster, View
from cockpit.models import Job, Node, Problem, QueueRow
from cockpit.store import SourceState

SCHEMA = 1


def iso(epoch: float | None) -> str | None:
    """ISO 8601 in UTC, or None."""
    if epoch is None:
        return None
    return datetime.fromtimestamp(epoch, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def envelope(cluster: Cluster) -> dict[str, Any]:
    """What every answer begins with: schema, cluster, time, and the state of each source."""
    return {
        "schema": SCHEMA,
        "cluster": cluster.config.name,
        "kind": cluster.kind.id if cluster.kind else None,
        "taken_at": iso(cluster.clock.now()),
        "sources": {state.name: _source(state, cluster.clock.steady()) for state in cluster.store.states()},
    }


def _source(state: SourceState[Any], steady: float) -> dict[str, Any]:
    age_s = state.age_s(steady)
    return {
        "state": state.freshness(steady).value,
        "age_s": None if age_s is None else round(age_s, 1),
        "took_s": round(state.good.took_s, 3) if state.good else None,
        "error": asdict(state.error) | {"kind": state.error.kind.value} if state.error else None,
    }


def status(cluster: Cluster) -> dict[str, Any]:
    """Counts over the cluster and every problem."""
    view = cluster.view
    return envelope(cluster) | {
        "nodes": None
        if view.nodes is None
        else {"total": len(view.nodes), "by_state": joins.nodes_by_word(view.nodes)},
        "gpus": asdict(view.gpus),
        "jobs": None if view.queue is None else _job_counts(view),
        "problems": [_problem(problem) for problem in cluster.problems()],
    }


def _job_counts(view: View) -> dict[str, Any]:
    """`sees_all` is false where Slurm hides others' jobs from this login, null where that is not known."""
    by_state = dict(view.queue.by_state) if view.queue else {}
    sees_all = view.site.sees_all_jobs if view.site else None
    return {
        "running": by_state.get("R", 0),
        "pending": by_state.get("PD", 0),
        "by_state": by_state,
        "sees_all": sees_all,
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return asdict(problem) | {"health": problem.health.value, "since": iso(problem.since)}


def nodes(cluster: Cluster) -> dict[str, Any]:
    """Every node with all that is known of it; null when they could not be read."""
    view = cluster.view
    found = (
        None if view.nodes is None else [node_record(node, view.jobs_of_node.get(node.name, ())) for node in view.nodes]
    )
    return envelope(cluster) | {"nodes": found}


def node_record(node: Node, jobs: tuple[Job, ...]) -> dict[str, Any]:
    """One node as JSON, with the ids of the jobs that hold it."""
    return asdict(node) | {
        "state": "+".join([node.state.base, *sorted(node.state.flags)]),
        "health": node.health.value,
        "reason_at": iso(node.reason_at),
        "job_ids": [job.job_id for job in jobs],
    }


def jobs(cluster: Cluster) -> dict[str, Any]:
    """Every queue entry; null when the queue could not be read."""
    queue = cluster.view.queue
    return envelope(cluster) | {"jobs": None if queue is None else [job_record(job) for job in queue.jobs]}


def job_record(job: Job) -> dict[str, Any]:
    """One queue entry as JSON."""
    times = {name: iso(getattr(job, name)) for name in ("submitted_at", "eligible_at", "started_at", "ends_at")}
    return asdict(job) | {"label": job.label} | times


def queue_record(row: QueueRow) -> dict[str, Any]:
    """One line of the queue pane as JSON: the job that stands for it, and the tally of an array."""
    return job_record(row.lead) | {"key": row.key, "tally": dict(row.tally)}
