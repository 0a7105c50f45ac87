"""What the details of a problem say, and the list of all of them. Imports no Textual."""

from __future__ import annotations

from cockpit.catalog.checks import check_fact
from cockpit.catalog.problems import problem_fact
from cockpit.catalog.xids import SxidFact, XidFact, sxid, xid
from cockpit.cluster import Cluster
from cockpit.formats.node_state import next_step
from cockpit.joins import find_row
from cockpit.kinds.notes import kind_note, node_note, remedy_note
from cockpit.models import Node, Problem
from cockpit.words import moment, span
from screens.details.commands import commands, problem_words
from screens.details.job_place import job_place
from screens.details.job_where import rank_lines
from screens.details.parts import (
    LINKS_MAX,
    find_node,
    gpu_link,
    known_nodes,
    listed,
    node_link,
    problem_link,
    queue_link,
)
from screens.lines import Line, Link, Piece, Subject, fact, facts, section
from screens.waiting import failing_facts
from themes import STATE_TOKENS, WORDS, state_token

_BESIDE = {"pair": "efa", "deep": "health"}  # runs that are shown with those of another kind


def find_problem(cluster: Cluster, key: str) -> Problem | None:
    """The problem of that key; None when it is over."""
    return next((problem for problem in cluster.problems() if problem.key == key), None)


def all_problem_lines(cluster: Cluster) -> list[Line]:
    """Every problem, worst first: what, since when, the evidence, what to do; its title leads to the rest."""
    now = cluster.clock.now()
    lines: list[Line] = []
    for problem in cluster.problems():
        since = f"  for {span(now - problem.since)} ({moment(problem.since, now)})" if problem.since else ""
        word = (f"{WORDS[problem.health]:<5} ", STATE_TOKENS[problem.health])
        lines += [[word, problem_link(problem), (since, "dim")]]
        lines += facts([("known to", _known(problem, now)), ("evidence", problem.evidence)])
        lines += [*facts([("next", problem.next_step)]), []]
    return lines or [["no problem is known"], [("what is checked: sources, nodes, queues, stuck jobs, GPUs", "dim")]]


def problem_lines(cluster: Cluster, problem: Problem) -> list[Line]:
    """How bad, since when, the evidence, what it means here, what to do, how to see it, what it is about."""
    now = cluster.clock.now()
    told = problem_fact(problem.key)
    since = f"{span(now - problem.since)} ago ({moment(problem.since, now)})" if problem.since else "not known"
    lines: list[Line] = [
        [(problem.subject, "bright")],
        [(problem.title, state_token(problem.health))],
        [],
        fact("severity", WORDS[problem.health], state_token(problem.health)),
        *facts([("since", since), ("known to", _known(problem, now)), ("evidence", problem.evidence)]),
        *_code(problem),
        *facts([("meaning", told.means or _code_meaning(problem)), ("here", _here(cluster, problem, told.topic))]),
        *facts([("next", _next(cluster, problem)), *_tries(cluster, problem)]),
    ]
    lines += [*_ranks(cluster, problem), *_checked(cluster, problem)]
    shown = commands(told.show, problem_words(cluster, problem))
    lines += [[], section("what shows it"), *shown] if shown else []
    return lines + about_lines(cluster, problem)


def _tries(cluster: Cluster, problem: Problem) -> list[tuple[str, str]]:
    """Of sources that fail: when they are tried again, and what is read all the same."""
    kind, _, names = problem.key.partition(":")
    return failing_facts(cluster, names.split(", ")) if kind == "source" else []


def _ranks(cluster: Cluster, problem: Problem) -> list[Line]:
    """Of a problem of one job: which of its ranks is not like the others, where, and its pid."""
    jobs = {key for kind, key in problem.about if kind == "job"}
    row = find_row(cluster.view.queue, jobs.pop()) if len(jobs) == 1 else None
    place = job_place(cluster, row) if row is not None else None
    return rank_lines(place) if place is not None and place.odd else []


def _checked(cluster: Cluster, problem: Problem) -> list[Line]:
    """Of a failing check: what each node said when it was asked, and the way to all that its check found."""
    if not problem.key.startswith("check:"):
        return []
    found, now = cluster.kept_checks.of(problem.key, cluster.view), cluster.clock.now()
    lines: list[Line] = [
        [
            "  ",
            Link(one.node, "", Subject(_BESIDE.get(one.kind, one.kind), one.node)),
            f"  {f'with {one.partner}: ' if one.partner else ''}{one.says}",
            (f"  asked {moment(one.at, now)}, fails since {moment(one.since, now)}", "dim"),
        ]
        for one in found[:LINKS_MAX]
    ]
    return [[], section("what the nodes said"), *lines] if lines else []


