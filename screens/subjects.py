"""What is behind the thing that a cursor is on: its node, its job, its problems. Pure functions over a view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cockpit import joins
from cockpit.cluster import View
from cockpit.fleet import WITHOUT_MACHINE
from cockpit.formats.job_states import HOLDING
from cockpit.models import Health, Node, Problem, QueueRow
from screens.lines import Subject

# A comma inside brackets belongs to a host list, any other ends a word.
_WORD = re.compile(r"(?:[^\s,\[]|\[[^\]\s]*\])+")
NOTHING = "there is nothing under the cursor"


def queue_row(view: View, key: str) -> QueueRow | None:
    """The line of the queue with that key; None when it has left."""
    return next((row for row in view.queue.rows if row.key == key), None) if view.queue else None


def title(subject: Subject) -> str:
    """What to call it in a heading: `node p5-3`, `job 123`."""
    return f"{subject.kind} {subject.key.rstrip('_')}" if subject.key else f"{subject.kind}s"


def shell_node(view: View, subject: Subject | None) -> tuple[Node | None, str]:
    """The node that a shell is for, or why there is none: the node itself, a GPU's node, a job's batch host."""
    if subject is None:
        return None, NOTHING
    name, why = _shell_name(view, subject)
    if why:
        return None, why
    node = next((node for node in view.nodes or () if node.name == name), None)
    if node is None:
        return None, f"{name} is not among the nodes that Slurm shows"
    if node.state.has(*WITHOUT_MACHINE):
        return None, f"{name} is {node.word}: there is no machine to log in to"
    return node, ""


def _shell_name(view: View, subject: Subject) -> tuple[str, str]:
    if subject.kind == "node":
        return subject.key, ""
    if subject.kind == "gpu":
        return subject.key.rpartition("/")[0], ""
    if subject.kind == "job":
        return _job_node(queue_row(view, subject.key))
    if subject.kind == "problem":
        return _problem_node(view, subject.key)
    return "", f"a {subject.kind} has no machine of its own"


def _job_node(row: QueueRow | None) -> tuple[str, str]:
    if row is None:
        return "", "the job has left the queue"
    names = (row.lead.batch_host, *joins.nodes_of(row.lead.hostlist)) if row.lead.state in HOLDING else ()
    name = next((name for name in names if name), "")
    return (name, "") if name else ("", f"job {row.lead.label} is on no node now")


def _problem_node(view: View, key: str) -> tuple[str, str]:
    problem = next((problem for problem in view.problems if problem.key == key), None)
    known = {node.name for node in view.nodes or ()}
    named = _named(problem.subject) & known if problem else set()
    return (named.pop(), "") if len(named) == 1 else ("", "this problem is not about one node")


def output_reason(view: View, subject: Subject | None) -> str:
    """Why there is no output to read; empty when there is a job that has started."""
    if subject is None:
        return NOTHING
    if subject.kind != "job":
        return "only a job has output"
    row = queue_row(view, subject.key)
    if row is None:
        return "the job has left the queue"
    return "" if any(job.state in HOLDING for job in row.jobs) else f"job {row.lead.label} has not started"


def acknowledge_reason(view: View, problems: Iterable[Problem], subject: Subject | None) -> str:
    """Why there is nothing to acknowledge; empty when a problem is, or may be, about the subject."""
    if subject is None:
        return NOTHING
    if problems_of(problems, subject):
        return ""
    # A problem names the first of many nodes only.
    node = next((node for node in view.nodes or () if subject.kind == "node" and node.name == subject.key), None)
    return f"no problem is known of {title(subject)}" if node is None or node.health is Health.OK else ""


def problems_of(problems: Iterable[Problem], subject: Subject) -> Sequence[Problem]:
    """The problems that are about it: itself, or those whose words name it."""
    if subject.kind == "problem":
        return [problem for problem in problems if subject.key in (problem.key, "")]
    key = subject.key.rstrip("_")
    name = key.rpartition("/")[0] if subject.kind == "gpu" else key
    return [problem for problem in problems if name in _named(problem.subject)]


def _named(words: str) -> set[str]:
    """Every word, and every name of a word that is a host list."""
    return {name for word in _WORD.findall(words) for name in (word, *joins.nodes_of(word))}
