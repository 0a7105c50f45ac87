"""HyperPod cannot be paused: its instance groups are scaled to nothing and back by UpdateCluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cockpit.aws_models import InstanceGroup
from cockpit.aws_orders import AwsOrder
from cockpit.fleet_power import How, PowerLook, PowerPlan, PowerStep, aws_step, queue_steps, wait_step
from cockpit.formats.hostlist import fold
from cockpit.words import plural

# What UpdateCluster takes of what DescribeCluster tells under the same name; the rest describes, and sets nothing.
SENT_BACK = (
    "InstanceGroupName", "InstanceType", "LifeCycleConfig", "ExecutionRole", "ThreadsPerCore",
    "InstanceStorageConfigs", "OnStartDeepHealthChecks", "TrainingPlanArn", "OverrideVpcConfig",
    "ScheduledUpdateConfig", "SlurmConfig", "CapacityRequirements", "NetworkInterface",
)  # fmt: skip
NODES_A_CALL = 25
_CAVEATS = (
    "the nodes are deleted: root and attached volumes are lost, and a new node runs its lifecycle scripts again",
    "SageMaker picks which nodes go when a group shrinks to a number above 0",
)


def scale(look: PowerLook, counts: Mapping[str, int], how: How = How.NOW) -> PowerPlan:
    """Instance groups to new sizes; `described` must hold DescribeCluster as it came."""
    title = "scale " + ", ".join(f"{name} to {count}" for name, count in counts.items())
    cluster = look.reading.hyperpod.data
    if cluster is None or not look.described:
        return PowerPlan(title, refusal="the cluster could not be read (sagemaker:DescribeCluster)")
    if cluster.status != "InService":
        return PowerPlan(title, refusal=f"cluster {cluster.name} is {cluster.status}: wait until it is InService")
    groups = {group.name: group for group in cluster.groups}
    wrong = [name for name in counts if name not in groups]
    if wrong:
        return PowerPlan(title, refusal=f"no instance group named {', '.join(wrong)}; known: {', '.join(groups)}")
    if why := next((why for name, count in counts.items() if count == 0 and (why := _keeps(look, groups[name]))), ""):
        return PowerPlan(title, refusal=f"{why}: it is not scaled to 0")
    changed = {name: count for name, count in counts.items() if groups[name].target != count}
    if not changed:
        return PowerPlan(title, done="the groups have these sizes already")
    shrinks = [name for name, count in changed.items() if count < (groups[name].current or 0)]
    steps: list[PowerStep] = []
    warnings = _warnings(look, shrinks)
    if how is How.AFTER_JOBS and shrinks:
        closed = {queue for name in shrinks for queue in (*groups[name].queues, *_queues_in(look, name))}
        steps += queue_steps({name: state for name, state in look.queues.items() if name in closed}, "DOWN")
        steps.append(wait_step("wait until no job runs", "jobs"))
        warnings.append(f"queues {', '.join(sorted(closed))} stay closed, after a start too: `cockpit queue up NAME`")
        # The order holds the size of every group: hours later it would undo what somebody else has scaled meanwhile.
        sizes = (f"{group.name}={group.target}" for group in cluster.groups)
        steps.append(wait_step("make sure that nobody has changed a group meanwhile", "unchanged", *sizes))
    steps.append(aws_step("order the new sizes from SageMaker", _order(look, changed), changed))
    steps.append(wait_step("wait until the groups have them", "groups", *(f"{n}={c}" for n, c in changed.items())))
    effects = tuple(f"{name}: {groups[name].current} -> {plural(count, 'node')}" for name, count in changed.items())
    return PowerPlan(title, tuple(steps), effects, _CAVEATS if shrinks else (), tuple(warnings))


def stop(look: PowerLook, how: How, *, head: bool) -> PowerPlan:
    """Every group but those of controllers and login nodes to 0."""
    cluster = look.reading.hyperpod.data
    if head:
        return PowerPlan("stop the cluster", refusal="HyperPod's controller cannot be stopped, only its groups scaled")
    groups = [group for group in cluster.groups if group.node_type in ("Compute", "")] if cluster else []
    kept = {group.name: why for group in groups if (why := _keeps(look, group))}
    names = [group.name for group in groups if group.name not in kept]
    if kept and not names:
        return PowerPlan("stop the cluster", refusal="; ".join(kept.values()))
    return replace(scale(look, dict.fromkeys(names, 0), how), left_out=tuple(kept.items()))


def _queues_in(look: PowerLook, group: str) -> set[str]:
    """The queues of a group's nodes by Slurm, for groups whose queues SageMaker does not know."""
    own = {name for name, instance in look.joined.of_node.items() if instance.queue == group}
    return {queue for node in look.nodes if node.name in own for queue in node.partitions}


