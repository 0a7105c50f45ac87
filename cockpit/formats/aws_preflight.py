"""EC2's and Service Quotas' answers to what a preflight looks at. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cockpit.aws_models import Instance, Market
from cockpit.catalog.instances import instance_type
from cockpit.catalog.quotas import family_of
from cockpit.formats.aws_ec2 import text
from cockpit.preflight_models import Ask, GroupRules, Placement, Quota, Subnet

Answer = Mapping[str, Any]


def ask_of_template(data: Answer, count: int, queue: str, resource: str) -> Ask:
    """What a launch template (LaunchTemplateData) would launch."""
    interfaces = data.get("NetworkInterfaces") or ()
    kinds = [str(one.get("InterfaceType", "interface")) for one in interfaces]
    market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    groups = [group for one in interfaces for group in one.get("Groups") or ()] or data.get("SecurityGroupIds") or ()
    return Ask(
        type=text(data.get("InstanceType")),
        count=count,
        market={"spot": Market.SPOT, "capacity-block": Market.CAPACITY_BLOCK}.get(str(market), Market.ON_DEMAND),
        queue=queue,
        resource=resource,
        subnets=tuple(dict.fromkeys(text(one["SubnetId"]) for one in interfaces if one.get("SubnetId"))),
        security_groups=tuple(dict.fromkeys(text(group) for group in groups)),
        placement_group=text((data.get("Placement") or {}).get("GroupName")),
        reservation=text(target.get("CapacityReservationId")),
        efa=any(kind.startswith("efa") for kind in kinds),
        addresses_each=max(1, sum(kind != "efa-only" for kind in kinds)),
        known_from="launch template",
    )


def ask_of_peer(peer: Instance, count: int) -> Ask:
    """The same by an instance of that queue which runs already."""
    return Ask(
        type=peer.type,
        count=count,
        market=peer.market or Market.ON_DEMAND,
        queue=peer.queue,
        resource=peer.resource,
        subnets=(peer.subnet,) if peer.subnet else (),
        security_groups=peer.security_groups,
        placement_group=peer.placement_group,
        reservation=peer.reservation,
        efa=bool(peer.efa),
        addresses_each=1 + len(peer.other_ips),
        known_from=f"instance {peer.id}",
    )


def parse_quota(answer: Answer) -> Quota:
    """One quota of GetServiceQuota or GetAWSDefaultServiceQuota."""
    entry = answer["Quota"]
    return Quota(text(entry.get("QuotaCode")), text(entry.get("QuotaName")), float(entry["Value"]))


def parse_cluster_quotas(pages: Iterable[Answer], type_name: str) -> tuple[Quota, ...]:
    """SageMaker's quotas of HyperPod instances of a type, out of ListServiceQuotas."""
    wanted = f"{type_name} for cluster usage"
    entries = (entry for page in pages for entry in page.get("Quotas") or ())
    return tuple(parse_quota({"Quota": entry}) for entry in entries if entry.get("QuotaName") == wanted)


def vcpus_in_use(instances: Iterable[Instance], like: Ask) -> int:
    """vCPUs of the account's pending and running instances that count against the same quota.

    Capacity blocks are left out: they do not use the on-demand quota.
    """
    family, spot = family_of(like.type), like.market is Market.SPOT
    return sum(
        _vcpus(one)
        for one in instances
        if one.billed
        and one.market is not Market.CAPACITY_BLOCK
        and (one.market is Market.SPOT) is spot
        and family_of(one.type).name == family.name
    )


def _vcpus(instance: Instance) -> int:
    if instance.vcpus is not None:
        return instance.vcpus
    known = instance_type(instance.type)
    return (known.vcpus or 0) if known else 0


def parse_subnets(pages: Iterable[Answer]) -> tuple[Subnet, ...]:
    """Subnets with their free addresses."""
    return tuple(
        Subnet(text(one.get("SubnetId")), text(one.get("AvailabilityZone")), one.get("AvailableIpAddressCount"))
        for page in pages
        for one in page.get("Subnets") or ()
    )


def parse_groups(pages: Iterable[Answer]) -> tuple[GroupRules, ...]:
    """Security groups by whether they refer to themselves, for all protocols, in and out."""
    return tuple(
        GroupRules(
            text(group.get("GroupId")),
            _to_itself(group.get("IpPermissions"), group.get("GroupId")),
            _to_itself(group.get("IpPermissionsEgress"), group.get("GroupId")),
        )
        for page in pages
        for group in page.get("SecurityGroups") or ()
    )


def _to_itself(rules: Iterable[Answer] | None, group: object) -> bool:
    every = (rule for rule in rules or () if str(rule.get("IpProtocol")) == "-1")
    return any(pair.get("GroupId") == group for rule in every for pair in rule.get("UserIdGroupPairs") or ())


def parse_placement(answer: Answer) -> Placement | None:
    """The placement group asked for; None when there is none of that name."""
    groups = answer.get("PlacementGroups") or ()
    if not groups:
        return None
    one = groups[0]
    return Placement(text(one.get("GroupName")), text(one.get("State")), text(one.get("Strategy")))
