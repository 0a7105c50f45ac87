"""Verdicts before instances are launched: what will refuse, told before it does. Pure over fetched facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.aws_models import Market, Part, Reservation
from cockpit.catalog.quotas import family_of
from cockpit.preflight_models import GroupRules, PreflightFacts, Quota, Result, Verdict
from cockpit.words import moment, span

NEARLY_FULL = 0.9
SOON_S = 2 * 3600.0
DISABLED_S = 600.0  # for that long ParallelCluster keeps nodes of a resource away after a capacity error
FSX_LOW, FSX_VERY_LOW = 0.10, 0.02


def verdicts(facts: PreflightFacts, now: float) -> tuple[Verdict, ...]:
    """Every check that matters for this ask, in the order in which a launch would meet them."""
    found = [*_quota(facts), *_offered(facts), *_addresses(facts), *_efa_rules(facts), *_placement(facts)]
    return (*found, *_reservation(facts, now), *_capacity(facts))


def worst(found: Sequence[Verdict]) -> Result:
    """The worst of them; pass when there are none."""
    order = (Result.FAIL, Result.WARN, Result.UNKNOWN, Result.PASS)
    return next((result for result in order if any(v.result is result for v in found)), Result.PASS)


def _unread(check: str, part: Part[object]) -> Verdict:
    fault = part.fault
    return Verdict(check, Result.UNKNOWN, fault.why if fault else "not asked for", fault.next_step if fault else "")


def _quota(facts: PreflightFacts) -> Iterator[Verdict]:
    ask = facts.ask
    if ask.market is Market.CAPACITY_BLOCK:
        return  # bought capacity does not count against the on-demand quota
    if facts.quotas.data is None:
        yield _unread("quota", facts.quotas)
        return
    hyperpod = ask.type.startswith("ml.")
    if not facts.quotas.data:
        name = ask.type if hyperpod else family_of(ask.type).name
        yield Verdict("quota", Result.UNKNOWN, f"no quota found for {name} ({ask.market.value})")
    each = 1 if hyperpod else facts.vcpus_each
    if each is None:
        yield Verdict("quota", Result.UNKNOWN, f"how many vCPUs a {ask.type} has is not known")
        return
    for quota in facts.quotas.data:
        yield _one_quota(facts, quota, each * ask.count, "instances" if hyperpod else "vCPU")


def _one_quota(facts: PreflightFacts, quota: Quota, need: int, unit: str) -> Verdict:
    name = f"{quota.name or quota.code} ({quota.code})"
    used = facts.vcpus_used.data
    if used is None:
        if need > quota.limit:
            return Verdict("quota", Result.FAIL, f"needs {need:,} {unit}, {name} is {quota.limit:,.0f}", _more(quota))
        why = facts.vcpus_used.fault.why if facts.vcpus_used.fault else "not read"
        return Verdict("quota", Result.UNKNOWN, f"{name} is {quota.limit:,.0f} {unit}; what is used: {why}")
    left = quota.limit - used
    numbers = f"needs {need:,} {unit}; {name}: {used:,} of {quota.limit:,.0f} used, {max(0.0, left):,.0f} left"
    if need > left:
        return Verdict("quota", Result.FAIL, numbers, _more(quota))
    nearly = used + need > NEARLY_FULL * quota.limit
    return Verdict("quota", Result.WARN if nearly else Result.PASS, numbers)


def _more(quota: Quota) -> str:
    return f"ask for a higher quota {quota.code} in Service Quotas (takes hours to days), or free instances"


def _offered(facts: PreflightFacts) -> Iterator[Verdict]:
    zones, subnets = facts.zones.data, facts.subnets.data
    if zones is None or not subnets:
        return
    wrong = sorted({subnet.zone for subnet in subnets if subnet.zone not in zones})
    if wrong:
        result = Result.FAIL if len(wrong) == len({subnet.zone for subnet in subnets}) else Result.WARN
        text = (
            f"{facts.ask.type} is not offered in {', '.join(wrong)}; it is in {', '.join(sorted(zones)) or 'no zone'}"
        )
        yield Verdict("zone", result, text, "give the queue a subnet in such a zone")
    else:
        yield Verdict(
            "zone", Result.PASS, f"{facts.ask.type} is offered in {', '.join(sorted({s.zone for s in subnets}))}"
        )


def _addresses(facts: PreflightFacts) -> Iterator[Verdict]:
    ask = facts.ask
    if not ask.subnets:
        yield Verdict("addresses", Result.UNKNOWN, "which subnet they go into is not known")
        return
    if facts.subnets.data is None:
        yield _unread("addresses", facts.subnets)
        return
    free = sum(subnet.free or 0 for subnet in facts.subnets.data)
    need = ask.count * ask.addresses_each
    where = ", ".join(subnet.id for subnet in facts.subnets.data)
    text = f"needs {need} private IP{'' if need == 1 else 's'}; {free} free in {where}"
    if need > free:
        yield Verdict("addresses", Result.FAIL, text, "free some, or give the queue a larger subnet")
    else:
        yield Verdict("addresses", Result.WARN if free - need < 0.1 * free else Result.PASS, text)


def _efa_rules(facts: PreflightFacts) -> Iterator[Verdict]:
    """EFA goes past the kernel's IP stack: only a rule that refers to the group itself lets it through."""
    if not facts.ask.efa:
        return
    if facts.groups.data is None:
        yield _unread("security group", facts.groups)
        return
    good = [group.id for group in facts.groups.data if group.inbound and group.outbound]
    if good:
        text = f"{good[0]} lets all traffic in from itself and out to itself"
        yield Verdict("security group", Result.PASS, text)
        return
    lacks = [f"{group.id} lacks the {_lacking(group)} rule" for group in facts.groups.data]
    step = "add rules for all protocols whose peer is the group itself, both ways; outbound 0.0.0.0/0 is not enough"
    yield Verdict("security group", Result.FAIL, f"EFA cannot pass: {'; '.join(lacks) or 'no group is known'}", step)


