"""HyperPod is scaled, not paused: what UpdateCluster is sent, checked by SageMaker's own model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cockpit.aws_models import AwsReading, AwsScope, Instance, Joined, Part
from cockpit.aws_orders import order_of
from cockpit.fleet_power import How, PowerLook
from cockpit.formats.aws_fleet import parse_hyperpod
from cockpit.kinds import kind_named
from cockpit.kinds.hyperpod_power import SENT_BACK, node_steps, scale
from cockpit.models import FaultError, FaultKind
from cockpit.sources.aws_power import Waits, carry_out
from tests.aws.answers import ANY, Answers
from tests.aws.test_source import node

ROLE = "arn:aws:iam::123456789012:role/hyperpod-role"
SCRIPTS = {"SourceS3Uri": "s3://sagemaker-x/scripts", "OnCreate": "on_create.sh"}


def group(name: str, node_type: str, count: int) -> dict[str, Any]:
    return {
        "InstanceGroupName": name,
        "InstanceType": "ml.p5.48xlarge",
        "CurrentCount": count,
        "TargetCount": count,
        "Status": "InService",
        "ExecutionRole": ROLE,
        "LifeCycleConfig": SCRIPTS,
        "ThreadsPerCore": 1,
        "SlurmConfig": {"NodeType": node_type, "PartitionNames": ["gpu"]},
    }


def look(status: str = "InService") -> PowerLook:
    groups = [group("controller", "Controller", 1), group("workers", "Compute", 4)]
    described = {"ClusterName": "prod", "ClusterArn": "arn", "ClusterStatus": status, "InstanceGroups": groups}
    reading = AwsReading(AwsScope("us-east-1", hyperpod="prod"), hyperpod=Part(parse_hyperpod(described), 1.0))
    return PowerLook(reading, Joined(), described=described, queues={"gpu": "up", "cpu": "up"})


def test_stop_scales_the_workers_to_nothing_and_sends_all_the_rest_back_as_it_was() -> None:
    plan = kind_named("hyperpod").stop_plan(look(), How.NOW, head=False)
    order = next(step for step in plan.steps if step.via == "aws")
    sent = {entry["InstanceGroupName"]: entry for entry in order_of(order.argv).request["InstanceGroups"]}
    assert (sent["controller"]["InstanceCount"], sent["workers"]["InstanceCount"]) == (1, 0)
    assert sent["workers"]["LifeCycleConfig"] == SCRIPTS
    assert not {"CurrentCount", "TargetCount", "Status"} & set(sent["workers"])
    answers = Answers()
    answers.add("sagemaker", "update_cluster", {"ClusterArn": "arn:aws:sagemaker:us-east-1:123456789012:cluster/abc"},
                {"ClusterName": "prod", "InstanceGroups": ANY})  # fmt: skip
    assert carry_out(answers.calls, order.argv) == "accepted"
    assert any("volumes are lost" in line for line in plan.irreversible)
    assert plan.steps[-1].argv == ("wait", "groups", "workers=0")


def test_what_is_sent_back_is_what_sagemaker_takes() -> None:
    import botocore.session

    model = botocore.session.get_session().get_service_model("sagemaker")
    taken = set(model.shape_for("ClusterInstanceGroupSpecification").members)
    told = set(model.shape_for("ClusterInstanceGroupDetails").members)
    assert set(SENT_BACK) <= taken & told


def test_only_the_queues_of_a_shrinking_group_are_closed_when_it_waits_for_jobs() -> None:
    plan = kind_named("hyperpod").stop_plan(look(), How.AFTER_JOBS, head=False)
    assert [step.argv for step in plan.steps[:3]] == [
        ("scontrol", "update", "PartitionName=gpu", "State=DOWN"),
        ("wait", "jobs"),
        ("wait", "unchanged", "controller=1", "workers=4"),
    ]


@pytest.mark.parametrize(
    ("counts", "why"),
    [({"controller": 0}, "makes no group smaller"), ({"nope": 3}, "known: controller, workers"), ({}, "name the size")],
)
def test_what_cannot_be_ordered_is_refused(counts: dict[str, int], why: str) -> None:
    plan = kind_named("hyperpod").start_plan(look(), counts)
    assert (plan.steps, why in plan.refusal) == ((), True)
    assert "controller holds the controller" in scale(look(), {"controller": 0}).refusal


def test_a_cluster_that_is_being_updated_and_its_controller_are_left_alone() -> None:
    kind = kind_named("hyperpod")
    assert "wait until it is InService" in kind.stop_plan(look("Updating"), How.NOW, head=False).refusal
    assert "cannot be stopped" in kind.stop_plan(look(), How.NOW, head=True).refusal
    assert kind.start_plan(look(), {"workers": 4}).done


def test_nodes_are_rebooted_in_batches_and_what_sagemaker_refuses_is_named() -> None:
    nodes = {f"ip-10-0-0-{n}": Instance(f"i-{n:017d}", role="compute") for n in range(30)}
    nodes["ip-10-0-1-1"] = Instance("i-00000000000000099", role="head")
    seen = replace(look(), joined=Joined(nodes))
    steps = node_steps(seen, "reboot", [*nodes, "unknown"])
    assert [len(step.subjects) for step in steps] == [25, 5]
    answers = Answers()
    failed = {"NodeId": "i-00000000000000001", "ErrorCode": "InstanceIdInUse", "Message": "in use"}
    answers.add("sagemaker", "batch_reboot_cluster_nodes", {"Failed": [failed]})
    with pytest.raises(FaultError, match="i-00000000000000001: in use"):
        carry_out(answers.calls, steps[0].argv)


def untyped(*with_nodes: str) -> PowerLook:
    """A cluster whose Slurm SageMaker knows nothing of, as those made by lifecycle scripts alone are."""
    groups = [group("controller", "", 1), group("workers", "", 4)]
    for entry in groups:
        del entry["SlurmConfig"]
    described = {"ClusterName": "prod", "ClusterArn": "arn", "ClusterStatus": "InService", "InstanceGroups": groups}
    reading = AwsReading(AwsScope("us-east-1", hyperpod="prod"), hyperpod=Part(parse_hyperpod(described), 1.0))
    of_node = {f"ip-10-0-0-{n}": Instance(f"i-{n}", queue=name) for n, name in enumerate(with_nodes)}
    nodes = tuple(replace(node(name), partitions=("gpu",)) for name in of_node)
    return PowerLook(reading, Joined(of_node), nodes, described=described, queues={"gpu": "up", "cpu": "up"})


def test_the_group_of_the_controller_is_left_alone_where_sagemaker_does_not_name_it() -> None:
    plan = kind_named("hyperpod").stop_plan(untyped("workers", "workers"), How.AFTER_JOBS, head=False)
    order = next(step for step in plan.steps if step.via == "aws")
    sent = {entry["InstanceGroupName"]: entry for entry in order_of(order.argv).request["InstanceGroups"]}
    assert (sent["controller"]["InstanceCount"], sent["workers"]["InstanceCount"]) == (1, 0)
    assert [(name, "may hold the controller" in why) for name, why in plan.left_out] == [("controller", True)]
    assert plan.steps[0].argv[2] == "PartitionName=gpu"
    blind = kind_named("hyperpod").stop_plan(untyped(), How.NOW, head=False)
    assert (blind.steps, "may hold the controller" in blind.refusal) == ((), True)


def test_a_start_makes_nothing_smaller() -> None:
    plan = kind_named("hyperpod").start_plan(look(), {"workers": 2})
    assert (plan.steps, "no group smaller: workers from 4 to 2" in plan.refusal) == ((), True)


def test_queues_that_a_stop_has_closed_are_told_since_no_start_opens_them() -> None:
    plan = kind_named("hyperpod").stop_plan(look(), How.AFTER_JOBS, head=False)
    assert "queues gpu stay closed, after a start too: `cockpit queue up NAME`" in plan.warnings
    up = kind_named("hyperpod").start_plan(replace(look(), queues={"gpu": "down", "cpu": "up"}), {"workers": 6})
    assert any(line.startswith("closed stay the queues gpu,") for line in up.warnings)


def test_a_group_that_somebody_scaled_while_the_jobs_ran_is_not_scaled_back() -> None:
    plan = kind_named("hyperpod").stop_plan(look(), How.AFTER_JOBS, head=False)
    step = next(step for step in plan.steps if step.argv[1] == "unchanged")
    answers = Answers()
    groups = [group("controller", "Controller", 1), group("workers", "Compute", 4)]
    told = {"ClusterArn": "arn:aws:sagemaker:us-east-1:123456789012:cluster/abc", "ClusterStatus": "InService",
            "InstanceGroups": groups}  # fmt: skip
    answers.add("sagemaker", "describe_cluster", told)
    grown = {**told, "InstanceGroups": [groups[0], group("workers", "Compute", 6)]}
    answers.add("sagemaker", "describe_cluster", grown)
    waits = Waits(answers.calls, AwsScope("us-east-1", hyperpod="prod"), lambda: 0, lambda: True)
    assert waits.wait(step.argv, lambda _: None, lambda _: False) == "the groups are as they were"
    with pytest.raises(FaultError, match="somebody has changed workers since") as caught:
        waits.wait(step.argv, lambda _: None, lambda _: False)
    assert caught.value.fault.kind is FaultKind.CONFLICT
