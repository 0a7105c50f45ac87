"""HyperPod cannot be paused: its instance groups are scaled to nothing and back by UpdateCluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    controllers = [name for name, count in counts.items() if groups[name].node_type == "Controller" and count == 0]
    if controllers:
        return PowerPlan(title, refusal=f"{controllers[0]} holds the controller, which cannot be scaled to 0")
    changed = {name: count for name, count in counts.items() if groups[name].target != count}
    if not changed:
        return PowerPlan(title, done="the groups have these sizes already")
    shrinks = [name for name, count in changed.items() if count < (groups[name].current or 0)]
    steps: list[PowerStep] = []
    if how is How.AFTER_JOBS and shrinks:
        closed = {queue for name in shrinks for queue in groups[name].queues}
        steps += queue_steps({name: state for name, state in look.queues.items() if name in closed}, "DOWN")
        steps.append(wait_step("wait until no job runs", "jobs"))
    steps.append(aws_step("order the new sizes from SageMaker", _order(look, changed), changed))
    steps.append(wait_step("wait until the groups have them", "groups", *(f"{n}={c}" for n, c in changed.items())))
    effects = tuple(f"{name}: {groups[name].current} -> {plural(count, 'node')}" for name, count in changed.items())
    return PowerPlan(title, tuple(steps), effects, _CAVEATS if shrinks else (), _warnings(look, shrinks))


def stop(look: PowerLook, how: How, *, head: bool) -> PowerPlan:
    """Every group but those of controllers and login nodes to 0."""
    cluster = look.reading.hyperpod.data
    if head:
        return PowerPlan("stop the cluster", refusal="HyperPod's controller cannot be stopped, only its groups scaled")
    names = [group.name for group in cluster.groups if group.node_type in ("Compute", "")] if cluster else []
    return scale(look, dict.fromkeys(names, 0), how)


def start(look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
    """Groups back to the sizes given: SageMaker does not remember what they were."""
    if not counts:
        return PowerPlan("start the cluster", refusal="name the size of each group: SageMaker remembers none")
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


def _warnings(look: PowerLook, shrinks: list[str]) -> tuple[str, ...]:
    told = ["the number of nodes comes only as far as quota and capacity allow"] if not shrinks else []
    if shrinks and any(job.state == "R" for job in look.jobs):
        told.append("jobs on the nodes that go are killed")
    return tuple(told)
