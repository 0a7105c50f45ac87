"""What the details of a node say. Imports no Textual."""

from __future__ import annotations

from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow, watch_freshness, worst_first
from cockpit.formats.job_states import STARTED, job_state
from cockpit.formats.node_state import explain_state
from cockpit.joins import reason_applies
from cockpit.kinds.notes import node_note
from cockpit.models import Freshness, Job, Node
from cockpit.words import MISSING, count, mib, moment, span
from screens.details.checks_known import checks_of
from screens.details.gpu_rows import gpu_lines_of
from screens.details.node_instance import event_lines, instance_lines
from screens.details.node_machine import machine_lines
from screens.details.parts import awaited_lines, gpu_link, job_link, listed, naming, problem_section, queue_link
from screens.details.ranks import ranges
from screens.details.traffic import node_traffic_lines
from screens.lines import Line, Piece, fact, facts, section
from themes import state_token


def node_lines(cluster: Cluster, node: Node) -> list[Line]:
    """Why a node is in its state and what to do, what is wrong with it, its jobs, GPUs, instance, events, machine."""
    raw = "+".join([node.state.base, *sorted(node.state.flags)]).upper()
    lines: list[Line] = [fact("state", node.word, state_token(node.health)), fact("Slurm says", raw)]
    lines += [*_reason(node, cluster.head_now()), *node_traffic_lines(cluster, node.name)]
    lines += problem_section(naming(cluster.view.problems, ("node", node.name)), cluster.clock.now())
    lines += [[], section("what that means"), *([f"  {text}"] for text in explain_state(node.state, node.reason))]
    if note := node_note(cluster.kind, node.state, cluster.origin(node.name)):
        lines.append([f"  {note}"])
    lines += awaited_lines(cluster, node)
    rows = [row for row in cluster.view.gpu_rows if row.node == node.name]
    lines += [[], section("jobs on it"), *_jobs_on(cluster, node, rows)]
    lines += checks_of(cluster, node.name)
    lines += _gpus(cluster, node, rows)
    lines += [*instance_lines(cluster, node.name), *event_lines(cluster, node.name)]
    lines += machine_lines(cluster, node.name, rows)
    return [*lines, [], section("Slurm's view of it"), *_slurm(cluster, node)]


def _reason(node: Node, now: float) -> list[Line]:
    """From Slurm 23.11 on the text of an old drain stays on a node that is well: then it is told as old."""
    if not node.reason:
        return []
    since = f"{span(now - node.reason_at)} ago ({moment(node.reason_at, now)})" if node.reason_at else ""
    by = ", ".join(word for word in (node.reason_by, since) if word)
    old = "" if reason_applies(node) else "  (of an earlier time; it is in service)"
    return [[*fact("reason", node.reason), (old, "dim")], *facts([("set by", by)])]


def _jobs_on(cluster: Cluster, node: Node, rows: list[GpuRow]) -> list[Line]:
    if cluster.view.queue is None:
        return [[("  the queue was not read yet", "dim")]]
    held = cluster.view.jobs_of_node.get(node.name, ())
    return [_job_line(job, rows, cluster.head_now()) for job in held] or [[("  none", "dim")]]


def _job_line(job: Job, rows: list[GpuRow], now: float) -> Line:
    elapsed = f" for {span(now - job.started_at)}" if job.started_at and job.state in STARTED else ""
    others = f", on {count(job.node_count)} nodes" if (job.node_count or 1) > 1 else ""
    slots = [row.slot for row in rows if row.job is not None and row.job.job_id == job.job_id]
    on = f"  GPU {ranges(slots)}" if slots else ""
    line: list[Piece] = ["  ", job_link(job), f"  {job.user}  {job.name}"]
    return [*line, (f"  {job_state(job.state).word}{elapsed}{others}", "dim"), on]


def _gpus(cluster: Cluster, node: Node, rows: list[GpuRow]) -> list[Line]:
    """Every GPU, the worst first, with its job and processes."""
    if not rows:
        return []
    steady = cluster.clock.steady()
    watch = rows[0].watch
    lines: list[Line] = [[], section("GPUs")]
    if watch is not None and watch.seen_at is None:
        why = watch.fault.line() if watch.fault else "connecting …"
        return [*lines, [(f"  not read: {why}", "warning" if watch.fault else "dim")], *_unread(rows)]
    if watch is None:
        return [*lines, [("  not watched", "dim")], *_unread(rows)]
    if watch_freshness(watch, steady) is not Freshness.LIVE and watch.seen_at is not None:
        why = f": {watch.fault.line()}" if watch.fault else ""
        lines.append([(f"  read {span(steady - watch.seen_at)} ago{why}", "warning")])
    for row in sorted(rows, key=lambda row: (worst_first(row)[0], row.slot)):
        lines += gpu_lines_of(row, sorted(row.processes, key=lambda p: p.pid), steady, with_job=True)
    return lines


def _unread(rows: list[GpuRow]) -> list[Line]:
    return listed("", [gpu_link(row, f"GPU {row.slot}") for row in rows])


def _slurm(cluster: Cluster, node: Node) -> list[Line]:
    used = "" if node.gpu_indices is None else f", in use: {ranges(node.gpu_indices) or 'none'}"
    gpus = f"{count(node.gpus_used)} of {node.gpus_total} {node.gpu_type} allocated{used}" if node.gpus_total else ""
    load = MISSING if node.cpu_load is None else f"{node.cpu_load:.2f}"
    memory = f"{mib(node.mem_used_mib)} of {mib(node.mem_mib)} allocated, {mib(node.mem_free_mib)} free"
    cpus = f"{count(node.cpus_used)} of {count(node.cpus_total)} allocated, load {load}"
    return [
        *facts([("GPUs", gpus), ("CPUs", cpus), ("memory", memory)]),
        *listed("queues", [queue_link(name) for name in sorted(node.partitions)]),
        *facts(
            [
                ("origin", cluster.origin(node.name)),
                ("address", node.address),
                ("host name", node.hostname),
                ("slurmd", node.version),
                ("features", ", ".join(node.features)),
                ("reservation", node.reservation),
                ("weight", count(node.weight)),
                ("comment", node.comment),
                ("extra", node.extra),
            ]
        ),
    ]
