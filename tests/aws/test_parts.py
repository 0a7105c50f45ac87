"""Answers that moto lacks, on botocore's own service models: faults of single calls, checks, blocks, HyperPod."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.instance_join import join
from cockpit.kinds import kind_named
from cockpit.models import FaultError, FaultKind
from cockpit.sources.aws import AwsReads, read_checks, read_reservations
from tests.aws.answers import Answers
from tests.aws.test_source import node
from tests.still import StillClock

PLAIN = AwsScope(region="us-east-1", filters=(("tag:Cluster", ("prod",)),), head_names=("ip-10-0-0-9",))
BLOB = "You are not authorized. Encoded authorization failure message: " + "x" * 900


def instance(number: int, **more: Any) -> dict[str, Any]:
    return {
        "InstanceId": f"i-0000000000000000{number}",
        "InstanceType": "p5.48xlarge",
        "State": {"Code": 16, "Name": "running"},
        "PrivateIpAddress": f"10.0.0.{number}",
        "PrivateDnsName": f"ip-10-0-0-{number}.ec2.internal",
        "Placement": {"AvailabilityZone": "us-east-1a", "GroupName": "pg"},
    } | more


def add_instances(answers: Answers, *found: dict[str, Any]) -> None:
    answers.add("ec2", "describe_instances", {"Reservations": [{"Instances": list(found)}]})


def add_caller(answers: Answers) -> None:
    answers.add("sts", "get_caller_identity", {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/a"})


def test_a_refused_call_names_its_permission_and_the_rest_is_read() -> None:
    answers = Answers()
    add_instances(answers, instance(1), instance(9))
    answers.refuse("ec2", "describe_instance_status", "UnauthorizedOperation", BLOB)
    answers.refuse("sts", "get_caller_identity", "AccessDenied", "User: a is not authorized to perform: sts:Get on b")
    reading = AwsReads(answers.calls, lambda: PLAIN).read()
    assert [(i.id[-1], i.role, i.checks) for i in reading.instances.data or ()] == [
        ("1", "", None),
        ("9", "head", None),
    ]
    gaps = reading.gaps()
    assert {name: fault.kind for name, fault in gaps.items()} == dict.fromkeys(("checks", "caller"), FaultKind.DENIED)
    assert gaps["checks"].why == "not allowed: ec2:DescribeInstanceStatus is missing"
    assert "xxx" not in gaps["checks"].line()
    assert gaps["caller"].why == "not allowed: sts:Get is missing"  # AWS's own word for it goes first


def test_everything_refused_is_the_sources_fault() -> None:
    answers = Answers()
    answers.refuse("ec2", "describe_instances", "UnauthorizedOperation")
    answers.refuse("sts", "get_caller_identity", "AccessDenied")
    with pytest.raises(FaultError) as caught:
        AwsReads(answers.calls, lambda: PLAIN).read()
    assert "ec2:DescribeInstances" in caught.value.fault.next_step


def test_a_throttled_part_keeps_its_last_data_and_time() -> None:
    answers, clock = Answers(), StillClock()
    add_instances(answers, instance(1))
    answers.add("ec2", "describe_instance_status", {"InstanceStatuses": []})
    add_caller(answers)
    reads = AwsReads(answers.calls, lambda: PLAIN, clock=clock)
    first = reads.read()
    clock.time += 30
    add_instances(answers, instance(1), instance(2))
    answers.refuse("ec2", "describe_instance_status", "RequestLimitExceeded")
    second = reads.read()
    assert second.gaps()["checks"].kind is FaultKind.THROTTLED
    assert second.checks.read_at == first.checks.read_at == clock.time - 30
    assert len(second.instances.data or ()) == 2
    clock.time += 30
    answers.refuse("ec2", "describe_instances", "RequestLimitExceeded")
    with pytest.raises(FaultError, match="throttles"):
        reads.read()  # nothing of AWS was read this time: the store keeps the last reading and its age


@pytest.mark.parametrize("code", ["ExpiredToken", "RequestExpired"])
def test_expired_credentials_end_the_read_at_once(code: str) -> None:
    answers = Answers()
    answers.refuse("ec2", "describe_instances", code)
    with pytest.raises(FaultError) as caught:
        AwsReads(answers.calls, lambda: PLAIN).read()
    assert caught.value.fault.kind is FaultKind.AUTH
    assert "read again by themselves" in caught.value.fault.next_step


def test_checks_and_events_without_those_that_are_over() -> None:
    answers = Answers()
    since = datetime(2026, 11, 1, tzinfo=timezone.utc)
    event = {"Code": "instance-retirement", "Description": "The instance is running on degraded hardware"}
    status = {
        "InstanceId": "i-1",
        "InstanceStatus": {"Status": "impaired", "Details": [{"Name": "reachability", "ImpairedSince": since}]},
        "SystemStatus": {"Status": "ok"},
        "Events": [event | {"NotBefore": since}, event | {"Description": "[Completed] it was"}],
    }
    answers.add("ec2", "describe_instance_status", {"InstanceStatuses": [status]}, {"InstanceIds": ["i-1"]})
    checks = read_checks(answers.calls, ["i-1"])["i-1"]
    assert (checks.impaired, checks.impaired_since) == (("instance",), since.timestamp())
    assert [(e.code, e.not_before) for e in checks.events] == [("instance-retirement", since.timestamp())]


def test_status_is_asked_in_batches_of_a_hundred() -> None:
    answers = Answers()
    ids = [f"i-{n}" for n in range(250)]
    for at in (0, 100, 200):
        answers.add("ec2", "describe_instance_status", {}, {"InstanceIds": ids[at : at + 100]})
    read_checks(answers.calls, ids)
    answers.all_asked()


def test_a_capacity_block_has_an_end_and_an_open_reservation_none() -> None:
    answers = Answers()
    end = datetime(2026, 12, 1, 11, 30, tzinfo=timezone.utc)
    entries = [
        {
            "CapacityReservationId": "cr-1",
            "EndDate": end,
            "EndDateType": "limited",
            "ReservationType": "capacity-block",
        },
        {"CapacityReservationId": "cr-2", "EndDateType": "unlimited", "TotalInstanceCount": 4, "State": "active"},
    ]
    answers.add("ec2", "describe_capacity_reservations", {"CapacityReservations": entries})
    found = read_reservations(answers.calls, ["cr-1", "cr-2"])
    assert (found["cr-1"].block, found["cr-1"].ends_at) == (True, end.timestamp())
    assert (found["cr-2"].block, found["cr-2"].ends_at, found["cr-2"].total) == (False, None, 4)


def hyperpod_answers(answers: Answers, status: str = "Running") -> AwsScope:
    group = {"InstanceGroupName": "workers", "InstanceType": "ml.p5.48xlarge", "CurrentCount": 1, "TargetCount": 2}
    group["SlurmConfig"] = {"NodeType": "Compute", "PartitionNames": ["gpu"]}
    cluster = {"ClusterArn": "arn:aws:sagemaker:us-east-1:123456789012:cluster/abc", "ClusterStatus": "InService"}
    answers.add("sagemaker", "describe_cluster", cluster | {"ClusterName": "prod", "InstanceGroups": [group]})
    summary: dict[str, Any] = {
        "InstanceGroupName": "workers",
        "InstanceId": "i-0123456789abcdef0",
        "InstanceType": "ml.p5.48xlarge",
    }
    summary |= {"LaunchTime": datetime(2026, 11, 1, tzinfo=timezone.utc), "InstanceStatus": {"Status": status}}
    answers.add("sagemaker", "list_cluster_nodes", {"ClusterNodeSummaries": [summary]})
    details = summary | {"PrivateDnsHostname": "ip-10-1-0-7", "PrivatePrimaryIp": "10.1.0.7"}
    answers.add("sagemaker", "describe_cluster_node", {"NodeDetails": details})
    add_caller(answers)
    return kind_named("hyperpod").aws_scope(ClusterConfig("prod", region="us-east-1"), None)


def test_hyperpod_nodes_are_joined_by_their_host_names() -> None:
    answers = Answers()
    scope = hyperpod_answers(answers)
    reading = AwsReads(answers.calls, lambda: scope).read()
    answers.all_asked()
    cluster = reading.hyperpod.data
    assert cluster is not None
    assert (cluster.status, cluster.groups[0].target, cluster.groups[0].queues) == ("InService", 2, ("gpu",))
    joined = join([node("ip-10-1-0-7")], reading)
    found = joined.of_node["ip-10-1-0-7"]
    assert (found.id, found.type, found.role, found.state) == (
        "i-0123456789abcdef0", "ml.p5.48xlarge", "compute", "running",
    )  # fmt: skip
