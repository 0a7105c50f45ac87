"""The IAM policy that the cockpit needs, as `doctor` and docs/AWS.md tell it. Pure."""

from __future__ import annotations

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


def policy(*, power: bool = False, schedule_role: str = "", stack: str = "*") -> dict[str, Any]:
    """Reading alone, or with what starts and stops clusters; `schedule_role` adds what `stop --at` needs."""
    table = f"arn:*:dynamodb:*:*:table/parallelcluster-{stack}"
    slurm_table = f"arn:*:dynamodb:*:*:table/parallelcluster-slurm-{stack}"
    statements = [
        _allow("Read", READS, ["*"]),
        _allow("ReadParallelClusterTables", TABLE_READS, [table, slurm_table, f"{slurm_table}/index/*"]),
    ]
    if power:
        tagged = {"StringLike": {"aws:ResourceTag/parallelcluster:cluster-name": stack}}
        statements.append(_allow("StopAndStartFleet", POWER_TABLE, [table]))
        statements.append(_allow("StopAndStartInstances", POWER_EC2, ["*"]) | {"Condition": tagged})
        statements.append(_allow("ScaleHyperPod", POWER_HYPERPOD, ["*"]))
    if schedule_role:
        statements.append(_allow("Schedule", SCHEDULING, ["arn:*:scheduler:*:*:schedule/default/cockpit-*"]))
        statements.append(_allow("HandRoleToSchedules", ("iam:PassRole",), [schedule_role]))
    return {"Version": "2012-10-17", "Statement": statements}


def _allow(name: str, actions: tuple[str, ...], resources: list[str]) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": resources}
