"""What the details of a job or array say. Imports no Textual."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from cockpit.cluster import Cluster, View
from cockpit.formats.hostlist import fold
from cockpit.formats.job_states import STARTED, job_state
from cockpit.formats.reasons import explain_reason
from cockpit.joins import find_row, nodes_of
from cockpit.models import Job, Node, Problem, QueueReading, QueueRow
from cockpit.words import count, moment, plural, span
from screens.details.job_place import job_place
from screens.details.job_where import rank_lines, where_lines
from screens.details.parts import concerning, job_link, known_nodes, listed, node_link, problem_section, queue_link
from screens.details.traffic import job_traffic_lines
from screens.lines import Line, Link, Piece, Subject, fact, facts, section
from screens.queue_table import health
from themes import state_token

TASKS_MAX = 200
_DEPENDS_ON = re.compile(r"(?<=:)[0-9]{1,18}(?:_(?:[0-9]{1,10}|\*)|\+[0-9]{1,10})?")


def job_lines(cluster: Cluster, row: QueueRow) -> list[Line]:
    """What a job or array does or waits for and why, what is wrong with it, when, where, down to its processes."""
    view, now = cluster.view, cluster.head_now()
    place, array = job_place(cluster, row), len(row.jobs) > 1
    lines: list[Line] = [
        fact("state", states(row), state_token(health(row))),
        *facts([("meaning", job_state(row.lead.state).meaning), ("time", "" if array else _time(row.lead, now))]),
        *job_traffic_lines(cluster, place.names),
        *problem_section(job_problems(view, row, place.processes), cluster.clock.now()),
    ]
    if any(member.reason for member in row.jobs):
        lines += [[], section("why"), *_why(row)]
    lines += rank_lines(place)
    lines += [[], section("what"), *_what(row, view.queue)]
    lines += [[], section("when"), *_when(row.lead, now, array)]
    if array:
        return [*lines, *_tasks(row, view, now)]
    return [*lines, *where_lines(cluster, row, place)]


def job_problems(view: View, row: QueueRow, gpus: Container[str]) -> list[Problem]:
    """Those that concern the job, its GPUs (by key), or one of its nodes as a whole."""
    keys = {row.key, *(job.key for job in row.jobs), *(str(job.job_id) for job in row.jobs)}
    nodes = {name for job in row.jobs for name in nodes_of(job.hostlist)}
    return concerning(view.problems, jobs=keys, gpus=gpus, nodes=nodes)


def states(row: QueueRow) -> str:
    """Its state in a word; of an array how many tasks are in which."""
    if len(row.tally) == 1 and row.tally[0][1] == 1:
        return job_state(row.lead.state).word
    return " · ".join(f"{tasks} {job_state(code).word}" for code, tasks in row.tally)


def _time(job: Job, now: float) -> str:
    """How long it runs of what it may, and how much is left."""
    if job.state not in STARTED or job.started_at is None:
        return ""
    used = span(now - job.started_at)
    if job.limit_s is None:
        return f"{used}, no time limit" if job.limit_word == "UNLIMITED" else used
    left_s = (job.ends_at or job.started_at + job.limit_s) - now
    return f"{used} of {span(job.limit_s)}, " + (f"{span(left_s)} left" if left_s > 0 else "its time is over")


def _why(row: QueueRow) -> list[Line]:
    lines: list[Line] = []
    for reason in dict.fromkeys(member.reason for member in row.jobs if member.reason):
        for told in explain_reason(reason):
            code = Link(told.code, "", Subject("reason", told.code))
            lines += listed("reason", [code, told.title], "  ")
            lines += facts([("", told.meaning), ("next", told.next_step), ("nodes", told.hostlist)])
    return lines


def _what(row: QueueRow, queue: QueueReading | None) -> list[Line]:
    job = row.lead
    gpus = f"{count(job.gpus)} {job.gpu_type}".strip()
    asks = f"nodes {count(job.node_count)}, GPUs {gpus}, CPUs {count(job.cpus)}"
    return [
        *facts([("name", job.name), ("user", job.user), ("account", job.account)]),
        *listed("queue", [queue_link(name) for name in job.partitions]),
        *facts([("qos", job.qos), ("asks for", asks), ("priority", count(job.priority))]),
        *listed("depends on", dependency_pieces(job.dependency, queue), ""),
        *_components(job, queue),
        *facts(
            [
                ("reservation", job.reservation),
                ("features", job.features),
                ("requeueable", {True: "yes", False: "no", None: ""}[job.requeueable]),
                ("restarts", count(job.restarts) if job.restarts else ""),
                ("comment", job.comment),
                ("admin note", job.admin_comment),
                ("system note", job.system_comment),
            ]
        ),
    ]


def dependency_pieces(text: str, queue: QueueReading | None) -> list[Piece]:
    """Slurm's text, in which every job that is still in the queue is a link."""
    pieces: list[Piece] = []
    at = 0
    for found in _DEPENDS_ON.finditer(text):
        row = find_row(queue, found[0].removesuffix("*"))
        if row is None:
            continue
        state = job_state(row.lead.state).word
        pieces += [text[at : found.start()], Link(found[0], "", Subject("job", row.key)), (f" {state} ", "dim")]
        at = found.end()
    return [piece for piece in [*pieces, text[at:]] if piece != ""]


def _components(job: Job, queue: QueueReading | None) -> list[Line]:
    """The other parts of a heterogeneous job."""
    if job.het_job_id is None or queue is None:
        return []
    parts = [one for one in queue.jobs if one.het_job_id == job.het_job_id and one.job_id != job.job_id]
    return listed("with", [job_link(one, f"{one.label} {job_state(one.state).word}") for one in parts])


def _when(job: Job, now: float, array: bool) -> list[Line]:
    """Start and end are those of one task, so an array has none."""
    waiting = job.state == "PD"
    return facts(
        [
            ("submitted", moment(job.submitted_at, now)),
            ("eligible", moment(job.eligible_at, now)),
            ("may start" if waiting else "started", "" if array else moment(job.started_at, now)),
            ("time limit", span(job.limit_s) if job.limit_s else job.limit_word),
            ("ends by", "" if waiting or array else moment(job.ends_at, now)),
        ]
    )


def _tasks(row: QueueRow, view: View, now: float) -> list[Line]:
    """An array's records by state; each is a link."""
    nodes = known_nodes(view)
    lines: list[Line] = []
    state = ""
    for job in row.jobs[:TASKS_MAX]:
        if job.state != state:
            state = job.state
            tasks = dict(row.tally).get(state, 0)
            lines += [[], section(f"{job_state(state).word}: {plural(tasks, 'task')}")]
        lines.append(_task(job, nodes, now))
    if len(row.jobs) > TASKS_MAX:
        lines.append([(f"  and {len(row.jobs) - TASKS_MAX} more", "dim")])
    return lines


def _task(job: Job, nodes: Mapping[str, Node], now: float) -> Line:
    if not job.hostlist:
        return [f"  {job.label}", (f"  {job.reason}", "dim")]
    names = nodes_of(job.hostlist)
    where: Piece = node_link(names[0], nodes.get(names[0])) if len(names) == 1 else fold(names)
    elapsed = f"  {span(now - job.started_at)}" if job.state in STARTED and job.started_at else ""
    return ["  ", job_link(job), elapsed, "  ", where]
