"""Whether the instances of a queue lie where they can talk fast: placement group, zone, EFA interfaces. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from cockpit.aws_models import Instance
from cockpit.catalog.instances import instance_type
from cockpit.formats.hostlist import brief, fold
from cockpit.models import Health, Problem

_Member = tuple[str, Instance]


def of_fabric(of_node: Mapping[str, Instance], queues: Mapping[str, str]) -> Iterator[Problem]:
    """Problems of every group of like nodes: one queue, one compute resource, one instance type."""
    alike: dict[tuple[str, str, str], list[_Member]] = defaultdict(list)
    for node, instance in of_node.items():
        if instance.billed and _has_fabric(instance.type):
            queue = instance.queue or queues.get(node, "")
            alike[queue, instance.resource, instance.type].append((node, instance))
    for (queue, _, _), members in alike.items():
        yield from _placement(queue, members)
        yield from _efa(queue, members)
    yield from _zones(alike)


def _has_fabric(name: str) -> bool:
    found = instance_type(name.removeprefix("ml."))
    return bool(found and found.efa)


def _placement(queue: str, members: Sequence[_Member]) -> Iterator[Problem]:
    """Nodes outside the placement group that most of their peers are in."""
    groups = Counter(instance.placement_group for _, instance in members if instance.placement_group)
    if not groups:
        return
    usual = groups.most_common(1)[0][0]
    outside = [node for node, instance in members if instance.placement_group != usual]
    if not outside:
        return
    title = f"outside placement group {usual} of their peers in queue {queue}: longer ways between nodes"
    step = "replace them once the group has room; until then leave them out of multi-node jobs"
    evidence = f"{fold(outside)}; {groups[usual]} of {len(members)} are in {usual}"
    yield Problem(
        f"aws:placement:{queue}:{usual}", Health.WARN, brief(outside), title, step, evidence, count=len(outside)
    )


def _zones(alike: Mapping[tuple[str, str, str], Sequence[_Member]]) -> Iterator[Problem]:
    """Queues whose nodes lie in several availability zones: EFA does not reach from one into another."""
    by_queue: dict[str, list[_Member]] = defaultdict(list)
    for (queue, _, _), members in alike.items():
        by_queue[queue] += members
    for queue, members in by_queue.items():
        zones = Counter(instance.zone for _, instance in members if instance.zone)
        if len(zones) > 1:
            usual = zones.most_common(1)[0][0]
            away = [node for node, instance in members if instance.zone not in ("", usual)]
            title = f"queue {queue} is spread over zones: " + ", ".join(f"{z} {n}" for z, n in zones.most_common())
            step = "EFA does not cross zones: keep a job's nodes in one, or give the queue one subnet"
            yield Problem(f"aws:zones:{queue}", Health.WARN, brief(away), title, step, fold(away), count=len(away))


def _efa(queue: str, members: Sequence[_Member]) -> Iterator[Problem]:
    """Instances without EFA interfaces although their type has them, or with fewer than their peers."""
    most = max((instance.efa for _, instance in members if instance.efa is not None), default=None)
    kind = instance_type(members[0][1].type.removeprefix("ml."))
    if most is None or kind is None:
        return
    if most == 0:
        # A single GPU with one EFA port mostly works alone; the big types are bought for their network.
        if (kind.efa or 0) > 1 or kind.count > 1:
            nodes = [node for node, instance in members if instance.efa == 0]
            title = f"{kind.name} without EFA interfaces (it takes {kind.efa}): NCCL falls back to TCP"
            step = "switch EFA on for this queue (Efa: Enabled) and replace the nodes"
            yield Problem(f"aws:efa:{queue}:{kind.name}", Health.WARN, brief(nodes), title, step, fold(nodes),
                          count=len(nodes))  # fmt: skip
        return
    fewer = [(node, instance.efa) for node, instance in members if instance.efa is not None and instance.efa < most]
    if fewer:
        title = f"fewer EFA interfaces than their peers in queue {queue}: {fewer[0][1]} instead of {most}"
        evidence = ", ".join(f"{node} {count}" for node, count in fewer[:8])
        yield Problem(f"aws:efa:{queue}:fewer", Health.WARN, brief(n for n, _ in fewer), title, "replace them",
                      evidence, count=len(fewer))  # fmt: skip
