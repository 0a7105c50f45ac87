"""Why a job is in its state, in plain words and with the facts of this cluster. Imports no Textual."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.catalog.problems import problem_fact
from cockpit.cluster import Cluster
from cockpit.formats.job_states import job_state
from cockpit.formats.reasons import Explanation, explain_reason
from cockpit.joins import find_row, gpu_counts, job_spec, nodes_of
from cockpit.kinds.notes import kind_note
from cockpit.models import Health, Job, Node
from cockpit.words import count
from screens.details.commands import commands, job_words
from screens.details.job import dependency_pieces, job_problems, states
from screens.details.job_place import job_place
from screens.details.job_where import rank_lines
from screens.details.parts import jobs_listed, known_nodes, listed, node_link, nodes_line, problem_section
from screens.details.queue import queue_meaning, queue_state
from screens.lines import Line, Link, Piece, Subject, fact, facts, section

AHEAD_MAX = 6


def explain_job(cluster: Cluster, key: str) -> list[Line]:
    """Its state, why it waits in plain words, what of that is so here, and how to see more."""
    row = find_row(cluster.view.queue, key)
    if row is None:
        return [[f"job {key.rstrip('_')} has left the queue"]]
    state = job_state(row.lead.state)
    lines: list[Line] = [[(f"job {row.key.rstrip('_')}: {states(row)}", "bright")], [], [f"  {state.meaning}"]]
    show: list[tuple[str, ...]] = [("scontrol", "-d", "show", "job", job_spec(row.lead))]
    for job in {member.reason: member for member in row.jobs if member.reason}.values():
        for told in explain_reason(job.reason):
            lines += [[], *told_lines(told), *_so_here(cluster, job, told)]
            show += [argv for argv in told.show if argv not in show]
    place = job_place(cluster, row)
    if place.odd:
        lines += [*rank_lines(place), *facts([("meaning", problem_fact("job:lag:").means)])]
    lines += problem_section(job_problems(cluster.view, row, place.processes), cluster.clock.now())
    shown = commands([("head", argv) for argv in show], job_words(row.lead))
    return [*lines, [], section("what shows it"), *shown]


def told_lines(told: Explanation) -> list[Line]:
    stuck = [fact("for ever", "it does not go away by itself", "warning")] if told.stuck else []
    pieces: list[Piece] = [Link(told.code, "", Subject("reason", told.code)), told.title]
    return [
        *listed("reason", pieces, "  "),
        *facts([("meaning", told.meaning)]),
        *stuck,
        *facts([("next", told.next_step)]),
    ]


def _so_here(cluster: Cluster, job: Job, told: Explanation) -> list[Line]:
    """The facts behind a reason on this cluster, as far as they are known."""
    nodes = known_nodes(cluster.view)
    lines = nodes_line("nodes", list(nodes_of(told.hostlist)), nodes) if told.hostlist else []
    if told.code == "Resources":
        lines += _room(cluster, job, nodes)
    if told.code == "Priority":
        lines += _ahead(cluster, job)
    if told.code.startswith("Dependency"):
        lines += listed("depends on", dependency_pieces(job.dependency, cluster.view.queue), "")
    if told.code.startswith("Partition"):
        for name in job.partitions:
            state = queue_state(cluster, name)
            closed = kind_note(cluster.kind, "queue_closed") if state in ("inactive", "down") else ""
            lines += facts([("here", f"{name} is {state}: {queue_meaning(state)} {closed}".strip() if state else "")])
    return lines


def _room(cluster: Cluster, job: Job, nodes: Mapping[str, Node]) -> list[Line]:
    """What it asks for against what its queues have."""
    mine = [node for node in nodes.values() if not set(node.partitions).isdisjoint(job.partitions)]
    gpus = gpu_counts(mine)
    asks = f"it asks for {count(job.gpus)} GPUs on {count(job.node_count)} nodes"
    if gpus.total is None:
        return facts([("here", asks)])
    has = f"its queue has {gpus.free} free, {gpus.powered_down} powered down, {gpus.out_of_service} out of service"
    out = [node_link(node.name, node) for node in mine if node.health is not Health.OK]
    return [*facts([("here", f"{asks}; {has}")]), *listed("out", out)]


def _ahead(cluster: Cluster, job: Job) -> list[Line]:
    """Who is before it in the same queue."""
    jobs = cluster.view.queue.jobs if cluster.view.queue else ()
    before = [
        other
        for other in jobs
        if other.state == "PD"
        and (other.priority or 0) > (job.priority or 0)
        and not set(other.partitions).isdisjoint(job.partitions)
    ]
    first = sorted(before, key=lambda other: -(other.priority or 0))
    return jobs_listed("ahead of it", first, AHEAD_MAX)
