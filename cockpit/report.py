"""The JSON of `cockpit status`, `nodes` and `jobs`: the same models as the panes, missing values null."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from cockpit import joins
from cockpit.acknowledged_file import Kept
from cockpit.aws_models import AwsReading, Instance
from cockpit.cluster import Cluster, View
from cockpit.fleet import GpuRow, gpu_age_s, gpu_freshness, watch_freshness
from cockpit.gpu_models import NOT_READ, GpuProcess, Missing, known
from cockpit.models import Job, Node, Problem, QueueRow
from cockpit.sources.gpus import NodeWatch
from cockpit.store import SourceState

SCHEMA = 1
_YEAR_9999 = 253_370_764_800.0
_GPU_VALUES = (
    "util_pct", "mem_util_pct", "mem_used_mib", "temp_c", "hbm_temp_c", "power_w", "power_limit_w", "sm_clock_mhz",
    "ecc_corrected", "ecc_uncorrected", "remap_pending", "remap_failed", "nvlinks_down", "nvlinks", "pcie_gen",
    "pcie_width", "recovery_action",
)  # fmt: skip


def iso(epoch: float | None) -> str | None:
    """ISO 8601 in UTC, or None."""
    if epoch is None or not 0 <= epoch < _YEAR_9999:
        return None
    return datetime.fromtimestamp(epoch, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def envelope(cluster: Cluster) -> dict[str, Any]:
    """What every answer begins with: schema, cluster, time, and the state of each source."""
    return {
        "schema": SCHEMA,
        "cluster": cluster.config.name,
        "kind": cluster.kind.id if cluster.kind else None,
        "taken_at": iso(cluster.clock.now()),
        "sources": {state.name: _source(state, cluster.clock.steady()) for state in cluster.sources()},
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
    """Counts over the cluster and every problem, the open ones first."""
    view = cluster.view
    return envelope(cluster) | {
        "nodes": None
        if view.nodes is None
        else {"total": len(view.nodes), "by_state": joins.nodes_by_word(view.nodes)},
        "gpus": asdict(view.gpus),
        "jobs": None if view.queue is None else _job_counts(view),
        "fleet": fleet_record(view.aws),
        "problems": [problem_record(problem) for problem in cluster.problems()],
    }


def fleet_record(aws: AwsReading | None) -> dict[str, Any] | None:
    """What AWS tells of the cluster as a whole; null while AWS was not read."""
    if aws is None:
        return None
    fleet, stack, instances = aws.fleet.data, aws.stack.data, aws.instances.data
    return {
        "status": fleet.status if fleet else None,
        "since": iso(fleet.updated_at) if fleet else None,
        "stack": stack.word if stack else None,
        "version": (stack.version or None) if stack else None,
        "region": aws.region or None,
        "account": (aws.caller.data.account or None) if aws.caller.data else None,
        "instances_by_state": None if instances is None else dict(Counter(i.state for i in instances)),
        "not_read": {name: fault.line() for name, fault in aws.gaps().items()},
    }


def instance_record(instance: Instance | None) -> dict[str, Any] | None:
    """One instance as JSON; null where no instance is known."""
    if instance is None:
        return None
    checks = instance.checks
    return {
        "id": instance.id,
        "type": instance.type or None,
        "state": instance.state or None,
        "market": instance.market.value if instance.market else None,
        "zone": instance.zone or None,
        "placement_group": instance.placement_group or None,
        "private_ip": instance.private_ip or None,
        "launched_at": iso(instance.launched_at),
        "launch_template": instance.template or None,
        "capacity_reservation": instance.reservation or None,
        "efa_interfaces": instance.efa,
        "checks": None
        if checks is None
        else {"system": checks.system, "instance": checks.instance, "storage": checks.storage or None},
        "events": [
            {"code": event.code, "text": event.text, "not_before": iso(event.not_before)}
            for event in (checks.events if checks else ())
        ],
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


def problem_record(problem: Problem) -> dict[str, Any]:
    """Everything about one problem, JSON-ready."""
    told = problem.acknowledged
    return asdict(problem) | {
        "health": problem.health.value,
        "since": iso(problem.since),
        "acknowledged": None if told is None else {"note": told.note, "who": told.who, "at": iso(told.at)},
    }


def acknowledged(cluster: Cluster) -> dict[str, Any]:
    """What is acknowledged on this cluster, by the file alone: nothing is asked of the cluster."""
    return envelope(cluster) | {"acknowledged": [_kept(kept) for kept in cluster.acknowledged.book().values()]}


def _kept(kept: Kept) -> dict[str, Any]:
    told = kept.acknowledgement
    return {
        "key": kept.key,
        "note": told.note,
        "who": told.who,
        "at": iso(told.at),
        "health": kept.health.value,
        "count": kept.count,
        "gone_at": iso(kept.gone_at),
    }


def nodes(cluster: Cluster) -> dict[str, Any]:
    """Every node with all that is known of it; null when they could not be read."""
    view = cluster.view
    found = (
        None
        if view.nodes is None
        else [
            node_record(node, view.jobs_of_node.get(node.name, ()))
            | {"instance": instance_record(view.instance_of_node.get(node.name))}
            for node in view.nodes
        ]
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


def gpus(cluster: Cluster) -> dict[str, Any]:
    """Every GPU with its readings, null when nothing was read; a value that is not there is null, and `missing`
    says why.
    """
    view, steady = cluster.view, cluster.clock.steady()
    if view.nodes is None or view.fleet is None:
        return envelope(cluster) | {"gpus": None, "nodes": None}
    return envelope(cluster) | {
        "gpus": [gpu_record(row, steady) for row in view.gpu_rows],
        "nodes": [_watch_record(watch, steady) for watch in view.fleet.nodes.values()],
    }


def gpu_record(row: GpuRow, steady: float) -> dict[str, Any]:
    """One GPU as JSON."""
    sample = row.sample
    values = {name: getattr(sample, name) for name in _GPU_VALUES} if sample else dict.fromkeys(_GPU_VALUES, NOT_READ)
    return {
        "node": row.node,
        "slot": row.slot,
        "uuid": sample.gpu.uuid if sample else None,
        "pci": sample.gpu.pci if sample else None,
        "name": sample.gpu.name if sample else None,
        "index": sample.gpu.index if sample else None,
        "minor": sample.gpu.minor if sample else None,
        "mem_total_mib": known(sample.gpu.mem_total_mib) if sample else None,
        "health": row.health.value,
        "freshness": gpu_freshness(row, steady).value,
        "allocated": row.allocated,
        "job": row.job.label if row.job else None,
        "age_s": _rounded(gpu_age_s(row, steady)),
        "lost": sample.lost.why if sample and sample.lost else None,
        "ecc_corrected_per_s": sample.ecc_corrected_per_s if sample else None,
        **{name: known(value) for name, value in values.items()},
        "missing": {name: _why(value) for name, value in values.items() if isinstance(value, Missing)},
        "throttle": list(sample.throttle) if sample else [],
        "mig": [
            {"gpu_instance": part.gpu_instance, "name": part.name, "mem_used_mib": known(part.mem_used_mib)}
            for part in (sample.instances if sample else ())
        ],
        "findings": [asdict(finding) | {"health": finding.health.value} for finding in row.findings],
        "processes": [_process(process) for process in row.processes],
    }


def _process(process: GpuProcess) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "user": process.user or None,
        "command": process.command or None,
        "mem_mib": known(process.mem_mib),
        "job_id": process.job_id,
        "step": process.step or None,
        "rank": known(process.rank),
        "exists": process.exists,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _why(value: Missing) -> str:
    return f"{value.kind.value}: {value.why}" if value.why else value.kind.value


def _watch_record(watch: NodeWatch, steady: float) -> dict[str, Any]:
    reading = watch.reading
    return {
        "node": watch.node,
        "freshness": watch_freshness(watch, steady).value,
        "age_s": None if watch.seen_at is None else round(steady - watch.seen_at, 1),
        "error": None if watch.fault is None else asdict(watch.fault) | {"kind": watch.fault.kind.value},
        "driver": reading.driver.state.value if reading else None,
        "driver_why": (reading.driver.why or None) if reading else None,
        "driver_version": (reading.driver.version or None) if reading else None,
        "load": reading.load[0] if reading and reading.load else None,
        "not_read": dict(reading.not_read) if reading else {},
        "mounts": [asdict(mount) for mount in reading.mounts] if reading else [],
    }
