"""ParallelCluster's fleet item (DynamoDB), its stack (CloudFormation) and HyperPod's answers to models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cockpit.aws_models import Caller, FleetItem, HyperPodCluster, Instance, InstanceGroup, Stack
from cockpit.formats.aws_ec2 import epoch, text
from cockpit.formats.errors import FormatError

Answer = Mapping[str, Any]

VERSION_TAG = "parallelcluster:version"
_IMAGE_TAG = "parallelcluster:image_id"  # marks the build of an AMI, which is no cluster
# SageMaker's words for a node's state in EC2's; the rest stays as it is.
_HYPERPOD_STATES = {
    "Running": "running",
    "Pending": "pending",
    "ShuttingDown": "shutting-down",
    "SystemUpdating": "running",
    "DeepHealthCheckInProgress": "running",
    "Failure": "running",
}


def parse_fleet_item(item: Answer | None) -> FleetItem:
    """The item COMPUTE_FLEET in the low-level client's form; raises FormatError when it holds no status.

    Before 3.2.0 status and time are plain attributes; since then they lie in the map `Data`.
    """
    if not item:
        raise FormatError("reading the fleet status", "the table has no item COMPUTE_FLEET")
    data = (item.get("Data") or {}).get("M")
    status, updated = ("status", "lastStatusUpdatedTime") if data is not None else ("Status", "LastUpdatedTime")
    source = data if data is not None else item
    word = text((source.get(status) or {}).get("S"))
    if not word:
        raise FormatError("reading the fleet status", "the item COMPUTE_FLEET holds no status")
    return FleetItem(word, epoch((source.get(updated) or {}).get("S")), old_form=data is None)


def parse_mapping(items: Iterable[Answer]) -> dict[str, str]:
    """Instance id -> Slurm node, from items of the table parallelcluster-slurm-<stack>."""
    return {text((item.get("InstanceId") or {}).get("S")): text((item.get("Id") or {}).get("S")) for item in items}


def is_cluster(stack: Answer) -> bool:
    """Whether a CloudFormation stack is a ParallelCluster cluster: a root with the version's tag, no AMI build."""
    tags = {tag.get("Key") for tag in stack.get("Tags") or ()}
    return VERSION_TAG in tags and _IMAGE_TAG not in tags and not stack.get("ParentId")


def parse_stack(stack: Answer) -> Stack:
    """One stack of DescribeStacks."""
    tags = {text(tag.get("Key")): text(tag.get("Value")) for tag in stack.get("Tags") or ()}
    parameters = {text(p.get("ParameterKey")): text(p.get("ParameterValue")) for p in stack.get("Parameters") or ()}
    outputs = {text(o.get("OutputKey")): text(o.get("OutputValue")) for o in stack.get("Outputs") or ()}
    return Stack(
        name=text(stack.get("StackName")),
        status=text(stack.get("StackStatus")),
        status_reason=text(stack.get("StackStatusReason")),
        version=tags.get(VERSION_TAG, ""),
        head_instance=outputs.get("HeadNodeInstanceID", ""),
        head_ip=outputs.get("HeadNodePrivateIP", ""),
        user=parameters.get("ClusterUser", ""),
        scheduler=parameters.get("Scheduler", ""),
        log_group=parameters.get("ClusterCWLogGroup", ""),
        fsx_ids=tuple(word for word in outputs.get("FSXIds", "").split(",") if word.startswith("fs-")),
    )


def parse_caller(answer: Answer) -> Caller:
    """STS's answer to "who am I"."""
    return Caller(text(answer.get("Account")), text(answer.get("Arn")))


def parse_hyperpod(answer: Answer) -> HyperPodCluster:
    """SageMaker's DescribeCluster."""
    return HyperPodCluster(
        name=text(answer.get("ClusterName")),
        status=text(answer.get("ClusterStatus")),
        arn=text(answer.get("ClusterArn")),
        recovery=text(answer.get("NodeRecovery")),
        continuous=answer.get("NodeProvisioningMode") == "Continuous",
        groups=tuple(_group(group) for group in answer.get("InstanceGroups") or ()),
        failure=text(answer.get("FailureMessage")),
    )


def _group(entry: Answer) -> InstanceGroup:
    slurm = entry.get("SlurmConfig") or {}
    return InstanceGroup(
        name=text(entry.get("InstanceGroupName")),
        type=text(entry.get("InstanceType")),
        current=entry.get("CurrentCount"),
        target=entry.get("TargetCount"),
        status=text(entry.get("Status")),
        node_type=text(slurm.get("NodeType")),
        queues=tuple(text(name) for name in slurm.get("PartitionNames") or ()),
    )


def parse_hyperpod_nodes(pages: Iterable[Answer], node_types: Mapping[str, str]) -> tuple[Instance, ...]:
    """HyperPod's nodes as instances; `node_types` maps an instance group to Controller, Login or Compute."""
    return tuple(
        _hyperpod_node(entry, node_types) for page in pages for entry in page.get("ClusterNodeSummaries") or ()
    )


def _hyperpod_node(entry: Answer, node_types: Mapping[str, str]) -> Instance:
    status = entry.get("InstanceStatus") or {}
    word, group = text(status.get("Status")), text(entry.get("InstanceGroupName"))
    kind = node_types.get(group, "")
    return Instance(
        id=text(entry.get("InstanceId")),
        type=text(entry.get("InstanceType")),
        state=_HYPERPOD_STATES.get(word, word.lower()),
        # A node that SageMaker finds broken, or works on, still runs and is paid for.
        state_reason=" ".join(
            part for part in (word if word != "Running" else "", text(status.get("Message"))) if part
        ),
        role={"Controller": "head", "Login": "login", "Compute": "compute"}.get(kind, ""),
        queue=group,
        private_ip=text(entry.get("PrivatePrimaryIp")),
        private_dns=text(entry.get("PrivateDnsHostname")),
        zone=text((entry.get("Placement") or {}).get("AvailabilityZone")),
        launched_at=epoch(entry.get("LaunchTime")),
    )
