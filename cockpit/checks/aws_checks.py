"""What only AWS can tell of EFA and of a node's health. Pure functions over plain values; nothing is asked here.

Rules and instances are given in the simplest form, so that any reader of the EC2 API can call these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from cockpit.catalog.checks import check_fact
from cockpit.checks.models import Result, Verdict
from cockpit.text import printable

_DAY_S = 86_400.0
_ALL_PROTOCOLS = "-1"


@dataclass(frozen=True, slots=True)
class GroupRule:
    """One rule of DescribeSecurityGroupRules: `group` is the one it belongs to, `peer_group` the referenced one."""

    group: str
    egress: bool
    protocol: str
    peer_group: str = ""
    cidr: str = ""


@dataclass(frozen=True, slots=True)
class AwsFacts:
    """What EC2 tells of one node's instance; "" and None where it was not told."""

    instance: str = ""
    zone: str = ""
    vpc: str = ""
    placement_group: str = ""
    capacity_block: bool = False
    efa_interfaces: int | None = None
    security_groups: tuple[str, ...] = ()
    status: tuple[tuple[str, str], ...] = ()  # (system, ok), (instance, impaired), ...
    events: tuple[tuple[str, float | None], ...] = ()  # (code or text, not before)


def _result(check: str, verdict: Verdict, says: str, *evidence: str) -> Result:
    step = check_fact(check).next_step if verdict in (Verdict.FAIL, Verdict.WARN) else ""
    return Result(check, verdict, printable(says), tuple(printable(line) for line in evidence if line), step)


def interfaces(told: AwsFacts, expected: int | None, seen: int | None) -> Result:
    """Attached by EC2's word, against what the type can have and how many devices the node shows."""
    attached, check = told.efa_interfaces, "aws.interfaces"
    if attached is None:
        return _result(check, Verdict.UNKNOWN, "EC2 was not asked, or does not tell")
    if expected == 0:
        return _result(check, Verdict.NA, "this instance type has no EFA")
    if attached == 0:
        return _result(check, Verdict.FAIL, "no interface of type efa or efa-only is attached")
    if expected is not None and attached < expected:
        return _result(check, Verdict.FAIL, f"{attached} of {expected} are attached")
    if seen is not None and seen < attached:
        return _result(check, Verdict.FAIL, f"{attached} are attached, the node shows {seen}")
    return _result(check, Verdict.PASS, f"{attached} attached")


def security_group(groups: Sequence[str], rules: Sequence[GroupRule] | None) -> Result:
    """At least one of the node's groups lets all traffic in from itself, and one lets all out to itself."""
    check = "aws.security_group"
    if rules is None or not groups:
        return _result(check, Verdict.UNKNOWN, "the rules could not be read")
    own = [rule for rule in rules if rule.group in groups and rule.protocol == _ALL_PROTOCOLS]
    # Any of the instance's groups may be the other end: both instances are in all of them.
    inward = sorted({rule.group for rule in own if not rule.egress and rule.peer_group in groups})
    outward = sorted({rule.group for rule in own if rule.egress and rule.peer_group in groups})
    ways = {True: "out", False: "in"}
    lines = [f"{rule.group} {ways[rule.egress]} {rule.protocol} {rule.peer_group or rule.cidr}" for rule in own]
    if inward and outward:
        return _result(check, Verdict.PASS, f"all traffic within {', '.join(dict.fromkeys((*inward, *outward)))}")
    missing = " and ".join([*([] if inward else ["inbound from itself"]), *([] if outward else ["outbound to itself"])])
    return _result(check, Verdict.FAIL, f"no rule for all traffic {missing}", *lines[:12])


def zone(node: str, peers: Mapping[str, AwsFacts]) -> Result:
    """The same availability zone and VPC as the others of the queue."""
    check, own = "aws.zone", peers[node]
    zones = Counter(each.zone for each in peers.values() if each.zone)
    vpcs = Counter(each.vpc for each in peers.values() if each.vpc)
    if not own.zone:
        return _result(check, Verdict.UNKNOWN, "not told")
    usual = zones.most_common(1)[0][0]
    lines = [f"{name}: {count}" for name, count in zones.most_common()]
    if own.zone != usual:
        return _result(check, Verdict.FAIL, f"{own.zone}, its peers are in {usual}", *lines)
    if own.vpc and own.vpc != vpcs.most_common(1)[0][0]:
        return _result(check, Verdict.FAIL, f"VPC {own.vpc}, its peers are in {vpcs.most_common(1)[0][0]}")
    return _result(check, Verdict.PASS, own.zone)


def placement(node: str, peers: Mapping[str, AwsFacts]) -> Result:
    """The cluster placement group that most of its peers are in; a capacity block needs none."""
    check, own = "aws.placement", peers[node]
    groups = Counter(each.placement_group for each in peers.values() if each.placement_group)
    if own.capacity_block:
        return _result(check, Verdict.NA, "in a capacity block")
    if not groups:
        return _result(check, Verdict.NA, "no node of the queue is in one (recommended, not required)")
    usual = groups.most_common(1)[0][0]
    if own.placement_group != usual:
        return _result(check, Verdict.WARN, f"{own.placement_group or 'none'}, its peers are in {usual}")
    return _result(check, Verdict.PASS, usual)


def events(told: AwsFacts, now: float, soon_days: float | None = None) -> Result:
    """Status checks that fail, and what AWS has scheduled; finished events must have been left out."""
    check = "aws.events"
    days = check_fact(check).thresholds["soon_days"] if soon_days is None else soon_days
    impaired = [name for name, word in told.status if word == "impaired"]
    lines = [f"{name}: {word}" for name, word in told.status]
    lines += [f"{text}{f' not before {_date(at)}' if at is not None else ''}" for text, at in told.events]
    if impaired:
        return _result(check, Verdict.FAIL, f"{' and '.join(impaired)} impaired", *lines)
    near = [(text, at) for text, at in told.events if at is None or at - now <= days * _DAY_S]
    if near:
        text, at = near[0]
        return _result(check, Verdict.FAIL, f"{text}{f' at {_date(at)}' if at is not None else ''}", *lines)
    if told.events:
        return _result(check, Verdict.WARN, f"{told.events[0][0]}, more than {days:.0f} days off", *lines)
    return _result(check, Verdict.PASS if told.status else Verdict.UNKNOWN, "none" if told.status else "not told")


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def of_efa(node: str, peers: Mapping[str, AwsFacts], rules: Sequence[GroupRule] | None, expected: int | None,
           seen: int | None) -> tuple[Result, ...]:  # fmt: skip
    """The four EFA checks of one node; `peers` are the nodes of its queue, itself included."""
    if node not in peers:
        return ()
    told = peers[node]
    return (
        interfaces(told, expected, seen),
        security_group(told.security_groups, rules),
        zone(node, peers),
        placement(node, peers),
    )
