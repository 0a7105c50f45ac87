"""What empty tables say: that there is nothing, why that may be, and what to do. Pure functions. Imports no Textual."""

from __future__ import annotations

from cockpit.cluster import View
from cockpit.fleet import WITHOUT_MACHINE
from cockpit.joins import has_accelerators
from cockpit.words import plural

NO_NODES = (
    "Slurm names no nodes to this login\n"
    "`scontrol show nodes` on the head tells whether there are any; PrivateData=nodes hides them from most logins"
)
NO_STORAGE = (
    "no probe has told of a mount, and no FSx file system is known\n"
    "mounts are told as soon as a node is up and its probe runs (3); FSx is read where the region is known"
)
_CLOSED = ("down", "inactive", "drain")


def no_gpus(view: View) -> str:
    """Why no GPU is watched: none is there, or their nodes have no machine now."""
    nodes = [node for node in view.nodes or () if has_accelerators(node)]
    if not nodes:
        return "Slurm names no node with GPUs\nGres=gpu:N in slurm.conf on the head tells them to Slurm"
    asleep = [node for node in nodes if node.state.has(*WITHOUT_MACHINE)]
    if len(asleep) == len(nodes):
        every = "the node with GPUs is" if len(nodes) == 1 else f"all {len(nodes)} nodes with GPUs are"
        return (
            f"no node that is up has a GPU: {every} powered down or on the way\n"
            "a job wakes them by itself; S on a queue starts some, P all of them where the cluster was stopped"
        )
    up = plural(len(nodes) - len(asleep), "node")
    return f"no GPU is watched: {up} with a machine, none reached yet\ne on a node (2) tells more; r tries again now"


def no_jobs(view: View) -> str:
    """What an empty queue means: nothing there, or nothing that this login may see; queues that start nothing."""
    closed = [one for one in (view.site.partitions if view.site else ()) if one.state.casefold() in _CLOSED]
    words = [_no_jobs(view)]
    if closed:
        names = ", ".join(f"{one.name} is {one.state.casefold()}" for one in closed)
        words.append(f"{names}: a job that is submitted there waits; e on the queue (:queue NAME) tells more")
    return "\n".join(words)


def _no_jobs(view: View) -> str:
    if view.site is None or view.site.sees_all_jobs:
        return "no jobs in the queue: nothing runs, nothing waits"
    if view.site.sees_all_jobs is None:
        return "no jobs in the queue that this login may see; PrivateData may hide others' jobs"
    return "no jobs of your own; Slurm hides others' jobs from this login (PrivateData=jobs)"