def _known(problem: Problem, now: float) -> str:
    """Who has acknowledged it, in their words."""
    known = problem.acknowledged
    return f"{known.who} since {moment(known.at, now)}: {known.note}" if known else ""


def code_of(problem: Problem) -> tuple[str, str]:
    """The kind of code behind a problem and the code, as subjects have them; ("", "") when there is none."""
    kind, _, rest = problem.key.partition(":")
    parts = rest.split(":")
    if kind == "gpu" and len(parts) >= 3 and parts[-2] in ("xid", "throttle"):
        return parts[-2], parts[-1]
    if kind == "sxid" and parts[-1].isdecimal():
        return "sxid", parts[-1]
    # `job:Dependency` is about a reason of Slurm's; `job:hung:123` and its like are the cockpit's own findings.
    return ("reason", rest) if kind == "job" and len(parts) == 1 else ("", "")


def _code(problem: Problem) -> list[Line]:
    kind, code = code_of(problem)
    words = {"xid": f"Xid {code}", "sxid": f"SXid {code}", "throttle": "this clock reason", "reason": code}
    return listed("explained", [Link(words[kind], "", Subject(kind, code))]) if kind else []


def _code_fact(problem: Problem) -> XidFact | SxidFact | None:
    kind, code = code_of(problem)
    if kind not in ("xid", "sxid") or not code.isdecimal():
        return None
    return xid(int(code)) if kind == "xid" else sxid(int(code))


def _code_meaning(problem: Problem) -> str:
    if problem.key.startswith("check:"):
        return check_fact(problem.key.split(":", 2)[2]).meaning
    told = _code_fact(problem)
    return told.meaning if told else ""


def _first_node(cluster: Cluster, problem: Problem) -> Node | None:
    first = next((key for kind, key in problem.about if kind == "node"), "")
    return find_node(cluster.view, first) if first else None


def _here(cluster: Cluster, problem: Problem, topic: str) -> str:
    """What this kind of cluster does about it, by itself or when told."""
    node, told = _first_node(cluster, problem), _code_fact(problem)
    origin = cluster.origin(node.name) if node else ""
    if told is not None:
        return remedy_note(cluster.kind, told.remedy, origin)
    if topic:
        return kind_note(cluster.kind, topic, origin)
    return node_note(cluster.kind, node.state, origin) if node and problem.key.startswith("node:") else ""


def _next(cluster: Cluster, problem: Problem) -> str:
    """In a list a node's problem leads to its details, which these are."""
    node = _first_node(cluster, problem) if problem.key.startswith("node:") else None
    return (next_step(node.state, node.reason) if node else "") or problem.next_step


def about_lines(cluster: Cluster, problem: Problem) -> list[Line]:
    """Links to everything that a problem names and that is still there."""
    if not problem.about:
        return []
    nodes, rows = known_nodes(cluster.view), {row.key: row for row in cluster.view.gpu_rows}
    named = {kind: [key for one, key in problem.about if one == kind] for kind in ("node", "gpu", "job", "queue")}
    pieces: dict[str, list[Piece]] = {
        "nodes": [node_link(key, nodes.get(key)) for key in named["node"]],
        "GPUs": [gpu_link(rows[key]) if key in rows else key for key in named["gpu"]],
        "jobs": _jobs(cluster, named["job"]),
        "queues": [queue_link(key) for key in named["queue"]],
    }
    lines = [line for name, found in pieces.items() for line in listed(name, found)]
    return [[], section("what it is about"), *lines]


def _jobs(cluster: Cluster, keys: list[str]) -> list[Piece]:
    """Only those that will be shown are looked up: a queue may have 20,000 lines."""
    queue = cluster.view.queue
    lines = {row.key for row in queue.rows} if queue else set()
    there = {key for key in keys[:LINKS_MAX] if key in lines or find_row(queue, key) is not None}
    return [
        Link(key.rstrip("_"), "", Subject("job", key)) if key in there or at >= LINKS_MAX else f"{key} (left the queue)"
        for at, key in enumerate(keys)
    ]
