"""What the source `aws` and two narrow reads of EC2 add to checks; all of it is optional and may be refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cockpit.aws_models import Instance, Market
from cockpit.checks.aws_checks import AwsFacts, GroupRule, events, of_efa
from cockpit.checks.models import Result
from cockpit.checks.targets import FromAws
from cockpit.formats.aws_ec2 import text
from cockpit.formats.aws_preflight import parse_groups
from cockpit.models import FaultError

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

_ALL = "-1"


def from_aws(cluster: Cluster, kind: str) -> FromAws:
    """Types, expected EFA interfaces and AWS's own checks of every node with an instance.

    Asks EC2 for types and security groups when `kind` is efa, so never call it on the UI thread. Without any
    instance nothing is asked.
    """
    of_node = {node: one for node, one in cluster.view.instance_of_node.items() if one.billed}
    if not of_node:
        return FromAws()
    types = {node: instance.type.removeprefix("ml.") for node, instance in of_node.items()}
    if kind != "efa":
        now = cluster.clock.now()
        soon_days = cluster.checks.thresholds.get("aws.events", {}).get("soon_days")
        told = {
            node: (events(aws_facts(one), now, soon_days),) for node, one in of_node.items() if one.checks is not None
        }
        return FromAws(types, None, told)
    most = _most_efa(cluster, set(types.values()))
    expected = {node: most[name] for node, name in types.items() if name in most}
    rules = _rules(cluster, {group for one in of_node.values() for group in one.security_groups})
    return FromAws(types, expected, dict(_fabric(of_node, expected, rules)))


def aws_facts(instance: Instance) -> AwsFacts:
    """One instance in the plain form of the AWS checks."""
    checks = instance.checks
    status = (("system", checks.system), ("instance", checks.instance), ("storage", checks.storage)) if checks else ()
    return AwsFacts(
        instance=instance.id,
        zone=instance.zone,
        vpc=instance.vpc,
        placement_group=instance.placement_group,
        capacity_block=instance.market is Market.CAPACITY_BLOCK,
        efa_interfaces=instance.efa,
        security_groups=instance.security_groups,
        status=tuple((name, word) for name, word in status if word),
        events=tuple((each.code, each.not_before) for each in checks.events) if checks else (),
    )


def _fabric(
    of_node: Mapping[str, Instance], expected: Mapping[str, int], rules: tuple[GroupRule, ...] | None
) -> Iterable[tuple[str, tuple[Result, ...]]]:
    queues: dict[str, dict[str, AwsFacts]] = defaultdict(dict)
    for node, instance in of_node.items():
        queues[instance.queue][node] = aws_facts(instance)
    for peers in queues.values():
        for node in peers:
            if expected.get(node) != 0:
                yield node, of_efa(node, peers, rules, expected.get(node), None)


def _most_efa(cluster: Cluster, types: set[str]) -> dict[str, int]:
    """The most EFA interfaces of each type by DescribeInstanceTypes; {} where that is not allowed."""
    try:
        pages = cluster.aws.calls().pages(
            "ec2", "describe_instance_types", "reading the instance types", InstanceTypes=sorted(types)
        )
        return {text(one.get("InstanceType")): _most(one) for page in pages for one in page.get("InstanceTypes") or ()}
    except FaultError:
        return {}


def _most(one: Mapping[str, Any]) -> int:
    network = one.get("NetworkInfo") or {}
    most = (network.get("EfaInfo") or {}).get("MaximumEfaInterfaces")
    return most if network.get("EfaSupported") and isinstance(most, int) else 0


def _rules(cluster: Cluster, groups: set[str]) -> tuple[GroupRule, ...] | None:
    """For each group whether it refers to itself, in and out; None where EC2 does not tell."""
    if not groups:
        return None
    try:
        pages = cluster.aws.calls().pages(
            "ec2", "describe_security_groups", "reading the security groups", GroupIds=sorted(groups)
        )
        told = parse_groups(pages)
    except FaultError:
        return None
    inward = [GroupRule(group.id, False, _ALL, group.id) for group in told if group.inbound]
    return (*inward, *(GroupRule(group.id, True, _ALL, group.id) for group in told if group.outbound))
