"""Which nodes of a cluster are checked, what Slurm knows of each, and how each is reached."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cockpit.catalog.checks import parts_for
from cockpit.catalog.instances import instance_type
from cockpit.checks.facts import Known
from cockpit.checks.models import Result
from cockpit.checks.runner import Target
from cockpit.fleet import WITHOUT_MACHINE
from cockpit.formats.hostlist import count, expand, fold
from cockpit.gpu_models import DriverState
from cockpit.hosts.base import Host
from cockpit.models import Fault, FaultError, FaultKind, Node
from cockpit.text import printable

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

MOST_NODES = 4096
_SCRIPTS = 8
_MAX_SETTINGS = 100


@dataclass(frozen=True, slots=True)
class Chosen:
    """The nodes to ask, and those that are not asked, with the reason."""

    targets: tuple[Target, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FromAws:
    """What AWS adds, all of it optional: types, how many EFA interfaces each has, results of its own checks."""

    types: Mapping[str, str] | None = None
    efa: Mapping[str, int] | None = None
    results: Mapping[str, tuple[Result, ...]] | None = None


def choose(cluster: Cluster, hostlist: str = "", queue: str = "", aws: FromAws | None = None) -> Chosen:
    """The nodes of a hostlist or of a queue, else all that are up. Raises FaultError.

    A node is `up` when it has a machine and answers Slurm; one that is named is asked whatever Slurm says of it.
    """
    nodes = cluster.view.nodes
    if nodes is None:
        return _without_slurm(cluster, hostlist)
    wanted, named = _wanted(nodes, hostlist, queue, cluster.config.name), bool(hostlist)
    targets, left = [], []
    for node in wanted:
        if why := why_not(node, named=named):
            left.append((node.name, why))
        else:
            targets.append(_target(cluster, node, queue, aws or FromAws()))
    return Chosen(tuple(targets), tuple(left))


def _without_slurm(cluster: Cluster, hostlist: str) -> Chosen:
    """Slurm does not answer: nodes that are named may still be reached, and this machine is always there."""
    if hostlist:
        return Chosen(tuple(Target(name, Known(name)) for name in _names(hostlist)))
    if cluster.config.head != "local":
        fault = next((state.error for state in cluster.store.states() if state.error is not None), None)
        raise FaultError(fault or Fault(FaultKind.MISSING, "the nodes", "could not be read"))
    name = socket.gethostname()
    return Chosen((Target(printable(name), Known(name)),))


def _wanted(nodes: Sequence[Node], hostlist: str, queue: str, cluster: str) -> list[Node]:
    by_name = {node.name: node for node in nodes}
    chosen = list(nodes)
    if hostlist:
        names = _names(hostlist)
        if unknown := [name for name in names if name not in by_name]:
            raise FaultError(Fault(FaultKind.MISSING, fold(unknown)[:200], f"no such node on {cluster}"))
        chosen = [by_name[name] for name in names]
    if queue:
        chosen = [node for node in chosen if queue in node.partitions]
        if not chosen:
            known = sorted({name for node in nodes for name in node.partitions})
            step = f"its queues: {', '.join(known[:12])}"
            raise FaultError(Fault(FaultKind.MISSING, printable(queue), f"no such queue on {cluster}", step))
    return chosen


def _names(hostlist: str) -> list[str]:
    size = count(hostlist)
    if size > MOST_NODES:
        what = printable(hostlist[:60])
        raise FaultError(Fault(FaultKind.MISSING, what, f"names {size:,} nodes; {MOST_NODES:,} at most"))
    return list(dict.fromkeys(expand(hostlist)))


def why_not(node: Node, *, named: bool = False) -> str:
    """Why a node is not asked; one that is `named` is asked whatever Slurm says of it, if there is a machine."""
    if node.state.has(*WITHOUT_MACHINE):
        return f"is {node.word}: there is no machine"
    if not named and (node.state.base == "down" or node.state.has("not_responding")):
        return f"is {node.word}"
    return ""


def _target(cluster: Cluster, node: Node, queue: str, aws: FromAws) -> Target:
    jobs = None if cluster.view.queue is None else cluster.view.jobs_of_node.get(node.name, ())
    known = Known(
        node=node.name,
        queue=queue or (node.partitions[0] if node.partitions else ""),
        instance_type=(aws.types or {}).get(node.name, "") or type_of_features(node),
        expected_efa=(aws.efa or {}).get(node.name),
        gpus=node.gpus_total,
        jobs=None if jobs is None else tuple(job.job_id for job in jobs),
        gpu_hot_c=cluster.rules.gpu_hot_c,
    )
    return Target(node.name, known, (aws.results or {}).get(node.name, ()), ask_driver=not _driver_hangs(cluster, node))


def type_of_features(node: Node) -> str:
    """The instance type that ParallelCluster writes among a node's features; "" without one."""
    return next((word for word in node.features if instance_type(word) is not None), "")


def _driver_hangs(cluster: Cluster, node: Node) -> bool:
    """Whether the stream of this node waits for its driver already: a second question would hang beside the first."""
    watch = cluster.view.fleet.nodes.get(node.name) if cluster.view.fleet else None
    state = watch.reading.driver.state if watch and watch.reading else None
    return state in (DriverState.HUNG, DriverState.SLOW)


def opener(cluster: Cluster, name: str) -> Host:
    """The node as the cockpit reaches it; the machine itself where the head is this one."""
    if cluster.config.head == "local" and is_here(name):
        return cluster.head
    return cluster.node_host(name)


def is_here(name: str) -> bool:
    """Whether a node of this name is the machine that the cockpit runs on."""
    here = socket.gethostname()
    return name in (here, here.partition(".")[0]) or name.partition(".")[0] == here


def with_job_settings(cluster: Cluster, targets: Iterable[Target]) -> tuple[Target, ...]:
    """The targets with what the scripts of their jobs set. Slurm shows scripts to their owners and operators only.

    Waits for the head: one question a job, for a few jobs.
    """
    targets = tuple(targets)
    ids = list(dict.fromkeys(job for target in targets for job in target.known.jobs or ()))[:_SCRIPTS]
    found = {job: _settings_of(cluster, job) for job in ids}
    return tuple(
        replace(target, known=replace(target.known, job_settings=tuple(
            line for job in target.known.jobs or () for line in found.get(job, ())
        )))
        for target in targets
    )  # fmt: skip


def _settings_of(cluster: Cluster, job: int) -> tuple[tuple[str, str], ...]:
    pattern = re.compile(parts_for("efa")["settings"]["pattern"])
    script = b""
    with suppress(FaultError):
        script = cluster.slurm.read("scontrol", ["write", "batch_script", str(job), "-"], f"reading job {job}'s script")
    lines = (pattern.search(line) for line in script.decode("utf-8", "replace").splitlines()[:5000])
    return tuple((f"script of job {job}", found[0]) for found in lines if found)[:_MAX_SETTINGS]
