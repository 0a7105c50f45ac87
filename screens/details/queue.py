"""What the details of a queue (a Slurm partition) say. Imports no Textual."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cockpit.catalog.reader import load
from cockpit.cluster import Cluster
from cockpit.formats.hostlist import fold
from cockpit.formats.job_states import STARTED, job_state, order
from cockpit.formats.reasons import Explanation, explain_reason
from cockpit.joins import GpuCounts, gpu_counts
from cockpit.kinds.notes import kind_note
from cockpit.models import Health, Job, Node, Partition, PartitionConfig
from cockpit.sources.slurm import NODES
from cockpit.words import moment, plural, span
from screens.details.parts import job_link, label, listed, naming, node_link, problem_section, queue_link
from screens.lines import Line, Link, Subject, fact, facts, section

REASONS_MAX = 12
_CLOSED = ("inactive", "down")


def all_queue_lines(cluster: Cluster) -> list[Line]:
    """Every queue in a line: its state, how much runs and waits in it."""
    names = queue_names(cluster)
    if not names:
        return [[("no queue is known yet", "dim")]]
    lines: list[Line] = []
    for name in names:
        jobs, available = _jobs_in(cluster, name), queue_state(cluster, name)
        waiting, active = _tasks(jobs, "PD"), sum(job.task_count for job in jobs if job.state in STARTED)
        state = (f"  {available}", "" if available in ("up", "") else "warning")
        lines.append(["  ", queue_link(name), state, (f"  {active} running, {waiting} pending", "dim")])
    return lines


def queue_names(cluster: Cluster) -> list[str]:
    """Every queue that Slurm names, in its order."""
    site = [config.name for config in cluster.view.site.partitions] if cluster.view.site else []
    seen = [name for node in cluster.view.nodes or () for name in node.partitions]
    return list(dict.fromkeys([*site, *seen]))


def queue_lines(cluster: Cluster, name: str) -> list[Line]:
    """Its state and nodes, what it allows, its GPUs, what runs, who waits and why."""
    nodes = [node for node in cluster.view.nodes or () if name in node.partitions]
    jobs, config = _jobs_in(cluster, name), _config(cluster, name)
    available = queue_state(cluster, name)
    lines: list[Line] = [fact("state", available or "not told", "" if available in ("up", "") else "warning")]
    if available and available != "up":
        lines += facts([("meaning", queue_meaning(available))])
        lines += facts([("here", kind_note(cluster.kind, "queue_closed") if available in _CLOSED else "")])
    lines += problem_section(naming(cluster.view.problems, ("queue", name)), cluster.clock.now())
    lines += [[], section(f"nodes: {len(nodes)}"), *_nodes(nodes), *_gpus(gpu_counts(nodes))]
    lines += [[], section("jobs"), *_jobs(cluster, jobs)]
    return [*lines, *_waiting(cluster, jobs), *_limits(config)]


def queue_meaning(available: str) -> str:
    """What a queue's state means, in a sentence."""
    meanings: dict[str, str] = load("slurm_queues")["states"]
    return meanings.get(available, f"Slurm calls it {available}, which is not known here.")


def waiting_by_reason(jobs: Sequence[Job]) -> list[tuple[Explanation, list[Job]]]:
    """Pending records by what they wait for, the most tasks first; in each the highest priority first."""
    groups: dict[str, tuple[Explanation, list[Job]]] = {}
    for job in jobs:
        if job.state == "PD":
            for told in explain_reason(job.reason) or (NO_REASON,):
                groups.setdefault(told.code, (told, []))[1].append(job)
    found = sorted(groups.values(), key=lambda group: -sum(job.task_count for job in group[1]))
    return [(told, sorted(held, key=lambda job: -(job.priority or 0))) for told, held in found]


NO_REASON = Explanation("None", "Not looked at yet", "The scheduler has not come to it yet.", "Wait a moment.")


def _jobs_in(cluster: Cluster, name: str) -> list[Job]:
    return [job for job in cluster.view.queue.jobs if name in job.partitions] if cluster.view.queue else []


def _config(cluster: Cluster, name: str) -> PartitionConfig | None:
    partitions = cluster.view.site.partitions if cluster.view.site else ()
    return next((config for config in partitions if config.name == name), None)


