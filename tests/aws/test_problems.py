"""What is wrong between Slurm and AWS: told when it is so, and only then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from cockpit.aws_models import (
    AwsReading,
    AwsScope,
    Checks,
    FleetItem,
    Instance,
    Part,
    Reservation,
    ScheduledEvent,
    Stack,
)
from cockpit.aws_problems import AwsLook, AwsProblems
from cockpit.instance_join import join
from cockpit.models import Fault, FaultKind, Health, Node, Problem
from tests.aws.test_source import node

NOW = 1_796_000_000.0
SCOPE = AwsScope(stack="prod", filters=(("tag:parallelcluster:cluster-name", ("prod",)),))


def machine(number: int, **more: Any) -> Instance:
    told: dict[str, Any] = {
        "id": f"i-{number}",
        "type": "p5.48xlarge",
        "state": "running",
        "role": "compute",
        "queue": "gpu",
        "private_ip": f"10.0.0.{number}",
        "zone": "us-east-1a",
        "placement_group": "pg",
        "launched_at": NOW - 7200,
        "efa": 32,
    }
    return Instance(**(told | more))


def a_node(number: int, state: str = "idle+cloud") -> Node:
    return replace(node(f"gpu-st-p5-{number}", f"10.0.0.{number}", state), partitions=("gpu",))


def found(
    machines: Iterable[Instance], nodes: Iterable[Node] | None, rules: AwsProblems | None = None, **parts: Any
) -> dict[str, Problem]:
    now = parts.pop("now", NOW)
    scope = parts.pop("scope", SCOPE)
    read: dict[str, Any] = {name: Part(data, now) for name, data in parts.items()}
    reading = AwsReading(scope, Part(tuple(machines), now), **read)
    nodes = None if nodes is None else tuple(nodes)
    look = AwsLook(reading, join(nodes or (), reading), nodes, now)
    return {problem.key: problem for problem in (rules or AwsProblems()).of(look)}


def test_a_healthy_cluster_has_no_problem() -> None:
    fleet, stack = FleetItem("RUNNING", NOW - 60), Stack("prod", "UPDATE_COMPLETE")
    machines = [machine(1), machine(2), machine(9, role="head", type="m6i.xlarge", private_ip="10.0.0.99")]
    assert found(machines, [a_node(1), a_node(2)], fleet=fleet, stack=stack) == {}


def test_an_old_instance_without_a_node_burns_money_a_young_one_boots() -> None:
    old, young = machine(2), machine(3, launched_at=NOW - 60)
    problem = found([machine(1), old, young], [a_node(1)])["aws:orphans"]
    assert (problem.subject, problem.count, problem.since) == ("i-2", 1, NOW - 7200)
    assert "1 × p5.48xlarge" in problem.title
    assert "aws:orphans" not in found([old], None)  # without Slurm's word nobody is an orphan


def test_a_node_whose_instance_is_gone_is_told_once_it_lasts() -> None:
    rules, nodes = AwsProblems(), [a_node(1), a_node(2), a_node(3, "idle+cloud+powered_down"), a_node(4, "down+cloud")]
    assert "aws:gone" not in found([machine(1)], nodes, rules)
    problem = found([machine(1)], nodes, rules, now=NOW + 120)["aws:gone"]
    assert (problem.health, problem.subject) == (Health.CRITICAL, "gpu-st-p5-2")
    assert "10.0.0.2" in problem.evidence
    plain = found([machine(1)], nodes, rules, now=NOW + 150, scope=AwsScope(filters=SCOPE.filters))["aws:gone"]
    assert plain.health is Health.WARN  # it may merely not be tagged


def test_nodes_outside_their_placement_group_or_zone_are_named() -> None:
    machines = [machine(1), machine(2), machine(3, placement_group=""), machine(4, zone="us-east-1b")]
    problems = found(machines, [a_node(n) for n in (1, 2, 3, 4)])
    assert problems["aws:placement:gpu:pg"].subject == "gpu-st-p5-3"
    zones = problems["aws:zones:gpu"]
    assert (zones.subject, zones.title) == ("gpu-st-p5-4", "queue gpu is spread over zones: us-east-1a 3, us-east-1b 1")
    small = [replace(one, type="m6i.large", efa=0) for one in machines]
    assert found(small, [a_node(n) for n in (1, 2, 3, 4)]) == {}  # no fabric, no matter


def test_efa_that_is_missing_or_less_than_that_of_the_peers() -> None:
    without = found([machine(1, efa=0), machine(2, efa=0)], [a_node(1), a_node(2)])["aws:efa:gpu:p5.48xlarge"]
    assert (without.subject, "takes 32" in without.title) == ("gpu-st-p5-[1-2]", True)
    fewer = found([machine(1), machine(2, efa=31)], [a_node(1), a_node(2)])["aws:efa:gpu:fewer"]
    assert (fewer.subject, fewer.evidence) == ("gpu-st-p5-2", "gpu-st-p5-2 31")
    assert found([machine(1, efa=None)], [a_node(1)]) == {}
    assert found([machine(1, type="g5.8xlarge", efa=0)], [a_node(1)]) == {}


def test_checks_events_and_blocks() -> None:
    retire = ScheduledEvent("instance-retirement", "degraded hardware", NOW + 86400)
    machines = [
        machine(1, checks=Checks("impaired", "ok", impaired_since=NOW - 600)),
        machine(2, checks=Checks("ok", "ok", events=(retire,))),
        machine(3, reservation="cr-1"),
    ]
    block = Reservation("cr-1", block=True, ends_at=NOW + 5400)
    nodes = [a_node(n) for n in (1, 2, 3)]
    problems = found(machines, nodes, reservations={"cr-1": block})
    check = problems["aws:check:i-1"]
    assert (check.health, check.subject, check.since) == (Health.CRITICAL, "gpu-st-p5-1", NOW - 600)
    assert problems["aws:event:instance-retirement"].subject == "gpu-st-p5-2"
    ends = problems["aws:block:cr-1"]
    assert (ends.health, ends.subject, "1h30m" in ends.title) == (Health.WARN, "gpu-st-p5-3", True)
    late = found(machines, nodes, reservations={"cr-1": replace(block, ends_at=NOW + 1800)})["aws:block:cr-1"]
    assert late.health is Health.CRITICAL
    far = found(machines, nodes, reservations={"cr-1": replace(block, ends_at=NOW + 8000)})
    assert "aws:block:cr-1" not in far


@pytest.mark.parametrize(
    ("status", "age_s", "key"),
    [
        ("RUNNING", 9e6, None),
        ("STOP_REQUESTED", 200, None),
        ("STOP_REQUESTED", 400, "aws:fleet:stuck"),
        ("STOPPING", 400, None),
        ("STARTING", 1000, "aws:fleet:stuck"),
        ("PROTECTED", 10, "aws:fleet:protected"),
        ("STOPPED", 300, None),
        ("STOPPED", 3000, "aws:fleet:undead"),
    ],
)
def test_a_fleet_that_is_stuck_or_protected_or_will_not_die(status: str, age_s: float, key: str | None) -> None:
    problems = found([machine(1)], [a_node(1)], fleet=FleetItem(status, NOW - age_s))
    assert list(problems) == ([key] if key else [])


def test_a_rolled_back_update_is_told_with_what_it_means() -> None:
    problem = found([], [], stack=Stack("prod", "UPDATE_ROLLBACK_COMPLETE", "Limit exceeded"))["aws:stack"]
    assert problem.title == "UPDATE_FAILED; the cluster still works"


def test_missing_rights_are_one_quiet_problem_and_old_parts_tell_nothing() -> None:
    denied = Fault(FaultKind.DENIED, "reading", "not allowed: ec2:DescribeInstanceStatus is missing", "ask for it")
    old = Part(FleetItem("PROTECTED", NOW - 9000), NOW - 9000, Fault(FaultKind.THROTTLED, "reading", "slow down"))
    reading = AwsReading(SCOPE, Part((machine(1),), NOW), checks=Part(fault=denied), fleet=old)
    nodes = (a_node(1),)
    problems = {p.key: p for p in AwsProblems().of(AwsLook(reading, join(nodes, reading), nodes, NOW))}
    assert set(problems) == {"aws:denied", "aws:part:fleet"}
    assert (problems["aws:denied"].health, problems["aws:denied"].evidence) == (Health.UNKNOWN, "not read: checks")
