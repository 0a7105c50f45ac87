"""Pure joins and sums over the answers of several sources; nothing here is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import expand
from cockpit.formats.job_states import HOLDING
from cockpit.models import Health, Job, Node, NodesReading, NodeState, QueueReading, QueueRow, SlurmSite

HIDDEN_STATE = NodeState("hidden")


@dataclass(frozen=True, slots=True)
class GpuCounts:
    """GPUs as Slurm counts them; all None when no node has a GPU GRES that could be read.

    total = allocated + free + powered_down + out_of_service + unknown, where `free` can take a job now,
    `powered_down` needs an instance first, `out_of_service` is on nodes that take no new work, and `unknown`
    is on nodes that do not tell how many are used.
    """

    total: int | None = None
    allocated: int | None = None
    free: int | None = None
    powered_down: int | None = None
    out_of_service: int | None = None
    unknown: int | None = None


def gpu_counts(nodes: Iterable[Node]) -> GpuCounts:
    """Sum the GPUs over nodes; nodes without a GPU GRES count for nothing."""
    sums: Counter[str] = Counter()
    for node in nodes:
        if node.gpus_total is None:
            continue
        sums["total"] += node.gpus_total
        if node.gpus_used is None:
            sums["unknown"] += node.gpus_total
            continue
        sums["allocated"] += node.gpus_used
        sums[_spare_gpus(node)] += node.gpus_total - node.gpus_used
    if "total" not in sums:
        return GpuCounts()
    return GpuCounts(*(sums[name] for name in GpuCounts.__slots__))


def _spare_gpus(node: Node) -> str:
    if not takes_work(node):
        return "out_of_service"
    return "powered_down" if node.state.has("powered_down", "powering_down") else "free"


def takes_work(node: Node) -> bool:
    """True when Slurm would give this node a new job, starting its instance first if need be."""
    return serves(node.state)


def serves(state: NodeState) -> bool:
    """True when a node in this state takes new work, starting its instance first if need be."""
    if state.base in ("down", "error", "unknown", "future", "hidden"):
        return False
    if state.has("drain", "fail", "invalid_reg", "reboot_requested", "reboot_issued", "maintenance"):
        return False
    if state.has("power_down") and not state.has("powered_down"):
        return False
    return not state.has("not_responding") or state.has("powering_up", "powered_down")


def has_accelerators(node: Node) -> bool:
    """Whether a probe has something to read there: GPUs, or AWS Trainium and Inferentia by GRES or instance type."""
    if node.gpus_total or any(gres.name.startswith("neuron") for gres in node.gres):
        return True
    return any(feature.startswith(("trn1", "trn2", "inf2")) for feature in node.features)


def reason_applies(node: Node) -> bool:
    """Whether a node's reason is about its state now: from Slurm 23.11 on the text of an old drain stays."""
    return node.state.base in ("down", "error") or node.state.has("drain", "fail", "invalid_reg")


def hidden_nodes(reading: NodesReading | None, site: SlurmSite | None) -> tuple[Node, ...]:
    """Nodes that the queues' configuration names but sinfo leaves out (powered down, PrivateData without cloud)."""
    if reading is None or site is None or not site.hides_powered_down:
        return ()
    shown = {node.name for node in reading.nodes}
    queues: dict[str, list[str]] = {}
    for partition in site.partitions:
        for name in nodes_of(partition.hostlist):
            if name not in shown:
                queues.setdefault(name, []).append(partition.name)
    return tuple(
        Node(
            name,
            HIDDEN_STATE,
            "hidden",
            Health.UNKNOWN,
            tuple(of),
            reason="Slurm hides powered-down nodes here",
        )
        for name, of in queues.items()
    )


@lru_cache(maxsize=20_000)
def nodes_of(hostlist: str) -> tuple[str, ...]:
    """The names in a hostlist; () for one that cannot be read."""
    try:
        return tuple(expand(hostlist))
    except FormatError:
        return ()


def jobs_by_node(queue: QueueReading | None) -> Mapping[str, tuple[Job, ...]]:
    """For each node the jobs that hold it."""
    held: dict[str, list[Job]] = {}
    for job in queue.jobs if queue else ():
        if job.hostlist and job.state in HOLDING:
            for name in nodes_of(job.hostlist):
                held.setdefault(name, []).append(job)
    return {name: tuple(jobs) for name, jobs in held.items()}


def job_spec(job: Job) -> str:
    """What names one record of a job to scontrol: an array's own id would name every task, 22 MB for 20,000."""
    if job.array_job_id is not None and (first := re.match(r"[0-9]+", job.array_tasks)):
        return f"{job.array_job_id}_{first[0]}"
    return str(job.job_id)


def find_row(queue: QueueReading | None, key: str) -> QueueRow | None:
    """The line of the queue behind a key; for one task of an array (`123_7`) a line of that task alone.

    A real job id, as processes and Slurm's logs have it, leads to its line, too. None when it has left.
    """
    if queue is None:
        return None
    array = f"{key.partition('_')[0]}_"
    job_id = int(key) if key.isdecimal() and len(key) < 19 else None
    for row in queue.rows:
        if row.key == key:
            return row
        if row.key == array or job_id is not None:
            for job in row.jobs:
                if job.job_id == job_id or (row.key == array and job.key == key):
                    return QueueRow(key, (job,), ((job.state, job.task_count),)) if len(row.jobs) > 1 else row
    return None


def nodes_by_word(nodes: Iterable[Node]) -> dict[str, int]:
    """How many nodes are in each state, most first."""
    return dict(Counter(node.word for node in nodes).most_common())


def awaited(node: Node, site: SlurmSite | None) -> tuple[str, float | None]:
    """The setting of Slurm that ends what a node is in between, and its seconds; ("", None) for any other node.

    Slurm does not tell when that began.
    """
    if node.state.has("powering_down"):
        return "SuspendTimeout", site.suspend_timeout_s if site else None
    if node.state.has("powering_up"):
        return "ResumeTimeout", site.resume_timeout_s if site else None
    return "", None
