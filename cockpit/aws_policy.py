"""The IAM policy that the cockpit needs, as `doctor` and docs/AWS.md tell it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

READS = (
    "cloudformation:DescribeStacks",
    "cloudwatch:GetMetricData",
    "cloudwatch:ListMetrics",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
    "fsx:DescribeFileSystems",
    "pricing:GetProducts",
    "sagemaker:DescribeCluster",
    "sagemaker:DescribeClusterNode",
    "sagemaker:ListClusterNodes",
    "scheduler:GetSchedule",
    "scheduler:ListSchedules",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
    "servicequotas:ListServiceQuotas",
    "sts:GetCallerIdentity",
)  # fmt: skip
TABLE_READS = ("dynamodb:GetItem", "dynamodb:Query")
POWER_TABLE = ("dynamodb:UpdateItem", "dynamodb:PutItem")
POWER_EC2 = ("ec2:StartInstances", "ec2:StopInstances")
POWER_HYPERPOD = (
    "sagemaker:BatchRebootClusterNodes",
    "sagemaker:BatchReplaceClusterNodes",
    "sagemaker:UpdateCluster",
)
SCHEDULING = ("scheduler:CreateSchedule", "scheduler:UpdateSchedule", "scheduler:DeleteSchedule")


# What of the reads only one kind of cluster needs.
_ONLY = {
    "parallelcluster": ("cloudformation:", "ec2:DescribeLaunchTemplateVersions"),
    "hyperpod": ("sagemaker:", "servicequotas:ListServiceQuotas"),
}


def reads(kind: str = "") -> tuple[str, ...]:
    """What reading a cluster of this kind needs beside the tables; "" for all kinds."""
    others = tuple(start for name, starts in _ONLY.items() if kind and name != kind for start in starts)
    return tuple(action for action in READS if not action.startswith(others))


def policy(
    *,
    power: bool = False,
    schedule_role: str = "",
    stack: str = "*",
    kind: str = "",
    tags: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Reading alone, or with what starts and stops clusters; `schedule_role` adds what `stop --at` needs.

    `kind` leaves out what the other kinds need; `tags` bind the power over instances where they are not
    ParallelCluster's.
    """
    statements = [_allow("Read", reads(kind), ["*"])]
    if kind in ("", "parallelcluster"):
        table, nodes = _tables(stack)
        statements.append(_allow("ReadParallelClusterTables", TABLE_READS, [table, nodes, f"{nodes}/index/*"]))
    if power:
        statements += _power(kind, stack, tags or {})
    if schedule_role:
        statements.append(_allow("Schedule", SCHEDULING, ["arn:*:scheduler:*:*:schedule/default/cockpit-*"]))
        statements.append(_allow("HandRoleToSchedules", ("iam:PassRole",), [schedule_role]))
    return {"Version": "2012-10-17", "Statement": statements}


def _power(kind: str, stack: str, tags: Mapping[str, str]) -> list[dict[str, Any]]:
    found = []
    if kind in ("", "parallelcluster"):
        found.append(_allow("StopAndStartFleet", POWER_TABLE, [_tables(stack)[0]]))
    if kind != "hyperpod":
        found.append(_allow("StopAndStartInstances", POWER_EC2, ["*"]) | _tagged(kind, stack, tags))
    if kind in ("", "hyperpod"):
        found.append(_allow("ScaleHyperPod", POWER_HYPERPOD, ["*"]))
    return found


def _tables(stack: str) -> tuple[str, str]:
    """Where ParallelCluster keeps the fleet's status, and its nodes."""
    return (
        f"arn:*:dynamodb:*:*:table/parallelcluster-{stack}",
        f"arn:*:dynamodb:*:*:table/parallelcluster-slurm-{stack}",
    )


def _tagged(kind: str, stack: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """The condition that binds power over instances to those of the cluster."""
    own = {
        f"aws:ResourceTag/{name.removeprefix('tag:')}": value for name, value in tags.items() if name.startswith("tag:")
    }
    if kind == "slurm":
        return {"Condition": {"StringLike": own}} if own else {}
    return {"Condition": {"StringLike": {"aws:ResourceTag/parallelcluster:cluster-name": stack}}}


def role_policy(kind: str, stack: str = "*", tags: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the role may do that `stop --at` hands to EventBridge Scheduler; it is the config's `schedule_role`."""
    statements = [one for one in _power(kind, stack, tags or {}) if one["Sid"] != "ScaleHyperPod"]
    return {"Version": "2012-10-17", "Statement": statements}


def role_trust() -> dict[str, Any]:
    """Who may take that role."""
    service = {"Service": "scheduler.amazonaws.com"}
    statement = {"Effect": "Allow", "Principal": service, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _allow(name: str, actions: tuple[str, ...], resources: list[str]) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": resources}
