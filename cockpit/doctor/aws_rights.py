"""Which rights AWS gives: each read is made once in its smallest form, each power is asked for as a dry run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from cockpit import aws_policy
from cockpit.aws_models import AwsScope
from cockpit.doctor.models import Verdict
from cockpit.formats.aws_errors import code_of
from cockpit.models import FaultError, FaultKind
from cockpit.sources.aws_client import AwsCalls

_AT_ONCE = 6
READS_S = 60.0
_NONE = "cockpit-doctor-asks"  # a name that nothing has: "not there" is an answer that only the allowed get
_VCPUS = {"ServiceCode": "ec2", "QuotaCode": "L-417A185B"}  # Running On-Demand P instances
_ALLOWED = (FaultKind.MISSING, FaultKind.CONFLICT)
_DRY_RUN = "DryRunOperation"
_PRICES_IN = "us-east-1"  # the Pricing API is in few regions


@dataclass(frozen=True, slots=True)
class Ask:
    """The smallest request that needs a right."""

    service: str
    method: str
    request: Mapping[str, Any] = field(default_factory=dict)
    region: str | None = None


def asks(scope: AwsScope, now: float) -> dict[str, Ask]:
    """One question for each right to read; those that would need a name which is not known are left out."""
    moment = datetime.fromtimestamp(now, timezone.utc)
    cluster = scope.hyperpod or _NONE
    few: dict[str, Any] = {"MaxResults": 5}
    one: dict[str, Any] = {"MaxResults": 1}
    period = {"StartTime": datetime.fromtimestamp(now - 3600.0, timezone.utc), "EndTime": moment}
    metric = {"Namespace": "AWS/FSx", "MetricName": "FreeDataStorageCapacity"}
    query = {"Id": "a", "MetricStat": {"Metric": metric, "Period": 86400, "Stat": "Average"}}
    found = {
        "cloudformation:DescribeStacks": Ask("cloudformation", "describe_stacks", {"StackName": scope.stack or _NONE}),
        "cloudwatch:GetMetricData": Ask(
            "cloudwatch", "get_metric_data", {"MetricDataQueries": [query], **period}
        ),
        "cloudwatch:ListMetrics": Ask("cloudwatch", "list_metrics", {"Namespace": "AWS/FSx"}),
        "ec2:DescribeCapacityReservations": Ask("ec2", "describe_capacity_reservations", few),
        "ec2:DescribeInstanceStatus": Ask("ec2", "describe_instance_status", few),
        "ec2:DescribeInstanceTypeOfferings": Ask("ec2", "describe_instance_type_offerings", few),
        "ec2:DescribeInstanceTypes": Ask("ec2", "describe_instance_types", {"InstanceTypes": ["m5.large"]}),
        "ec2:DescribeInstances": Ask("ec2", "describe_instances", few),
        "ec2:DescribeLaunchTemplateVersions": Ask(
            "ec2", "describe_launch_template_versions", {"LaunchTemplateName": _NONE, "Versions": ["$Latest"]}
        ),
        "ec2:DescribePlacementGroups": Ask(
            "ec2", "describe_placement_groups", {"Filters": [{"Name": "group-name", "Values": [_NONE]}]}
        ),
        "ec2:DescribeSecurityGroups": Ask("ec2", "describe_security_groups", few),
        "ec2:DescribeSpotPriceHistory": Ask(
            "ec2", "describe_spot_price_history", {"InstanceTypes": ["m5.large"], "StartTime": moment, **few}
        ),
        "ec2:DescribeSubnets": Ask("ec2", "describe_subnets", few),
        "fsx:DescribeFileSystems": Ask("fsx", "describe_file_systems", one),
        "pricing:GetProducts": Ask("pricing", "get_products", {"ServiceCode": "AmazonEC2", **one}, _PRICES_IN),
        "sagemaker:DescribeCluster": Ask("sagemaker", "describe_cluster", {"ClusterName": cluster}),
        "sagemaker:DescribeClusterNode": Ask(
            "sagemaker", "describe_cluster_node", {"ClusterName": cluster, "NodeId": "i-0123456789abcdef0"}
        ),
        "sagemaker:ListClusterNodes": Ask("sagemaker", "list_cluster_nodes", {"ClusterName": cluster, **one}),
        "scheduler:GetSchedule": Ask("scheduler", "get_schedule", {"Name": _NONE}),
        "scheduler:ListSchedules": Ask("scheduler", "list_schedules", one),
        "servicequotas:GetAWSDefaultServiceQuota": Ask("service-quotas", "get_aws_default_service_quota", _VCPUS),
        "servicequotas:GetServiceQuota": Ask("service-quotas", "get_service_quota", _VCPUS),
        "servicequotas:ListServiceQuotas": Ask(
            "service-quotas", "list_service_quotas", {"ServiceCode": "sagemaker", **one}
        ),
        "sts:GetCallerIdentity": Ask("sts", "get_caller_identity"),
    }  # fmt: skip
    return found | _table_asks(scope)


def _table_asks(scope: AwsScope) -> dict[str, Ask]:
    """ParallelCluster's two tables."""
    if not scope.fleet_table:
        return {}
    item = {"TableName": scope.fleet_table, "Key": {"Id": {"S": "COMPUTE_FLEET"}}}
    condition = {"KeyConditionExpression": "Id = :id", "ExpressionAttributeValues": {":id": {"S": _NONE}}}
    return {
        "dynamodb:GetItem": Ask("dynamodb", "get_item", item),
        "dynamodb:Query": Ask("dynamodb", "query", {"TableName": scope.nodes_table, "Limit": 1, **condition}),
    }


def needed(kind: str) -> tuple[str, ...]:
    """The rights to read that a cluster of this kind needs."""
    tables = aws_policy.TABLE_READS if kind == "parallelcluster" else ()
    return (*aws_policy.reads(kind), *tables)


def may_read(calls: AwsCalls, scope: AwsScope, kind: str, now: float) -> dict[str, tuple[Verdict, str]]:
    """Each right to read: whether it is given, and the words when it is not, or could not be told."""
    known = asks(scope, now)
    wanted = {name: known[name] for name in needed(kind) if name in known}
    left, answers = list(wanted.items()), dict.fromkeys(wanted, (Verdict.UNKNOWN, "no answer in time"))

    def work() -> None:
        while True:
            try:
                name, ask = left.pop()
            except IndexError:
                return
            answers[name] = _try(calls, ask)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_AT_ONCE)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + READS_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(answers)


def may_power(calls: AwsCalls, instances: Iterable[str]) -> dict[str, tuple[Verdict, str]]:
    """Whether these instances may be stopped and started, by EC2's own dry run: nothing is stopped or started."""
    ids = list(instances)[:1]
    if not ids:
        return {}
    request = {"InstanceIds": ids, "DryRun": True}
    found = {"ec2:StartInstances": "start_instances", "ec2:StopInstances": "stop_instances"}
    return {name: _try(calls, Ask("ec2", method, request)) for name, method in found.items()}


def _try(calls: AwsCalls, ask: Ask) -> tuple[Verdict, str]:
    try:
        calls.call(ask.service, ask.method, region=ask.region, **ask.request)
    except FaultError as error:
        cause = error.__cause__
        code = code_of(cause) if cause is not None else ""
        if error.fault.kind in _ALLOWED or code == _DRY_RUN or "NotFound" in code:
            return Verdict.PASS, ""
        verdict = Verdict.FAIL if error.fault.kind is FaultKind.DENIED else Verdict.UNKNOWN
        return verdict, error.fault.why
    return Verdict.PASS, ""
