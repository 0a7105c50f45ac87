"""Pieces that all details share: links, lists of nodes, problems, commands. Imports no Textual."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Mapping, Sequence

from cockpit.cluster import Cluster, View
from cockpit.fleet import GpuRow
from cockpit.formats.hostlist import fold
from cockpit.joins import awaited
from cockpit.models import Health, Job, Node, Problem
from cockpit.words import span
from screens.lines import LABEL_WIDTH, Line, Link, Piece, Subject, fact
from themes import WORDS, state_token

LINKS_MAX = 40  # in one line; what is more is told by its number

Keys = Container[str]


def node_link(name: str, node: Node | None = None, text: str = "") -> Link:
    """To a node, in the colour of its state."""
    return Link(text or name, state_token(node.health) if node else "", Subject("node", name))


def job_link(job: Job, text: str = "") -> Link:
    """To a job, or to the array that pending tasks belong to."""
    return Link(text or job.label, "", Subject("job", job.key))


def gpu_link(row: GpuRow, text: str = "") -> Link:
    """To a GPU, in the colour of its state; one that was never read has the colour of what is unknown."""
    return Link(text or row.key, state_token(row.health), Subject("gpu", row.key))


def queue_link(name: str) -> Link:
    """To a queue."""
    return Link(name, "", Subject("queue", name))


def problem_link(problem: Problem) -> Link:
    """To a problem, by its subject and title."""
    return Link(f"{problem.subject}: {problem.title}", state_token(problem.health), Subject("problem", problem.key))


def known_nodes(view: View) -> Mapping[str, Node]:
    """Slurm's nodes by name."""
    return {node.name: node for node in view.nodes or ()}


def find_node(view: View, name: str) -> Node | None:
    """The node of that name; None when Slurm has none."""
    return next((node for node in view.nodes or () if node.name == name), None)


def find_gpu(cluster: Cluster, key: str) -> GpuRow | None:
    """The row of that key; None when it is gone."""
    return next((row for row in cluster.view.gpu_rows if row.key == key), None)


def label(text: str) -> Piece:
    """The label before values, as `lines.fact` writes it."""
    return f"  {text:<{LABEL_WIDTH - 1}} ", "dim"


def awaited_lines(cluster: Cluster, node: Node) -> list[Line]:
    """What a node that is between two states waits for, and for how long at most, as Slurm is configured."""
    name, limit_s = awaited(node, cluster.view.site)
    if not name:
        return []
    return [fact("at most until", f"{name} is over" + (f", {span(limit_s)} after it began" if limit_s else ""))]


def listed(name: str, pieces: Sequence[Piece], between: str = ", ", most: int = LINKS_MAX) -> list[Line]:
    """One labelled line of several pieces, of which the first `most` are shown; nothing when there are none."""
    if not pieces:
        return []
    shown: list[Piece] = [label(name)]
    for number, piece in enumerate(pieces[:most]):
        shown += [between, piece] if number else [piece]
    if len(pieces) > most:
        shown.append((f" and {len(pieces) - most} more", "dim"))
    return [shown]


def jobs_listed(name: str, jobs: Sequence[Job], most: int = LINKS_MAX) -> list[Line]:
    """The first jobs as links, and how many more there are: a queue may hold 20,000."""
    lines = listed(name, [job_link(job) for job in jobs[:most]])
    more: Line = [(f" and {len(jobs) - most} more", "dim")] if len(jobs) > most else []
    return [[*line, *more] for line in lines]


def nodes_line(name: str, names: Sequence[str], nodes: Mapping[str, Node]) -> list[Line]:
    """A folded list of nodes; those that deviate, or all when they are few, are links."""
    if not names:
        return []
    if len(names) <= 4:
        return listed(name, [node_link(one, nodes.get(one)) for one in names])
    odd = [node_link(one, node) for one in names if (node := nodes.get(one)) and node.health is not Health.OK]
    lines: list[Line] = [[label(name), fold(names), (f"  {len(names)} nodes", "dim")]]
    return [*lines, *listed("of them", odd)]


def concerning(problems: Iterable[Problem], *, jobs: Keys = (), gpus: Keys = (), nodes: Keys = ()) -> list[Problem]:
    """The problems that concern things of these keys, by the narrowest thing a problem names.

    A fault of one GPU is nothing to a job that has others of the same node, a fault of the node is.
    """
    mine = {"job": jobs, "gpu": gpus, "node": nodes}
    found = []
    for problem in problems:
        named = {kind for kind, _ in problem.about}
        narrowest = next((kind for kind in mine if kind in named), "")
        if narrowest and any(kind == narrowest and key in mine[kind] for kind, key in problem.about):
            found.append(problem)
    return found


def naming(problems: Iterable[Problem], subject: tuple[str, str]) -> list[Problem]:
    """The problems that name one thing."""
    return [problem for problem in problems if subject in problem.about]


def problem_rows(problems: Iterable[Problem], now: float, most: int = 12) -> list[Line]:
    """A line for each problem: how bad, a link, since when; `now` is our own clock."""
    found = list(problems)
    lines: list[Line] = [
        [
            (f"  {WORDS[problem.health]:<5} ", state_token(problem.health)),
            problem_link(problem),
            (f"  {span(now - problem.since)}" if problem.since else "", "dim"),
        ]
        for problem in found[:most]
    ]
    return [*lines, [(f"  and {len(found) - most} more", "dim")]] if len(found) > most else lines


def problem_section(problems: Iterable[Problem], now: float) -> list[Line]:
    """The same under a heading; nothing when there are none."""
    rows = problem_rows(problems, now)
    return [[], [("problems", "bright")], *rows] if rows else []


def command(where: str, *argv: str) -> Line:
    """The exact command that shows something, to be copied; `where` it runs: "here", "head" or a node's name."""
    place = {"here": "from here", "head": "on the head"}.get(where, f"on {where}")
    return [(f"  {place:<{LABEL_WIDTH}}  ", "dim"), shlex.join(argv)]
