"""Narrow reads of what an action is about to change or has changed; each waits for the head and raises FaultError."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from actions.rights import fresh_site
from cockpit.formats.hostlist import brief, fold
from cockpit.formats.job_now import JobNow, job_now_args, on_nodes_args, parse_jobs_now, waiting_args
from cockpit.formats.scontrol import Reservation, parse_partitions, parse_reservations
from cockpit.formats.scontrol_show import NodeDetail, parse_node_details
from cockpit.joins import nodes_of
from cockpit.models import FaultError, FaultKind

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

# `scontrol show node` with a long list is quadratic in old versions; above this all nodes are asked for.
_NAMED_NODES = 32
_IDS_PER_CALL = 200
_COUNTS = re.compile(r":[0-9]+")


def nodes_now(cluster: Cluster, names: Collection[str]) -> dict[str, NodeDetail]:
    """These nodes by name; one that Slurm does not know is left out."""
    what = f"looking at {brief(sorted(names))}"
    raw = b""
    if len(names) <= _NAMED_NODES:
        try:
            raw = cluster.slurm.read("scontrol", ["show", "node", fold(names)], what)
        except FaultError as error:
            if error.fault.kind is not FaultKind.MISSING:
                raise
    if not raw:  # too many to name, or one of them is gone: then no other is told either
        raw = cluster.slurm.read("scontrol", ["show", "node"], what)
    return {node.name: node for node in parse_node_details(raw) if node.name in names}


def jobs_now(cluster: Cluster, labels: Sequence[str]) -> tuple[JobNow, ...]:
    """The records of these jobs (ids, tasks or parts of arrays), ended ones too as long as Slurm remembers them."""
    found: list[JobNow] = []
    for at in range(0, len(labels), _IDS_PER_CALL):
        some = labels[at : at + _IDS_PER_CALL]
        found += _jobs(cluster, some)
    return tuple(dict.fromkeys(found))


def _jobs(cluster: Cluster, labels: Sequence[str]) -> tuple[JobNow, ...]:
    # Only with a row for each task does a hold on some of them show; a whole array would print them all.
    each_task = any("_" in label for label in labels)
    ids = [label.partition("_")[0] for label in labels]
    mark = secrets.token_hex(6)
    args = job_now_args(list(dict.fromkeys(ids)), mark, each_task=each_task)
    try:
        raw = cluster.slurm.read("squeue", args, "looking at the jobs")
    except FaultError as error:
        if error.fault.kind is FaultKind.MISSING:
            return ()
        raise
    return parse_jobs_now(raw, mark)


def jobs_on(cluster: Cluster, names: Collection[str]) -> tuple[JobNow, ...]:
    """The jobs that hold these nodes now."""
    mark = secrets.token_hex(6)
    raw = cluster.slurm.read("squeue", on_nodes_args(fold(names), mark), "looking at the nodes' jobs")
    return parse_jobs_now(raw, mark)


def waiting_of(cluster: Cluster, user: str) -> tuple[JobNow, ...]:
    """The waiting jobs of a user."""
    mark = secrets.token_hex(6)
    raw = cluster.slurm.read("squeue", waiting_args(user, mark), "looking at the user's jobs")
    return parse_jobs_now(raw, mark)


def queue_states(cluster: Cluster) -> dict[str, str]:
    """The state of every queue, as scontrol writes it: UP, DOWN, DRAIN, INACTIVE."""
    raw = cluster.slurm.read("scontrol", ["-o", "show", "partition"], "looking at the queues")
    return {partition.name: partition.state for partition in parse_partitions(raw)}


def reservations(cluster: Cluster) -> dict[str, Reservation]:
    """Every reservation by name."""
    raw = cluster.slurm.read("scontrol", ["-o", "show", "reservation"], "looking at the reservations")
    return {each.name: each for each in parse_reservations(raw)}


def kept_up(cluster: Cluster) -> frozenset[str]:
    """The nodes that never power down by themselves (SuspendExcNodes)."""
    # `gpu-[1-8]:4` keeps any four of them up; nobody can say which, so all of them count.
    return frozenset(nodes_of(_COUNTS.sub("", fresh_site(cluster).kept_up)))