def _lacking(group: GroupRules) -> str:
    ways = {"inbound": group.inbound, "outbound": group.outbound}
    return " and the ".join(way for way, there in ways.items() if not there)


def _placement(facts: PreflightFacts) -> Iterator[Verdict]:
    name = facts.ask.placement_group
    if not name:
        if facts.ask.efa and facts.ask.count > 1:
            text = "no placement group, though EFA is on: nodes may land far from each other"
            yield Verdict("placement group", Result.WARN, text, "set PlacementGroup: Enabled for this queue")
        return
    if facts.placement.read_at is None:
        yield _unread("placement group", facts.placement)
        return
    group = facts.placement.data
    if group is None:
        yield Verdict(
            "placement group", Result.FAIL, f"there is no placement group {name}", "create it, or update the queue"
        )
    elif group.state != "available":
        yield Verdict("placement group", Result.FAIL, f"{name} is {group.state}")
    else:
        zones = {subnet.zone for subnet in facts.subnets.data or ()}
        if group.strategy == "cluster" and len(zones) > 1:
            text = f"{name} (cluster) lies in one zone, the subnets in {', '.join(sorted(zones))}"
            yield Verdict("placement group", Result.WARN, text, "give the queue one subnet")
        else:
            yield Verdict("placement group", Result.PASS, f"{name} is available ({group.strategy})")


def _reservation(facts: PreflightFacts, now: float) -> Iterator[Verdict]:
    ask = facts.ask
    if not ask.reservation:
        return
    if facts.reservation.read_at is None:
        yield _unread("reservation", facts.reservation)
        return
    found = facts.reservation.data
    if found is None:
        yield Verdict("reservation", Result.FAIL, f"there is no capacity reservation {ask.reservation}")
        return
    yield _one_reservation(found, ask.count, now)


def _one_reservation(found: Reservation, count: int, now: float) -> Verdict:
    name = f"{'capacity block' if found.block else 'reservation'} {found.id}"
    if found.state != "active":
        starts = f", starts {moment(found.starts_at, now)}" if found.starts_at and found.starts_at > now else ""
        return Verdict(
            "reservation", Result.FAIL, f"{name} is {found.state}{starts}", "nothing can be launched into it now"
        )
    room = f"{found.available} of {found.total} free"
    if found.available is not None and found.available < count:
        return Verdict("reservation", Result.FAIL, f"{name}: {room}, {count} needed", "scale to what is free")
    if found.ends_at is not None and found.ends_at - now < SOON_S:
        return Verdict("reservation", Result.WARN, f"{name} ends in {span(found.ends_at - now)}; {room}")
    return Verdict("reservation", Result.PASS, f"{name}: {room}")


def _capacity(facts: PreflightFacts) -> Iterator[Verdict]:
    if not facts.capacity_errors or facts.capacity_error_s is None:
        return
    codes = ", ".join(f"{count} × {code}" for code, count in facts.capacity_errors.items())
    text = f"EC2 refused launches of {facts.ask.resource} {span(facts.capacity_error_s)} ago: {codes}"
    left_s = DISABLED_S - facts.capacity_error_s
    step = f"ParallelCluster tries again in about {span(left_s)}" if left_s > 0 else "it may refuse again"
    yield Verdict("capacity", Result.WARN, text, step)


def fsx_verdict(free_bytes: float | None, total_gib: float | None, name: str) -> Verdict:
    """Whether the shared file system has room for what the new nodes will write."""
    if free_bytes is None or not total_gib:
        return Verdict("file system", Result.UNKNOWN, f"how full {name} is, is not known")
    share = free_bytes / (total_gib * 2**30)
    text = f"{name}: {free_bytes / 2**40:,.1f} TiB free of {total_gib / 1024:,.1f} ({share:.0%})"
    result = Result.FAIL if share < FSX_VERY_LOW else Result.WARN if share < FSX_LOW else Result.PASS
    return Verdict("file system", result, text, "" if result is Result.PASS else "jobs die of a full file system")
