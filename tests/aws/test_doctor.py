"""The doctor before AWS: moto's server for what is there, botocore's Stubber for what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit import aws_policy
from cockpit.config import ClusterConfig
from cockpit.doctor.aws_rights import may_power, may_read
from cockpit.doctor.examine import examine
from cockpit.doctor.models import Result, Verdict
from cockpit.doctor.on_aws import OnAws, of_rights, policy_text
from cockpit.sources.aws_client import AwsCalls
from tests.aws.answers import Answers
from tests.aws.moto_cluster import MotoCluster
from tests.still import still_cluster


def look(config: ClusterConfig) -> dict[str, Result]:
    cluster, _, _ = still_cluster(config)
    return {result.id: result for result in examine(OnAws(cluster).steps())}


def test_a_cluster_that_is_all_there(moto: MotoCluster) -> None:
    results = look(replace(moto.config, name="prod"))
    assert results["aws"].verdict is Verdict.PASS
    assert "us-east-1" in results["aws"].finding.detail
    assert results["aws_cluster"].finding.detail == "stack prod: CREATE_COMPLETE, ParallelCluster 3.16.1; 5 instances"
    given = results["aws_reads"].finding.parts
    assert set(given) == {*aws_policy.reads("parallelcluster"), *aws_policy.TABLE_READS}
    for right in ("ec2:DescribeInstances", "dynamodb:GetItem", "dynamodb:Query", "cloudformation:DescribeStacks"):
        assert given[right] is Verdict.PASS, right
    assert Verdict.FAIL not in given.values()
    power = results["aws_power"].finding.parts
    assert power["ec2:StopInstances"] is Verdict.PASS
    assert power["dynamodb:UpdateItem"] is Verdict.UNKNOWN
    states = {instance["State"]["Name"] for instance in instances(moto)}
    assert states == {"running"}  # the dry run stopped nothing


def instances(moto: MotoCluster) -> list[dict[str, dict[str, str]]]:
    answer = moto.client("ec2").describe_instances()
    return [one for reservation in answer["Reservations"] for one in reservation["Instances"]]


def test_a_stack_that_is_not_there(moto: MotoCluster) -> None:
    results = look(replace(moto.config, stack="gone"))
    assert results["aws_cluster"].verdict is Verdict.FAIL
    assert "gone" in results["aws_cluster"].finding.detail
    assert results["aws_power"].verdict is Verdict.NOT_TRIED
    assert results["aws_reads"].verdict is not Verdict.NOT_TRIED


def test_without_credentials_the_rest_is_not_tried(moto: MotoCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    results = look(moto.config)
    assert results["aws"].verdict is Verdict.FAIL
    assert "no usable AWS credentials" in results["aws"].finding.detail
    assert {results[name].verdict for name in ("aws_cluster", "aws_reads", "aws_power")} == {Verdict.NOT_TRIED}


def test_a_cluster_without_aws_needs_none_of_it() -> None:
    cluster, _, _ = still_cluster()
    cluster.slurm.facts()
    results = examine(OnAws(cluster).steps())
    assert {result.verdict for result in results} == {Verdict.NOT_APPLICABLE}


def test_a_missing_right_is_named(moto: MotoCluster) -> None:
    """All but two calls go to moto; FSx and EC2's subnets are refused as AWS refuses them."""
    answers = Answers()
    words = "User: x is not authorized to perform: fsx:DescribeFileSystems on resource: *"
    answers.refuse("fsx", "describe_file_systems", "AccessDeniedException", words)
    calls = moto.calls()
    mixed = AwsCalls(
        calls.access,
        lambda access, service, region: (answers.calls if service == "fsx" else calls)._client(service, region),
    )
    told = may_read(mixed, moto.scope, "parallelcluster", 1e9)
    assert told["fsx:DescribeFileSystems"] == (Verdict.FAIL, "not allowed: fsx:DescribeFileSystems is missing")
    assert told["ec2:DescribeSubnets"][0] is Verdict.PASS
    found = of_rights(told, "the step")
    assert found.verdict is Verdict.FAIL
    assert "missing: fsx:DescribeFileSystems" in found.detail


def test_a_dry_run_tells_who_may_stop() -> None:
    answers = Answers()
    answers.refuse("ec2", "start_instances", "DryRunOperation", "Request would have succeeded, but DryRun is set")
    answers.refuse("ec2", "stop_instances", "UnauthorizedOperation", "You are not authorized")
    told = may_power(answers.calls, ["i-0123456789abcdef0"])
    assert {name: verdict for name, (verdict, _) in told.items()} == {
        "ec2:StartInstances": Verdict.PASS,
        "ec2:StopInstances": Verdict.FAIL,
    }


def test_the_policies_hold_no_more_than_this_kind_needs() -> None:
    config = ClusterConfig("site", kind="slurm", region="us-east-1", instances={"tag:Cluster": "site"})
    cluster, _, _ = still_cluster(config)
    found = OnAws(cluster).policies()
    read, power = found["cockpit"]["Statement"]
    assert not [action for action in read["Action"] if action.startswith(("sagemaker:", "cloudformation:"))]
    assert power["Condition"] == {"StringLike": {"aws:ResourceTag/Cluster": "site"}}
    assert found["schedule_role"]["Statement"] == [power]
    assert len(policy_text(found)) == 6
    cluster, _, _ = still_cluster(replace(config, read_only=True))
    assert list(OnAws(cluster).policies()) == ["cockpit"]
