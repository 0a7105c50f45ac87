"""The source `aws` against moto's server and against answers that moto lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.aws_models import Market
from cockpit.formats.node_state import judge, parse_state
from cockpit.instance_join import join
from cockpit.models import FaultError, FaultKind, Node
from cockpit.sources.aws import AwsReads, find_clusters
from cockpit.sources.aws_client import AwsAccess, AwsCalls
from tests.aws.moto_cluster import REGION, MotoCluster


def node(name: str, address: str = "", state: str = "idle+cloud", **more: str) -> Node:
    parsed = parse_state(state)
    word, health = judge(parsed)
    return Node(name, parsed, word, health, address=address or name, hostname=more.get("hostname", name))


def nodes_of(moto: MotoCluster) -> tuple[Node, ...]:
    return tuple(node(name, moto.address(name)) for name in moto.nodes)


def test_a_parallelcluster_is_read_in_parts(moto: MotoCluster) -> None:
    reading = AwsReads(moto.calls(), lambda: moto.scope).read()
    instances = reading.instances.data or ()
    assert sorted((i.role, i.type, i.queue, i.resource) for i in instances) == [
        ("compute", "p5.48xlarge", "gpu", "p5"),
    ] * 4 + [("head", "m5.xlarge", "", "")]
    one = next(i for i in instances if i.role == "compute")
    assert (one.state, one.market, one.zone[:-1]) == ("running", Market.ON_DEMAND, REGION)
    assert all((one.launched_at, one.private_ip, one.private_dns, one.subnet, one.vpc))
    assert one.checks is not None
    assert (one.checks.system, one.checks.impaired) == ("ok", ())
    assert reading.fleet.data is not None
    assert (reading.fleet.data.status, reading.fleet.data.old_form) == ("RUNNING", False)
    assert reading.fleet.data.updated_at == pytest.approx(1793527200.123456)
    stack = reading.stack.data
    assert stack is not None
    assert (stack.version, stack.head_instance, stack.user) == ("3.16.1", moto.head, "ubuntu")
    assert (stack.word, stack.takes_orders) == ("CREATE_COMPLETE", True)
    assert reading.caller.data is not None
    assert reading.caller.data.account == "123456789012"
    assert (reading.region, reading.gaps()) == (REGION, {})


def test_clusters_are_found_by_their_stack(moto: MotoCluster) -> None:
    template = '{"Resources": {"T": {"Type": "AWS::SNS::Topic", "Properties": {}}}}'
    moto.client("cloudformation").create_stack(StackName="other", TemplateBody=template)
    image = [{"Key": "parallelcluster:version", "Value": "3.16.1"}, {"Key": "parallelcluster:image_id", "Value": "a"}]
    moto.client("cloudformation").create_stack(StackName="ami", TemplateBody=template, Tags=image)
    assert [stack.name for stack in find_clusters(moto.calls())] == ["prod"]


def test_nodes_and_instances_are_joined_by_address_and_the_rest_by_the_table(moto: MotoCluster) -> None:
    first, second, third, fourth = nodes_of(moto)
    lost = replace(second, address=second.name)  # Slurm has lost the address; the table has not
    moto.terminate(fourth.name)
    nodes = (first, lost, third, fourth)
    reading = AwsReads(moto.calls(), lambda: moto.scope, nodes=lambda: nodes).read()
    joined = join(nodes, reading)
    assert {name: i.id for name, i in joined.of_node.items()} == {
        name: moto.nodes[name] for name in (first.name, lost.name, third.name)
    }
    assert joined.how == {first.name: "address", lost.name: "table", third.name: "address"}
    assert joined.orphans == ()
    assert joined.vanished == {fourth.name: fourth.address}


def test_slurms_own_instance_id_goes_before_an_address_that_was_given_to_another(moto: MotoCluster) -> None:
    first, second, *_ = nodes_of(moto)
    swapped = (replace(first, address=second.address), replace(second, address=first.address))
    ids = {first.name: moto.nodes[first.name], second.name: moto.nodes[second.name]}
    reading = AwsReads(moto.calls(), lambda: moto.scope, nodes=lambda: swapped, slurm_ids=lambda: ids).read()
    joined = join(swapped, reading)
    assert {name: i.id for name, i in joined.of_node.items()} == ids
    assert set(joined.how.values()) == {"slurm"}
    assert {i.id for i in joined.orphans} == set(moto.nodes.values()) - set(ids.values())


def test_a_plain_cluster_is_joined_by_addresses_and_names_made_of_them(moto: MotoCluster) -> None:
    (first, second, third, _), reads = nodes_of(moto), AwsReads(moto.calls(), lambda: moto.scope)
    named = node("ip-" + second.address.replace(".", "-"))
    resolved = node("worker3", "worker3", hostname=f"ip-{third.address.replace('.', '-')}.ec2.internal")
    joined = join((first, named, resolved), reads.read())
    assert joined.how == {first.name: "address", named.name: "name", "worker3": "name"}
    assert joined.of_node["worker3"].id == moto.nodes[third.name]


def test_a_wrong_stack_is_told_and_the_rest_is_read(moto: MotoCluster) -> None:
    scope = replace(moto.scope, stack="prodd", fleet_table="parallelcluster-prodd")
    reading = AwsReads(moto.calls(), lambda: scope).read()
    assert len(reading.instances.data or ()) == 5
    gaps = reading.gaps()
    assert set(gaps) == {"stack", "fleet"}
    assert {fault.kind for fault in gaps.values()} == {FaultKind.MISSING}
    assert "prodd" in gaps["stack"].why
    assert "`region` (us-east-1)" in gaps["stack"].next_step


def test_an_endpoint_that_is_not_there_is_one_fault_and_keeps_what_was_read(moto: MotoCluster) -> None:
    calls = AwsCalls(AwsAccess(REGION, None, "http://127.0.0.1:9", attempts=1))
    with pytest.raises(FaultError) as caught:
        AwsReads(calls, lambda: moto.scope).read()
    assert caught.value.fault.kind is FaultKind.UNREACHABLE
    assert "us-east-1" in caught.value.fault.next_step


def test_without_credentials_the_fault_says_what_to_set(moto: MotoCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    calls = AwsCalls(moto.calls().access)
    with pytest.raises(FaultError) as caught:
        AwsReads(calls, lambda: moto.scope).read()
    assert caught.value.fault.kind is FaultKind.AUTH
    assert "`profile`" in caught.value.fault.next_step
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    assert AwsReads(calls, lambda: moto.scope).read().instances.data  # a login renewed meanwhile is found by itself


def test_a_profile_that_is_not_there_and_no_region_are_told(moto: MotoCluster) -> None:
    with pytest.raises(FaultError, match="nobody"):
        AwsReads(AwsCalls(AwsAccess(REGION, "nobody")), lambda: moto.scope).read()
    with pytest.raises(FaultError) as caught:
        AwsReads(AwsCalls(AwsAccess(None)), lambda: moto.scope).read()
    assert "set `region`" in caught.value.fault.next_step