def queue_state(cluster: Cluster, name: str) -> str:
    """As sinfo told it lately; a queue without a node stands only in the slower configuration."""
    told = next((one.available for one in _partitions(cluster) if one.name == name), "")
    config = _config(cluster, name)
    return told or (config.state.lower() if config else "")


def _partitions(cluster: Cluster) -> tuple[Partition, ...]:
    reading = cluster.store.state(NODES).data
    return reading.partitions if reading else ()


def _nodes(nodes: Sequence[Node]) -> list[Line]:
    """By state, those that deviate first and as links."""
    by_word: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        by_word[node.word].append(node)
    ranks = list(Health)
    lines: list[Line] = []
    for word, found in sorted(by_word.items(), key=lambda item: (-ranks.index(item[1][0].health), -len(item[1]))):
        if found[0].health is Health.OK:
            lines.append([label(word), f"{len(found)}", (f"  {fold(node.name for node in found)}", "dim")])
        else:
            lines += listed(word, [node_link(node.name, node) for node in found])
    return lines or [[("  none", "dim")]]


def _gpus(counts: GpuCounts) -> list[Line]:
    if counts.total is None:
        return []
    rest = [
        f"{number} {word}"
        for number, word in (
            (counts.powered_down, "powered down"),
            (counts.out_of_service, "out of service"),
            (counts.unknown, "not told"),
        )
        if number
    ]
    text = f"{counts.allocated} of {counts.total} allocated, {counts.free} free"
    return facts([("GPUs", ", ".join([text, *rest]))])


def _jobs(cluster: Cluster, jobs: Sequence[Job]) -> list[Line]:
    if cluster.view.queue is None:
        return [[("  the queue was not read yet", "dim")]]
    states = sorted({job.state for job in jobs}, key=lambda state: (order(state), state))
    words = [f"{_tasks(jobs, state)} {job_state(state).word}" for state in states]
    gpus = sum(job.gpus * job.task_count for job in jobs if job.state == "PD" and job.gpus)
    now = cluster.head_now()
    first = min((job for job in jobs if _may_start(job, now)), key=lambda job: job.started_at or 0.0, default=None)
    lines = facts(
        [("now", ", ".join(words) or "none"), ("asked for", f"{plural(gpus, 'GPU')} by those waiting" if gpus else "")]
    )
    if first is not None:
        when = f"{moment(first.started_at, now)}, in {span((first.started_at or now) - now)}, Slurm estimates: "
        lines.append([label("next start"), when, job_link(first)])
    return lines


def _may_start(job: Job, now: float) -> bool:
    return job.state == "PD" and job.started_at is not None and job.started_at > now


def _waiting(cluster: Cluster, jobs: Sequence[Job]) -> list[Line]:
    """Who waits and why: a heading for each reason, the first by priority as links."""
    groups = waiting_by_reason(jobs)
    if not groups:
        return []
    now = cluster.head_now()
    lines: list[Line] = [[], section("who waits and why")]
    for told, held in groups[:REASONS_MAX]:
        tasks = sum(job.task_count for job in held)
        code = Link(told.code, "warning" if told.stuck else "", Subject("reason", told.code))
        lines.append(["  ", code, f"  {told.title}", (f"  {plural(tasks, 'job')}", "dim")])
        lines.append([(f"    {told.meaning}", "dim")])
        lines += [_waiter(job, now) for job in held[:3]]
        if len(held) > 3:
            lines.append([(f"    and {len(held) - 3} more of lower priority", "dim")])
    return lines


def _waiter(job: Job, now: float) -> Line:
    waits = f"  waits {span(now - job.submitted_at)}" if job.submitted_at else ""
    starts = f", may start {moment(job.started_at, now)}" if _may_start(job, now) else ""
    return ["    ", job_link(job), f"  {job.user}  {job.name}", (f"{waits}, priority {job.priority}{starts}", "dim")]


def _limits(config: PartitionConfig | None) -> list[Line]:
    if config is None:
        return []
    told = [
        *facts(config.limits),
        *facts([("default", "yes" if config.default else ""), ("hidden", "yes" if config.hidden else "")]),
    ]
    return [[], section("limits"), *(told or [[("  none", "dim")]])]


def _tasks(jobs: Sequence[Job], state: str) -> int:
    return sum(job.task_count for job in jobs if job.state == state)
