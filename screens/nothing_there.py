"""What empty tables say: that there is nothing, why that may be, and what to do. Pure functions. Imports no Textual."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.cluster import Cluster, View
from cockpit.fleet import WITHOUT_MACHINE
from cockpit.joins import has_accelerators
from cockpit.sources.slurm import NODES
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


def closed_queues(cluster: Cluster) -> list[str]:
    """Queues that start no jobs, as `gpu is inactive`; as sinfo told it lately, else as they are configured."""
    reading, site = cluster.store.state(NODES).data, cluster.view.site
    told = {one.name: one.state.casefold() for one in (site.partitions if site else ())}
    told |= {one.name: one.available.casefold() for one in (reading.partitions if reading else ())}
    return [f"{name} is {state}" for name, state in told.items() if state in _CLOSED]


def no_gpus(view: View, closed: Sequence[str] = ()) -> str:
    """Why no GPU is watched: none is there, or their nodes have no machine now; `closed` as closed_queues has it."""
    nodes = [node for node in view.nodes or () if has_accelerators(node)]
    if not nodes:
        return "Slurm names no node with GPUs\nGres=gpu:N in slurm.conf on the head tells them to Slurm"
    asleep = [node for node in nodes if node.state.has(*WITHOUT_MACHINE)]
    if len(asleep) == len(nodes):
        every = "the node with GPUs is" if len(nodes) == 1 else f"all {len(nodes)} nodes with GPUs are"
        wakes = "a job wakes them by itself; S on a queue starts some"
        if closed:
            wakes = f"{_few(closed)}, so no job wakes them: P starts the cluster"
        return f"no node that is up has a GPU: {every} powered down or on the way\n{wakes}"
    up = plural(len(nodes) - len(asleep), "node")
    return f"no GPU is watched: {up} with a machine, none reached yet\ne on a node (2) tells more; r tries again now"


def no_jobs(view: View, closed: Sequence[str] = ()) -> str:
    """What an empty queue means: nothing there, or nothing that this login may see; queues that start nothing."""
    words = [_no_jobs(view)]
    if closed:
        words.append(f"{_few(closed)}: a job that is submitted there waits; e on the queue (:queue NAME) tells more")
    return "\n".join(words)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _no_jobs(view: View) -> str:
    if view.site is None or view.site.sees_all_jobs:
        return "no jobs in the queue: nothing runs, nothing waits"
    if view.site.sees_all_jobs is None:
        return "no jobs in the queue that this login may see; PrivateData may hide others' jobs"
    return "no jobs of your own; Slurm hides others' jobs from this login (PrivateData=jobs)"
