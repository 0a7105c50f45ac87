"""What is behind the thing that a cursor is on: its node, its job, its problems. Pure functions over a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from cockpit import joins
from cockpit.catalog.gpu_codes import throttle_reasons
from cockpit.cluster import View
from cockpit.fleet import WITHOUT_MACHINE
from cockpit.formats.job_states import HOLDING
from cockpit.models import Job, Node, Problem, QueueRow
from screens.lines import Subject

# What pane 6 shows of a node; the key is the node's name.
CHECKED: Mapping[str, str] = {"efa": "EFA check", "health": "health check", "versions": "versions"}
NOTHING = "there is nothing under the cursor"


def title(subject: Subject, problems: Iterable[Problem] = ()) -> str:
    """What to call it in a heading: `node p5-3`, `job 123`; a problem by what it is about, when it is among them."""
    if subject.kind == "problem" and subject.key:
        about = next((problem.subject for problem in problems if problem.key == subject.key), "")
        return f"problem: {about}" if about else "problem"
    if subject.kind in _NAMELESS:
        return _NAMELESS[subject.kind]
    if subject.kind == "traffic":
        return f"EFA traffic of {subject.key}" if subject.key else "EFA traffic"
    if subject.kind in _NAMES and subject.key:
        return _NAMES[subject.kind](subject.key)
    if subject.kind in CHECKED:
        return f"{CHECKED[subject.kind]} of {subject.key}" if subject.key else f"{CHECKED[subject.kind]}s"
    return f"{subject.kind} {subject.key.rstrip('_')}" if subject.key else f"{subject.kind}s"


def noun(subject: Subject) -> str:
    """What a thing of its kind is called: `node`, `NCCL test`, `line of the costs`."""
    return _NOUNS.get(subject.kind) or _NAMELESS.get(subject.kind, subject.kind)


_NOUNS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(CHECKED, "node"), "gpu": "GPU", "cost": "line of the costs", "storage": "mount",
        "pane": "table", "traffic": "EFA traffic", "xid": "Xid", "sxid": "SXid", "throttle": "clock reason",
    }
)  # fmt: skip
# Kinds whose keys say nothing to anybody.
_NAMELESS: Mapping[str, str] = {"nccl": "NCCL test", "log": "log line"}


def _clock_reason(key: str) -> str:
    try:
        words = [reason.word for reason in throttle_reasons(int(key, 16))]
    except ValueError:
        words = []
    return f"clock reason {', '.join(words) or key}"


# Kinds that are called otherwise than by kind and key.
_NAMES: Mapping[str, Callable[[str], str]] = {
    "xid": lambda key: f"Xid {key}",
    "sxid": lambda key: f"SXid {key}",
    "throttle": _clock_reason,
    "cost": lambda key: f"cost: {', '.join(part for part in key.split(':') if part)}",
    "storage": lambda key: f"storage {key.split(':')[1] if ':' in key else key}",
    "setting": lambda key: f"setting {key.replace('clusters.*.', '')}",
    "pane": lambda key: f"table {key}",
}


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
    if subject.kind == "node" or subject.kind in CHECKED:
        return subject.key, ""
    if subject.kind == "gpu":
        return subject.key.rpartition("/")[0], ""
    if subject.kind == "job":
        return _job_node(joins.find_row(view.queue, subject.key))
    if subject.kind == "problem":
        return _problem_node(view, subject.key)
    return "", f"this {noun(subject)} has no machine of its own"


def _job_node(row: QueueRow | None) -> tuple[str, str]:
    if row is None:
        return "", "the job has left the queue"
    names = (row.lead.batch_host, *joins.nodes_of(row.lead.hostlist)) if row.lead.state in HOLDING else ()
    name = next((name for name in names if name), "")
    return (name, "") if name else ("", f"job {row.lead.label} is on no node now")


def _problem_node(view: View, key: str) -> tuple[str, str]:
    nodes = _about(view, key, "node")
    return (nodes[0], "") if len(nodes) == 1 else ("", "this problem is not about one node")


def _about(view: View, key: str, kind: str) -> list[str]:
    """What of one kind a problem is about, each once."""
    problem = next((problem for problem in view.problems if problem.key == key), None)
    return list(dict.fromkeys(name for what, name in (problem.about if problem else ()) if what == kind))


def job_behind(view: View, subject: Subject | None) -> tuple[QueueRow | None, str]:
    """The line of the queue that is meant: the job itself, the one job of a problem, a GPU or a node; or why none."""
    if subject is None:
        return None, NOTHING
    keys = _job_keys(view, subject)
    if not keys:
        return None, f"no job is behind this {noun(subject)}"
    if (several := len(set(keys))) > 1:
        return None, f"{several} jobs run there: choose one"
    row = joins.find_row(view.queue, keys[0])
    return row, "" if row else "the job has left the queue"


def jobs_behind(view: View, subject: Subject | None) -> tuple[list[Job], str]:
    """The jobs that are meant, each task of an array for itself, those that run before others; or why there are none.

    Of a job that has not started there is its record alone.
    """
    if subject is None:
        return [], NOTHING
    if subject.kind == "node":
        jobs = list(view.jobs_of_node.get(subject.key, ()))
    else:
        rows = [joins.find_row(view.queue, key) for key in dict.fromkeys(_job_keys(view, subject))]
        jobs = [job for row in rows if row is not None for job in _parts(row)]
        if not jobs and rows:
            return [], "the job has left the queue"
    return jobs, "" if jobs else f"no job is behind this {noun(subject)}"


def _parts(row: QueueRow) -> Sequence[Job]:
    return [job for job in row.jobs if job.state in HOLDING] or [row.lead]


def diagnose_reason(view: View, subject: Subject | None) -> str:
    """Why there is no job to look at; empty when there is one."""
    return jobs_behind(view, subject)[1]


def _job_keys(view: View, subject: Subject) -> list[str]:
    if subject.kind == "job":
        return [subject.key]
    if subject.kind == "problem":
        return _about(view, subject.key, "job")
    if subject.kind == "gpu":
        return [row.job.key for row in view.gpu_rows if row.key == subject.key and row.job is not None]
    of_node = subject.kind == "node" or subject.kind in CHECKED
    return [job.key for job in view.jobs_of_node.get(subject.key, ())] if of_node else []


def output_reason(view: View, subject: Subject | None) -> str:
    """Why there is no output to read; empty when there is a job that has started."""
    row, why = job_behind(view, subject)
    if row is None:
        return why
    return "" if any(job.state in HOLDING for job in row.jobs) else f"job {row.lead.label} has not started"


def acknowledge_reason(problems: Iterable[Problem], subject: Subject | None) -> str:
    """Why there is nothing to acknowledge; empty when a problem is about the subject."""
    if subject is None:
        return NOTHING
    return "" if problems_of(problems, subject) else f"no problem is known of {title(subject)}"


def problems_of(problems: Iterable[Problem], subject: Subject) -> Sequence[Problem]:
    """The problems that are about it, or it itself."""
    if subject.kind == "problem":
        return [problem for problem in problems if subject.key in (problem.key, "")]
    about = ("node" if subject.kind in CHECKED else subject.kind, subject.key)
    return [problem for problem in problems if about in problem.about]
