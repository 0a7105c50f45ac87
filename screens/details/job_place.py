"""A job joined with its nodes, GPUs, processes and ranks, once for everything that is said of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow, watch_freshness
from cockpit.formats.job_states import HOLDING
from cockpit.gpu_models import GpuProcess
from cockpit.joins import nodes_of
from cockpit.models import Freshness, Node, QueueRow
from screens.details.gpu_rows import Odd, odd_ones, processes_of
from screens.details.parts import known_nodes
from screens.details.ranks import Census, census


@dataclass(frozen=True, slots=True)
class JobPlace:
    """`rows` are the GPUs that are surely the job's or that a process of its holds, `processes` by GPU key.

    `read` are its nodes of which some GPU was read, `silent` those of which no processes are known now. Ranks of
    an array's tasks are no series and its GPUs no peers: then `census` and `odd` are empty.
    """

    names: tuple[str, ...]
    nodes: Mapping[str, Node]
    rows: Sequence[GpuRow]
    by_node: Mapping[str, Sequence[GpuRow]]
    read: Set[str]
    processes: Mapping[str, Sequence[GpuProcess]]
    silent: Sequence[str]
    census: Census
    odd: Sequence[Odd]


def nodes_held(row: QueueRow) -> tuple[str, ...]:
    """The nodes the line holds, each once, in Slurm's order."""
    held = (name for job in row.jobs if job.state in HOLDING for name in nodes_of(job.hostlist))
    return tuple(dict.fromkeys(held))


def job_place(cluster: Cluster, row: QueueRow) -> JobPlace:
    """Join what the cluster's view tells of the job."""
    names, ids = nodes_held(row), {job.job_id for job in row.jobs}
    held = set(names)
    there = [gpu for gpu in cluster.view.gpu_rows if gpu.node in held]
    rows = [gpu for gpu in there if (gpu.job and gpu.job.job_id in ids) or any(p.job_id in ids for p in gpu.processes)]
    by_node: dict[str, list[GpuRow]] = defaultdict(list)
    for gpu in rows:
        by_node[gpu.node].append(gpu)
    processes = {gpu.key: processes_of(gpu, ids) for gpu in rows}
    single = rows if len(row.jobs) == 1 else []
    steady = cluster.clock.steady()
    return JobPlace(
        names,
        known_nodes(cluster.view),
        rows,
        by_node,
        {gpu.node for gpu in there if gpu.sample},
        processes,
        _silent(cluster, names, by_node),
        census((gpu.node, process) for gpu in single for process in processes[gpu.key]),
        odd_ones(single, processes, steady, cluster.rules.straggler_pct),
    )


def _silent(cluster: Cluster, names: Sequence[str], by_node: Mapping[str, object]) -> list[str]:
    watches = cluster.view.fleet.nodes if cluster.view.fleet else {}
    steady = cluster.clock.steady()
    return [
        name
        for name in names
        if name not in by_node
        or (watch := watches.get(name)) is None
        or watch_freshness(watch, steady) is not Freshness.LIVE
        or watch.reading is None
        or watch.reading.processes_at is None
        or "processes" in watch.reading.not_read
    ]
