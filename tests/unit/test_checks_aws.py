"""What only AWS can tell, as pure functions: interfaces, security groups both ways, zones, placement, events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.aws_models import Checks, Instance
from cockpit.checks.aws_checks import AwsFacts, GroupRule, events, interfaces, of_efa, placement, security_group, zone
from cockpit.checks.from_aws import from_aws
from cockpit.checks.models import Verdict
from cockpit.checks.targets import FromAws
from cockpit.config import CheckSettings
from cockpit.models import Fault, FaultError, FaultKind

NOW = 1_764_500_000.0


@pytest.mark.parametrize(
    ("attached", "expected", "seen", "verdict"),
    [
        (None, 32, 32, Verdict.UNKNOWN),
        (0, 32, 0, Verdict.FAIL),
        (31, 32, 31, Verdict.FAIL),
        (32, 32, 31, Verdict.FAIL),
        (32, 32, 32, Verdict.PASS),
        (4, None, None, Verdict.PASS),
        (0, 0, 0, Verdict.NA),
    ],
)
def test_interfaces(attached: int | None, expected: int | None, seen: int | None, verdict: Verdict) -> None:
    assert interfaces(AwsFacts(efa_interfaces=attached), expected, seen).verdict is verdict


def rule(*, egress: bool, peer: str = "", protocol: str = "-1", cidr: str = "", group: str = "sg-1") -> GroupRule:
    return GroupRule(group, egress, protocol, peer, cidr)


IN, OUT = rule(egress=False, peer="sg-1"), rule(egress=True, peer="sg-1")


@pytest.mark.parametrize(
    ("rules", "verdict", "words"),
    [
        ((IN, OUT), Verdict.PASS, "sg-1"),
        ((IN,), Verdict.FAIL, "outbound"),
        ((OUT,), Verdict.FAIL, "inbound"),
        ((IN, rule(egress=True, cidr="0.0.0.0/0")), Verdict.FAIL, "outbound"),  # does not count for EFA
        ((IN, rule(egress=True, peer="sg-1", protocol="tcp")), Verdict.FAIL, "outbound"),
        ((IN, rule(egress=True, peer="sg-1", group="sg-9")), Verdict.FAIL, "outbound"),  # not a group of the node
        ((rule(egress=False, peer="sg-2"), rule(egress=True, peer="sg-2")), Verdict.FAIL, "inbound"),
        (None, Verdict.UNKNOWN, "read"),
    ],
)
def test_security_groups(rules: tuple[GroupRule, ...] | None, verdict: Verdict, words: str) -> None:
    told = security_group(["sg-1"], rules)
    assert (told.verdict, words in told.says) == (verdict, True)


def test_two_groups_that_refer_to_each_other() -> None:
    both = (rule(egress=False, peer="sg-2"), rule(egress=True, peer="sg-2"))
    assert security_group(["sg-1", "sg-2"], both).verdict is Verdict.PASS


PEERS = {
    "a": AwsFacts(zone="us-east-1a", vpc="v", placement_group="pg"),
    "b": AwsFacts(zone="us-east-1a", vpc="v", placement_group="pg"),
    "c": AwsFacts(zone="us-east-1b", vpc="v"),
}


def test_zone_and_placement() -> None:
    assert zone("a", PEERS).verdict is Verdict.PASS
    assert zone("c", PEERS).verdict is Verdict.FAIL
    assert placement("b", PEERS).verdict is Verdict.PASS
    assert placement("c", PEERS).verdict is Verdict.WARN
    assert placement("x", {"x": AwsFacts()}).verdict is Verdict.NA
    assert placement("x", {**PEERS, "x": AwsFacts(capacity_block=True)}).verdict is Verdict.NA
    assert zone("x", {"x": AwsFacts()}).verdict is Verdict.UNKNOWN


def test_events() -> None:
    well = (("system", "ok"), ("instance", "ok"))
    assert events(AwsFacts(status=well), NOW).verdict is Verdict.PASS
    assert events(AwsFacts(), NOW).verdict is Verdict.UNKNOWN
    assert events(AwsFacts(status=(("system", "impaired"),)), NOW).verdict is Verdict.FAIL
    soon = AwsFacts(status=well, events=(("instance-retirement", NOW + 86_400),))
    assert events(soon, NOW).verdict is Verdict.FAIL
    assert "2025-12-01" in events(soon, NOW).says
    late = AwsFacts(status=well, events=(("system-reboot", NOW + 30 * 86_400),))
    assert events(late, NOW).verdict is Verdict.WARN
    assert events(late, NOW, soon_days=60).verdict is Verdict.FAIL


def test_all_of_a_node() -> None:
    told = of_efa("a", PEERS, None, 32, 32)
    assert [result.check for result in told] == [
        "aws.interfaces",
        "aws.security_group",
        "aws.zone",
        "aws.placement",
    ]
    assert of_efa("nobody", PEERS, None, 32, 32) == ()


class FakeCalls:
    """EC2 as two reads see it."""

    def __init__(self, fault: bool = False) -> None:
        self.fault = fault

    def pages(self, service: str, method: str, what: str, **_: Any) -> list[dict[str, Any]]:
        if self.fault:
            raise FaultError(Fault(FaultKind.DENIED, what, "not authorised"))
        if method == "describe_instance_types":
            network = {"EfaSupported": True, "EfaInfo": {"MaximumEfaInterfaces": 32}}
            return [{"InstanceTypes": [{"InstanceType": "p5.48xlarge", "NetworkInfo": network}]}]
        own = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}]
        return [{"SecurityGroups": [{"GroupId": "sg-1", "IpPermissions": own, "IpPermissionsEgress": []}]}]


def cluster_with(calls: FakeCalls) -> Any:
    instance = Instance(
        "i-1", "p5.48xlarge", "running", queue="gpu", zone="us-east-1a", security_groups=("sg-1",), efa=31,
        checks=Checks("impaired", "ok"),
    )  # fmt: skip
    view = SimpleNamespace(instance_of_node={"n1": instance})
    clock, aws = SimpleNamespace(now=lambda: NOW), SimpleNamespace(calls=lambda: calls)
    return SimpleNamespace(view=view, aws=aws, clock=clock, checks=CheckSettings())


def test_what_the_source_adds() -> None:
    told = from_aws(cluster_with(FakeCalls()), "efa")
    assert told.types == {"n1": "p5.48xlarge"}
    assert told.efa == {"n1": 32}
    assert told.results is not None
    found = {result.check: (result.verdict, result.says) for result in told.results["n1"]}
    assert found["aws.interfaces"] == (Verdict.FAIL, "31 of 32 are attached")
    assert found["aws.security_group"] == (Verdict.FAIL, "no rule for all traffic outbound to itself")
    health = from_aws(cluster_with(FakeCalls()), "health").results
    assert health is not None
    assert health["n1"][0].says == "system impaired"


def test_rights_that_are_missing_leave_the_rest() -> None:
    told = from_aws(cluster_with(FakeCalls(fault=True)), "efa")
    assert told.efa == {}  # the catalogue's count is taken then
    assert told.results is not None
    found = {result.check: result.verdict for result in told.results["n1"]}
    assert found["aws.security_group"] is Verdict.UNKNOWN
    nothing = SimpleNamespace(view=SimpleNamespace(instance_of_node={}))
    assert from_aws(nothing, "efa") == FromAws()  # type: ignore[arg-type]