def _keeps(look: PowerLook, group: InstanceGroup) -> str:
    """Why a group must not vanish: without Slurm's configuration in SageMaker nothing else tells the controller's."""
    if group.node_type == "Controller":
        return f"group {group.name} holds the controller"
    if group.node_type or group.name in {instance.queue for instance in look.joined.of_node.values()}:
        return ""
    return f"group {group.name} may hold the controller: SageMaker tells no node type, and no node of Slurm is in it"


def start(look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
    """Groups back to the sizes given: SageMaker does not remember what they were."""
    if not counts:
        return PowerPlan("start the cluster", refusal="name the size of each group: SageMaker remembers none")
    cluster = look.reading.hyperpod.data
    sizes = {group.name: group.current or 0 for group in cluster.groups} if cluster else {}
    smaller = [f"{name} from {sizes[name]} to {count}" for name, count in counts.items() if count < sizes.get(name, 0)]
    if smaller:  # a start names no jobs, and these would be killed
        text = f"a start makes no group smaller: {', '.join(smaller)}"
        return PowerPlan("start the cluster", refusal=f"{text}; `cockpit stop` empties them, with their jobs named")
    return scale(look, counts)


def node_steps(look: PowerLook, verb: str, nodes: Sequence[str]) -> list[PowerStep]:
    """Reboot or replace (`verb`) nodes by name through SageMaker, at most 25 a call, never a controller's."""
    found = {name: look.joined.of_node[name] for name in nodes if name in look.joined.of_node}
    names = [name for name, instance in found.items() if instance.role != "head"]
    steps = []
    for at in range(0, len(names), NODES_A_CALL):
        some = names[at : at + NODES_A_CALL]
        request = {"ClusterName": look.reading.scope.hyperpod, "NodeIds": [found[name].id for name in some]}
        order = AwsOrder("sagemaker", f"batch_{verb}_cluster_nodes", request, look.region)
        steps.append(aws_step(f"{verb} {fold(some)} through SageMaker", order, some))
    return steps


def _order(look: PowerLook, counts: Mapping[str, int]) -> AwsOrder:
    """Every group as it is described, with another count where one is wished for: the call replaces them all."""
    groups = [_specification(entry, counts) for entry in look.described.get("InstanceGroups") or ()]
    request = {"ClusterName": look.reading.scope.hyperpod, "InstanceGroups": groups}
    return AwsOrder("sagemaker", "update_cluster", request, look.region)


def _specification(entry: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Any]:
    count = counts.get(entry["InstanceGroupName"], entry.get("TargetCount", entry.get("CurrentCount", 0)))
    sent = {name: entry[name] for name in SENT_BACK if entry.get(name) not in (None, "", [], {})}
    least = {"MinInstanceCount": min(count, entry["MinCount"])} if entry.get("MinCount") is not None else {}
    return sent | {"InstanceCount": count} | least


def _warnings(look: PowerLook, shrinks: list[str]) -> list[str]:
    told = ["the number of nodes comes only as far as quota and capacity allow"] if not shrinks else []
    if shrinks and any(job.state == "R" for job in look.jobs):
        told.append("jobs on the nodes that go are killed")
    closed = look.closed_queues
    if closed and not shrinks:
        told.append(f"closed stay the queues {', '.join(closed)}, so that no job starts: `cockpit queue up NAME`")
    return told
