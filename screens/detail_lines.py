"""What the details of a node and of a job say, as lines: pure functions. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit import joins
from cockpit.cluster import Cluster
from cockpit.formats.hostlist import fold
from cockpit.formats.job_states import job_state
from cockpit.formats.node_state import explain_state
from cockpit.formats.reasons import explain_reason
from cockpit.models import Health, Job, Node, QueueRow
from cockpit.words import MISSING, count, mib, moment, span
from screens.lines import Line, fact, facts, section
from themes import STATE_TOKENS, state_token


def node_lines(cluster: Cluster, node: Node) -> list[Line]:
    """Why a node is in its state and what to do, its jobs, its GPUs, its machine."""
    now = cluster.head_now()
    raw = "+".join([node.state.base, *sorted(node.state.flags)]).upper()
    lines: list[Line] = [fact("state", node.word, state_token(node.health)), fact("Slurm says", raw)]
    if node.reason:
        since = f", {span(now - node.reason_at)} ago ({moment(node.reason_at, now)})" if node.reason_at else ""
        lines.append(fact("reason", node.reason))
        lines += facts([("set by", f"{node.reason_by}{since}" if node.reason_by else "")])
    lines += [
        [],
        section("what that means"),
        *([f"  {text}"] for text in explain_state(node.state, node.reason)),
    ]
    lines += [[], section("jobs on it"), *_jobs_on(cluster, node, now)]
    return [*lines, [], section("machine"), *_machine(cluster, node)]


def _jobs_on(cluster: Cluster, node: Node, now: float) -> list[Line]:
    if cluster.view.queue is None:
        return [[("  the queue was not read yet", "dim")]]
    held = cluster.view.jobs_of_node.get(node.name, ())
    return [_job_line(job, now) for job in held] or [[("  none", "dim")]]


def _job_line(job: Job, now: float) -> Line:
    started = f" for {span(now - job.started_at)}" if job.started_at and job.state == "R" else ""
    others = f" on {job.hostlist}" if (job.node_count or 1) > 1 else ""
    return [
        f"  {job.label}",
        f"  {job.user}  {job.name}",
        (f"  {job_state(job.state).word}{started}{others}", "dim"),
    ]


def _machine(cluster: Cluster, node: Node) -> list[Line]:
    used = "" if node.gpu_indices is None else f", in use: {', '.join(map(str, node.gpu_indices)) or 'none'}"
    gpus = f"{count(node.gpus_used)} of {node.gpus_total} {node.gpu_type} allocated{used}" if node.gpus_total else ""
    load = MISSING if node.cpu_load is None else f"{node.cpu_load:.2f}"
    return facts(
        [
            ("GPUs", gpus),
            ("CPUs", f"{count(node.cpus_used)} of {count(node.cpus_total)} allocated, load {load}"),
            (
                "memory",
                f"{mib(node.mem_used_mib)} of {mib(node.mem_mib)} allocated, {mib(node.mem_free_mib)} free",
            ),
            ("queues", ", ".join(node.partitions)),
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
    )


def job_lines(cluster: Cluster, row: QueueRow) -> list[Line]:
    """What a job or array does or waits for, when, on which nodes and GPUs."""
    job, now = row.lead, cluster.head_now()
    lines: list[Line] = [
        fact("state", _states(row)),
        *facts([("meaning", job_state(job.state).meaning)]),
    ]
    if job.reason:
        lines += [[], section("why"), *_reason_lines(row)]
    lines += [[], section("what"), *_what(row)]
    lines += [[], section("when"), *_when(job, now)]
    if any(member.hostlist for member in row.jobs):
        lines += [[], section("where"), *_where(cluster, row)]
    return lines


def _states(row: QueueRow) -> str:
    if len(row.tally) == 1 and row.tally[0][1] == 1:
        return job_state(row.lead.state).word
    return " · ".join(f"{tasks} {job_state(code).word}" for code, tasks in row.tally)


def _reason_lines(row: QueueRow) -> list[Line]:
    lines: list[Line] = []
    for reason in dict.fromkeys(member.reason for member in row.jobs if member.reason):
        for told in explain_reason(reason):
            lines += [fact(told.code, told.title), *facts([("", told.meaning), ("next", told.next_step)])]
            lines += facts([("nodes", told.hostlist)])
    return lines


def _what(row: QueueRow) -> list[Line]:
    job = row.lead
    gpus = f"{count(job.gpus)} {job.gpu_type}".strip()
    return facts(
        [
            ("name", job.name),
            ("user", job.user),
            ("account", job.account),
            ("queue", ", ".join(job.partitions)),
            ("qos", job.qos),
            ("asks for", f"nodes {count(job.node_count)}, GPUs {gpus}, CPUs {count(job.cpus)}"),
            ("priority", count(job.priority)),
            ("depends on", job.dependency),
            ("reservation", job.reservation),
            ("features", job.features),
            ("requeueable", {True: "yes", False: "no", None: ""}[job.requeueable]),
            ("restarts", count(job.restarts) if job.restarts else ""),
            ("comment", job.comment),
            ("admin note", job.admin_comment),
            ("system note", job.system_comment),
        ]
    )


def _when(job: Job, now: float) -> list[Line]:
    waiting = job.state == "PD"
    return facts(
        [
            ("submitted", moment(job.submitted_at, now)),
            ("eligible", moment(job.eligible_at, now)),
            ("may start" if waiting else "started", moment(job.started_at, now)),
            ("time limit", span(job.limit_s) if job.limit_s else job.limit_word),
            ("ends by", "" if waiting else moment(job.ends_at, now)),
        ]
    )


def _where(cluster: Cluster, row: QueueRow) -> list[Line]:
    names = {name: None for job in row.jobs for name in joins.nodes_of(job.hostlist)}
    known = {node.name: node for node in cluster.view.nodes or ()}
    lines = [fact("nodes", fold(names)), *facts([("batch host", row.lead.batch_host)])]
    for name in names:
        node = known.get(name)
        if node is not None and node.health is not Health.OK:
            lines.append([f"  {name} ", (node.word, state_token(node.health)), f" {node.reason}"])
    return lines


def pairs_lines(pairs: Iterable[tuple[str, str]]) -> list[Line]:
    """A record of Slurm's, every key as it stands there."""
    return [[(f"  {key}=", "dim"), value] for key, value in pairs]


def problem_lines(cluster: Cluster) -> list[Line]:
    """Every problem in full: what, since when, the evidence, what to do."""
    now = cluster.clock.now()
    lines: list[Line] = []
    for problem in cluster.problems():
        since = f"  for {span(now - problem.since)} ({moment(problem.since, now)})" if problem.since else ""
        lines += [[(problem.subject, STATE_TOKENS[problem.health]), f"  {problem.title}", (since, "dim")]]
        lines += facts([("evidence", problem.evidence), ("next", problem.next_step)])
        lines.append([])
    return lines or [["no problem is known"], [("what is checked: sources, nodes, queues, stuck jobs", "dim")]]
