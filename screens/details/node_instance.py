"""What AWS and ParallelCluster's daemons tell of a node: its instance, and what happened to it. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.aws_models import AwsReading, Checks, Instance, Market
from cockpit.cluster import Cluster
from cockpit.cost_report import price_words, usd
from cockpit.event_models import ClusterEvent
from cockpit.models import Health
from cockpit.text import printable
from cockpit.words import moment, plural, span
from screens.lines import Line, Piece, fact, facts, section
from themes import state_token

EVENTS_MAX = 20
_FOUND_BY = {
    "slurm": "Slurm's own InstanceId",
    "address": "the node's address",
    "name": "a name made of its address",
    "table": "ParallelCluster's table of nodes",
}


def instance_lines(cluster: Cluster, name: str) -> list[Line]:
    """The instance behind a node; nothing while AWS was never read."""
    reading = cluster.view.aws
    if reading is None:
        return []
    head: list[Line] = [[], section("instance")]
    found = cluster.view.joined.of_node.get(name)
    if found is None:
        return [*head, *_without(cluster, reading, name)]
    now = cluster.clock.now()
    since = f"{moment(found.launched_at, now)}, {span(now - found.launched_at)} ago" if found.launched_at else ""
    why = f"  {found.state_reason}" if found.state_reason else ""
    lines: list[Line] = [
        *head,
        [*fact("id", found.id), (f"  by {_FOUND_BY.get(cluster.view.joined.how[name])}", "dim")],
    ]
    lines.append(fact("state", f"{found.state}{why}", "" if found.state == "running" else "warning"))
    lines += facts(
        [
            ("type", f"{found.type}{f', {found.market.value}' if found.market else ''}"),
            ("zone", found.zone),
            ("placement", found.placement_group),
            ("launched", since),
            ("template", found.template),
            ("addresses", ", ".join((found.private_ip, *found.other_ips)[:8])),
            ("EFA", "" if found.efa is None else f"{plural(found.efa, 'interface')} attached"),
        ]
    )
    lines += _reservation(reading, found, now)
    lines += _checks(found.checks, now)
    lines += _cost(cluster, found, now)
    fault = reading.instances.fault
    return [*lines, *([[(f"  not read at the last try: {fault.line()}", "warning")]] if fault else [])]


def _without(cluster: Cluster, reading: AwsReading, name: str) -> list[Line]:
    """Why there is none to show."""
    fault = reading.instances.fault
    if reading.instances.data is None:
        why = fault.line() if fault else "not read yet"
        return [[(f"  not known: {why}", "warning" if fault else "dim")]]
    gone = cluster.view.joined.vanished.get(name, "")
    if gone:
        return [[(f"  Slurm points at {printable(gone)}, and EC2 has no such instance", "critical")]]
    return [[("  none: EC2 has no instance for it", "dim")]]


def _reservation(reading: AwsReading, found: Instance, now: float) -> list[Line]:
    if not found.reservation:
        return []
    told = (reading.reservations.data or {}).get(found.reservation)
    if told is None or told.ends_at is None:
        return [fact("reservation", found.reservation)]
    what = "capacity block" if told.block else "ends"
    left_s = told.ends_at - now
    words = f"{found.reservation}: {what} until {moment(told.ends_at, now)}, {span(left_s)} left"
    return [fact("reservation", words, "warning" if left_s < 7200 else "")]


def _checks(checks: Checks | None, now: float) -> list[Line]:
    """Status checks by name, and what AWS will do to the machine."""
    if checks is None:
        return [fact("checks", "not read, or it does not run", "dim")]
    told = {"system": checks.system, "instance": checks.instance, "storage": checks.storage}
    words = ", ".join(f"{name} {word}" for name, word in told.items() if word)
    since = f" for {span(now - checks.impaired_since)}" if checks.impaired_since and checks.impaired else ""
    lines = [fact("checks", f"{words}{since}", "critical" if checks.impaired else "")]
    for event in checks.events:
        when = f" not before {moment(event.not_before, now)}" if event.not_before else ""
        lines.append(fact("scheduled", f"{event.code}{when}  {event.text}", "warning"))
    return lines


def _cost(cluster: Cluster, found: Instance, now: float) -> list[Line]:
    price = cluster.view.prices.of(found) if cluster.view.prices else None
    if found.market is Market.CAPACITY_BLOCK:
        return [fact("costs", "paid in advance, with its capacity block")]
    if price is None:
        return [fact("costs", "no price is known for this type", "dim")]
    if not found.billed:
        return [fact("costs", f"nothing while {found.state}; {usd(price.usd_h)}/h when it runs")]
    spent = (
        f", {usd(price.usd_h * (now - found.launched_at) / 3600)} since launch at today's price"
        if found.launched_at is not None
        else ""
    )
    return [[*fact("costs", f"{usd(price.usd_h)}/h{spent}"), (f"  {price_words(price)}", "dim")]]


def event_lines(cluster: Cluster, name: str) -> list[Line]:
    """What the daemons on the head told of a node, newest first; nothing where they tell nothing of it."""
    events = cluster.view.events
    found = events.of_node(name) if events else ()
    if not found:
        return []
    lines: list[Line] = [[], section("launches and failures, as the head tells them")]
    lines += timeline(found[::-1][:EVENTS_MAX], cluster.clock.now())
    if len(found) > EVENTS_MAX:
        lines.append([(f"  and {len(found) - EVENTS_MAX} older ones", "dim")])
    return lines


def timeline(events: Iterable[ClusterEvent], now: float) -> list[Line]:
    """One line each: when, what, how many nodes by which of EC2's errors, and who says so."""
    lines: list[Line] = []
    for event in events:
        token = "" if event.health is Health.OK else state_token(event.health)
        source = (f"  {printable(event.source)}", "dim")
        lines.append([(f"  {moment(event.at, now):<12} ", "dim"), (event_words(event), token), source])
    return lines


RECENT_S = 3600.0


def recent_pieces(cluster: Cluster, now: float) -> list[Piece]:
    """The newest failure of the last hour in one line, and how many more there were; nothing when there was none."""
    events = cluster.view.events
    found = [
        event
        for event in (events.events if events else ())
        if event.health is not Health.OK and event.at is not None and now - event.at < RECENT_S
    ]
    if not found:
        return []
    newest = found[-1]
    more = f"  +{len(found) - 1} more in the last hour, 9 lists them" if len(found) > 1 else ""
    return [(f" {moment(newest.at, now)} ", "dim"), (event_words(newest), state_token(newest.health)), (more, "dim")]


def event_words(event: ClusterEvent) -> str:
    """What happened, with EC2's codes."""
    codes = ", ".join(f"{code} {count}" for code, count in event.codes.items())
    return printable(f"{event.text or event.type}{f' ({codes})' if codes else ''}")
