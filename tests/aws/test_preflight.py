"""Preflight: what would refuse is told with its numbers before it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cockpit.aws_models import Market, Part, Reservation
from cockpit.catalog.quotas import family_of
from cockpit.event_models import ClusterEvent, ClusterEvents
from cockpit.formats.aws_preflight import parse_groups, vcpus_in_use
from cockpit.formats.pcluster_events import LAUNCH_FAILURE
from cockpit.models import Fault, FaultKind, Health
from cockpit.preflight import fsx_verdict, verdicts, worst
from cockpit.preflight_models import Ask, GroupRules, Placement, PreflightFacts, Quota, Result, Subnet, Verdict
from cockpit.sources.aws import read_instances
from cockpit.sources.aws_preflight import Preflight, ask_for
from tests.aws.answers import Answers
from tests.aws.moto_cluster import MotoCluster
from tests.aws.test_problems import NOW, machine
from tests.still import StillClock

ASK = Ask(
    "p5.48xlarge", 4, queue="gpu", resource="p5", subnets=("subnet-1",), security_groups=("sg-1",),
    placement_group="pg", efa=True, addresses_each=1,
)  # fmt: skip
GOOD = PreflightFacts(
    ASK,
    vcpus_each=192,
    quotas=Part((Quota("L-417A185B", "Running On-Demand P instances", 3072.0),), NOW),
    vcpus_used=Part(1536, NOW),
    subnets=Part((Subnet("subnet-1", "us-east-1a", 200),), NOW),
    groups=Part((GroupRules("sg-1", True, True),), NOW),
    placement=Part(Placement("pg", "available", "cluster"), NOW),
    zones=Part(("us-east-1a", "us-east-1b"), NOW),
)


def found(facts: PreflightFacts) -> dict[str, Verdict]:
    return {verdict.check: verdict for verdict in verdicts(facts, NOW)}


def test_when_nothing_stands_in_the_way_every_check_passes_with_its_numbers() -> None:
    told = found(GOOD)
    assert {name: verdict.result for name, verdict in told.items()} == dict.fromkeys(
        ("quota", "zone", "addresses", "security group", "placement group"), Result.PASS
    )
    assert told["quota"].text == (
        "needs 768 vCPU; Running On-Demand P instances (L-417A185B): 1,536 of 3,072 used, 1,536 left"
    )
    assert worst(tuple(told.values())) is Result.PASS


@pytest.mark.parametrize(
    ("change", "check", "result", "words"),
    [
        ({"vcpus_used": Part(2500, NOW)}, "quota", Result.FAIL, "572 left"),
        ({"vcpus_used": Part(2200, NOW)}, "quota", Result.WARN, "872 left"),
        (
            {"vcpus_used": Part(fault=Fault(FaultKind.DENIED, "a", "ec2:X is missing"))},
            "quota",
            Result.UNKNOWN,
            "ec2:X",
        ),
        ({"quotas": Part((Quota("c", "n", 500.0),), NOW), "vcpus_used": Part()}, "quota", Result.FAIL, "is 500"),
        ({"quotas": Part((), NOW)}, "quota", Result.UNKNOWN, "no quota found"),
        ({"vcpus_each": None}, "quota", Result.UNKNOWN, "not known"),
        ({"zones": Part(("us-east-1c",), NOW)}, "zone", Result.FAIL, "not offered in us-east-1a"),
        (
            {"subnets": Part((Subnet("subnet-1", "us-east-1a", 3),), NOW)},
            "addresses",
            Result.FAIL,
            "needs 4 private IPs; 3 free",
        ),
        (
            {"groups": Part((GroupRules("sg-1", True, False),), NOW)},
            "security group",
            Result.FAIL,
            "lacks the outbound",
        ),
        (
            {"groups": Part((GroupRules("sg-1", False, False),), NOW)},
            "security group",
            Result.FAIL,
            "inbound and the outbound",
        ),
        ({"placement": Part(None, NOW)}, "placement group", Result.FAIL, "no placement group pg"),
        (
            {"placement": Part(Placement("pg", "deleting", "cluster"), NOW)},
            "placement group",
            Result.FAIL,
            "is deleting",
        ),
        ({"ask": replace(ASK, placement_group="")}, "placement group", Result.WARN, "far from each other"),
        ({"ask": replace(ASK, subnets=())}, "addresses", Result.UNKNOWN, "not known"),
        (
            {"capacity_errors": {"InsufficientInstanceCapacity": 2}, "capacity_error_s": 240.0},
            "capacity",
            Result.WARN,
            "4m ago",
        ),
    ],
)
def test_each_check_can_fail(change: dict[str, Any], check: str, result: Result, words: str) -> None:
    verdict = found(replace(GOOD, **change))[check]
    assert (verdict.result, words in verdict.text) == (result, True), verdict.text


@pytest.mark.parametrize(
    ("block", "result", "words"),
    [
        (
            Reservation("cr-1", state="active", total=8, available=4, block=True, ends_at=NOW + 9e4),
            Result.PASS,
            "4 of 8",
        ),
        (Reservation("cr-1", state="active", total=8, available=3), Result.FAIL, "3 of 8 free, 4 needed"),
        (Reservation("cr-1", state="scheduled", block=True, starts_at=NOW + 9e4), Result.FAIL, "scheduled, starts"),
        (Reservation("cr-1", state="active", total=8, available=8, ends_at=NOW + 3600), Result.WARN, "ends in 1h"),
        (None, Result.FAIL, "no capacity reservation cr-1"),
    ],
)
def test_a_reservation_must_be_active_and_have_room(block: Reservation | None, result: Result, words: str) -> None:
    ask = replace(ASK, reservation="cr-1", market=Market.CAPACITY_BLOCK)
    told = found(replace(GOOD, ask=ask, reservation=Part(block, NOW)))
    assert (told["reservation"].result, words in told["reservation"].text) == (result, True), told["reservation"].text
    assert "quota" not in told  # bought capacity does not count against it


@pytest.mark.parametrize(
    ("name", "spot", "codes"),
    [
        ("p5.48xlarge", False, ("L-417A185B",)),
        ("p5.48xlarge", True, ("L-7212CCBC", "L-C4BD4855")),
        ("p4d.24xlarge", True, ("L-7212CCBC",)),
        ("g6e.12xlarge", False, ("L-DB2E81BA",)),
        ("gr6.4xlarge", False, ("L-DB2E81BA",)),
        ("trn1.32xlarge", False, ("L-2C3B7624",)),
        ("inf2.48xlarge", True, ("L-B5D1601B",)),
        ("dl1.24xlarge", False, ("L-6E869C2A",)),
        ("hpc7a.96xlarge", True, ()),
        ("m6i.large", True, ("L-34B43A08",)),
        ("x2idn.32xlarge", False, ("L-1216C47A",)),
    ],
)
def test_which_quota_a_type_counts_against(name: str, spot: bool, codes: tuple[str, ...]) -> None:
    assert family_of(name).codes(name, spot=spot) == codes


def test_only_what_counts_against_the_same_quota_is_in_use() -> None:
    mine = [
        machine(1, vcpus=96),  # half, with hyper-threading off
        machine(2),  # by the catalogue
        machine(3, state="stopped"),
        machine(4, market=Market.SPOT),
        machine(5, market=Market.CAPACITY_BLOCK),
        machine(6, type="g5.48xlarge"),
    ]
    assert vcpus_in_use(mine, ASK) == 96 + 192
    assert vcpus_in_use(mine, replace(ASK, market=Market.SPOT)) == 192


def test_a_rule_to_everywhere_is_no_rule_to_itself() -> None:
    itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}
    anywhere = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    tcp = {"IpProtocol": "tcp", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}
    group = {"GroupId": "sg-1", "IpPermissions": [itself], "IpPermissionsEgress": [anywhere, tcp]}
    assert parse_groups([{"SecurityGroups": [group]}]) == (GroupRules("sg-1", True, False),)


def test_file_system_space() -> None:
    assert fsx_verdict(2.0**40, 1200 * 10, "fsx").result is Result.WARN
    assert fsx_verdict(6 * 2.0**40, 1200 * 10, "fsx").result is Result.PASS
    assert fsx_verdict(None, 1200, "fsx").result is Result.UNKNOWN


TEMPLATE = {
    "InstanceType": "p5.48xlarge",
    "NetworkInterfaces": [
        {"SubnetId": "subnet-1", "Groups": ["sg-1"], "InterfaceType": "interface"},
        *[{"SubnetId": "subnet-1", "Groups": ["sg-1"], "InterfaceType": "efa-only"}] * 32,
    ],
    "Placement": {"GroupName": "pg"},
    "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}},
}


def test_the_launch_template_tells_what_would_be_launched(moto: MotoCluster) -> None:
    answers = Answers()
    request = {"LaunchTemplateName": "prod-gpu-p5", "Versions": ["$Latest"]}
    answer = {"LaunchTemplateVersions": [{"LaunchTemplateData": TEMPLATE}]}
    answers.add("ec2", "describe_launch_template_versions", answer, request)
    ask = ask_for(answers.calls, moto.scope, "gpu", "p5", 4, ())
    assert ask == replace(ASK, reservation="cr-1", known_from="launch template")


def test_without_one_a_peer_tells_and_moto_answers_the_rest(moto: MotoCluster) -> None:
    peers = read_instances(moto.calls(), moto.scope)
    ask = ask_for(moto.calls(), moto.scope, "gpu", "p5", 2, peers)
    assert ask is not None
    assert ask.known_from.startswith("instance i-")
    facts = Preflight(moto.calls()).facts(replace(ask, efa=True, placement_group="pg"))
    assert facts.vcpus_each == 192
    # moto gives the instances one core each, as their CpuOptions tell; what counts is what EC2 says.
    assert facts.vcpus_used.data is not None
    assert facts.subnets.data is not None
    assert facts.subnets.data[0].free
    assert facts.zones.data
    told = found(facts)
    assert told["addresses"].result is Result.PASS
    assert told["security group"].result is Result.FAIL  # the default group lets nothing out to itself by reference
    assert told["placement group"].result is Result.UNKNOWN  # moto has none
    assert ask_for(moto.calls(), moto.scope, "gpu", "nope", 2, peers) is None


def quota(code: str, value: float) -> dict[str, Any]:
    return {"Quota": {"QuotaCode": code, "QuotaName": "P", "Value": value}}


def test_a_quota_never_raised_has_the_default_and_some_accounts_have_a_second_for_spot() -> None:
    answers = Answers()
    ask = Ask("p5.48xlarge", 1, Market.SPOT)
    answers.refuse("service-quotas", "get_service_quota", "NoSuchResourceException")
    answers.add("service-quotas", "get_aws_default_service_quota", quota("L-7212CCBC", 64.0))
    answers.refuse("service-quotas", "get_service_quota", "NoSuchResourceException")
    answers.refuse("service-quotas", "get_aws_default_service_quota", "NoSuchResourceException")
    answers.add("ec2", "describe_instances", {"Reservations": []})
    answers.refuse("ec2", "describe_instance_type_offerings", "UnauthorizedOperation")
    facts = Preflight(answers.calls, StillClock()).facts(ask)
    answers.all_asked()
    assert facts.quotas.data == (Quota("L-7212CCBC", "P", 64.0),)
    assert facts.zones.fault is not None
    assert found(facts)["quota"].result is Result.FAIL


def test_hyperpod_counts_instances() -> None:
    answers = Answers()
    entries = [{"QuotaName": f"ml.{n} for cluster usage", "QuotaCode": n, "Value": 4.0} for n in ("p5.48xlarge", "x")]
    answers.add("service-quotas", "list_service_quotas", {"Quotas": entries}, {"ServiceCode": "sagemaker"})
    facts = Preflight(answers.calls, StillClock()).facts(Ask("ml.p5.48xlarge", 5))
    verdict = found(facts)["quota"]
    assert (verdict.result, "needs 5 instances" in verdict.text) == (Result.FAIL, True)


def test_recent_refusals_of_that_resource_are_remembered() -> None:
    codes = {"InsufficientInstanceCapacity": 2}
    mine = ClusterEvent(NOW - 240, Health.WARN, "clustermgtd", LAUNCH_FAILURE, "x", codes=codes, nodes=("gpu-dy-p5-1",))
    other = replace(mine, nodes=("cpu-dy-c6i-1",), codes={"VcpuLimitExceeded": 1})
    facts = Preflight(Answers().calls, StillClock(NOW))
    ask = replace(ASK, type="ml.p5.48xlarge", subnets=(), efa=False, placement_group="")
    told = facts.facts(replace(ask, market=Market.CAPACITY_BLOCK), ClusterEvents((mine, other)), NOW)
    assert (told.capacity_errors, told.capacity_error_s) == (codes, 240.0)
    old = facts.facts(replace(ask, market=Market.CAPACITY_BLOCK), ClusterEvents((mine,)), NOW + 3600)
    assert old.capacity_errors == {}
