"""Which nodes a check is about: those behind what somebody points at. Pure, imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit import joins
from cockpit.cluster import View
from cockpit.models import Problem
from screens.lines import Subject

# Kinds of subjects whose key is a node's name.
OF_NODE = ("node", "efa", "health", "versions")


def nodes_of(view: View, problems: Iterable[Problem], subject: Subject) -> tuple[str, ...]:
    """The node itself, a GPU's, those of a job or a queue, those that a problem is about; () when there are none."""
    kind, key = subject.kind, subject.key
    if kind in OF_NODE:
        return (key,) if key else ()
    if kind == "gpu":
        return (key.rpartition("/")[0],)
    if kind == "queue":
        return tuple(node.name for node in view.nodes or () if key in node.partitions)
    if kind == "job":
        row = joins.find_row(view.queue, key)
        return tuple(dict.fromkeys(name for job in row.jobs for name in joins.nodes_of(job.hostlist))) if row else ()
    if kind == "problem":
        about = next((problem.about for problem in problems if problem.key == key), ())
        near = [pair for pair in about if pair[0] in ("node", "gpu")] or about  # before all nodes of its job
        found = (nodes_of(view, (), Subject(*pair)) for pair in near)
        return tuple(dict.fromkeys(name for names in found for name in names))
    return ()
