"""Preflights of one cluster: which instances more nodes would need, and whether anything refuses them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cockpit.cluster import Cluster
from cockpit.formats.aws_preflight import ask_of_peer
from cockpit.preflight import fsx_verdict, verdicts
from cockpit.preflight_models import Ask, Result, Verdict
from cockpit.sources.aws_preflight import Preflight, ask_for


@dataclass(frozen=True, slots=True)
class Flight:
    """The verdicts on some nodes that are to come up together; `ask` is None where nobody tells what they would be."""

    nodes: tuple[str, ...]
    ask: Ask | None
    verdicts: tuple[Verdict, ...]


def preflight(cluster: Cluster, nodes: Iterable[str]) -> tuple[Flight, ...]:
    """Judge bringing up these nodes, which have no instance now; waits for AWS, raises FaultError."""
    calls, scope, view = cluster.aws.calls(), cluster.aws.scope(), cluster.view
    peers = view.aws.instances.data if view.aws and view.aws.instances.data else ()
    reader, found = Preflight(calls, cluster.clock), []
    for (queue, resource), names in _by_place(cluster, nodes).items():
        own = view.instance_of_node.get(names[0])  # kind slurm: a stopped instance tells what it will be
        ask = ask_of_peer(own, len(names)) if own else ask_for(calls, scope, queue, resource, len(names), peers)
        if ask is None:
            told: tuple[Verdict, ...] = (_unknown(queue, resource),)
        else:
            told = verdicts(reader.facts(ask, view.events, cluster.head_now()), cluster.clock.now())
        found.append(Flight(tuple(names), ask, told))
    if found and (storage := _storage(cluster)):
        found[0] = Flight(found[0].nodes, found[0].ask, (*found[0].verdicts, *storage))
    return tuple(found)


def _by_place(cluster: Cluster, nodes: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    kind = cluster.aws.kind()
    queues = {node.name: node.partitions[0] for node in cluster.view.nodes or () if node.partitions}
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in nodes:
        queue, resource = kind.place(name) if kind else ("", "")
        places[queue or queues.get(name, ""), resource].append(name)
    return places


def _unknown(queue: str, resource: str) -> Verdict:
    what = " ".join(word for word in (queue, resource) if word) or "these nodes"
    text = f"what an instance of {what} would be is not known: no launch template, and none runs"
    return Verdict("launch", Result.UNKNOWN, text, "needs ec2:DescribeLaunchTemplateVersions")


def _storage(cluster: Cluster) -> Sequence[Verdict]:
    reading = cluster.view.storage
    found = []
    for system in (reading.systems.data or ()) if reading else ():
        part = reading.use.get(system.id) if reading else None
        free = part.data.free_bytes if part and part.data and part.fault is None else None
        found.append(fsx_verdict(free, system.capacity_gib, system.id))
    return found
