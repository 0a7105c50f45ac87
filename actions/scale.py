"""So many nodes of a queue up: which are started, which are let go, and what cannot be had without a config change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actions.ahead import ahead
from actions.draft import Draft
from actions.errors import ActionError, Refusal
from actions.looks import kept_up
from actions.node_wishes import KeptUp, PoweredDown, Up
from actions.nodes import NEEDS
from actions.power import LOST, cannot_keep, idles_for, keep_step
from actions.rights import fresh_site
from actions.spec import COUNTED, Options, Plan, Targets, Undo, Wish
from actions.targets import host_batches, nodes_by_name, short_list
from cockpit.joins import nodes_of, takes_work
from cockpit.kinds import Kind
from cockpit.models import Node, SlurmSite
from cockpit.words import plural, span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

MOST = 65_533  # nodes that one Slurm can have
_SLACK_S = 60.0  # the power-save pass that notices the request
_NOT_IDLE = (
    *("drain", "fail", "completing", "planned", "reserved", "maintenance", "power_down", "power_up", "powering_up"),
    *("powering_down", "powered_down", "not_responding", "reboot_requested", "reboot_issued", "invalid_reg"),
)


@dataclass(frozen=True, slots=True)
class Count:
    """A queue's nodes by what scaling can do with them; each in exactly one of the groups, in their order of choice."""

    up: tuple[Node, ...]  # with an instance (or getting one) and taking work
    startable: tuple[Node, ...]
    stoppable: tuple[Node, ...]  # part of `up`: idle, and nobody's
    others: tuple[tuple[Node, str], ...]  # neither up nor startable, and why

    @property
    def total(self) -> int:
        return len(self.up) + len(self.startable) + len(self.others)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many nodes of a queue are up, the fewest and the most that scaling can reach, and all that it has."""

    now: int
    least: int
    most: int
    total: int


def bounds(cluster: Cluster, queue: str) -> Bounds:
    """By what is known already, so that a dialog can say it at once; the plan looks again."""
    site, kind = cluster.view.site, cluster.kind
    count = counted(cluster, queue, frozenset(nodes_of(site.kept_up)) if site else frozenset(), kind)
    up = len(count.up)
    return Bounds(up, up - len(count.stoppable), up + len(count.startable), count.total)


def no_count(cluster: Cluster, queue: str, said: str) -> ActionError:
    """What to raise for something that is no number of that queue's nodes: which numbers are."""
    total = bounds(cluster, queue).total
    allowed = f"a whole number from 0 to {total}, which is all that queue {queue} has" if total else "a whole number"
    what = f"{said[:40]!r} is no number of nodes: " if said else ""
    return ActionError(Refusal.USAGE, f"{what}say how many shall be up, {allowed}")


def counted(cluster: Cluster, queue: str, kept: frozenset[str], kind: Kind | None) -> Count:
    """The nodes of a queue sorted out, never one with a job among the stoppable."""
    up, startable, others = [], [], []
    for node in nodes_by_name(cluster).values():
        if queue not in node.partitions:
            continue
        why = _unusable(node)
        if why:
            others.append((node, why))
        elif node.state.has("powered_down") and not node.state.has("power_up", "powering_up"):
            startable.append(node)
        else:
            up.append(node)
    held = cluster.view.jobs_of_node
    stoppable = [
        node
        for node in up
        if node.state.has("cloud")
        and node.state.base == "idle"
        and not node.state.has(*_NOT_IDLE)
        and not held.get(node.name)
        and not node.reservation
        and node.name not in kept
        and (kind is None or kind.origin(node.name) != "static")
    ]
    # Slurm starts planned ones itself; a lost one may not come up before it is powered down by force.
    startable.sort(key=lambda node: (node.state.has("not_responding"), node.state.has("planned"), node.weight or 0))
    stoppable.reverse()  # the last first, and of those the dearest to Slurm's own choice
    stoppable.sort(key=lambda node: -(node.weight or 0))
    return Count(tuple(up), tuple(startable), tuple(stoppable), tuple(others))


def _unusable(node: Node) -> str:
    """Why a node counts for nothing here; "" when it does."""
    if node.state.has("drain", "fail") or node.state.base == "down":
        return f"is {node.word}{f': {node.reason}' if node.reason else ''}"
    if node.state.has("powered_down") and (node.reservation or node.state.has("reserved", "maintenance")):
        return f"is reserved{f' ({node.reservation})' if node.reservation else ''}"
    if not takes_work(node) or node.state.has("powering_down"):
        return f"is {node.word}"
    if node.state.has("powered_down") and not node.state.has("cloud"):
        return "is no cloud node"
    return ""


def scale(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """`count` nodes of the queue up."""
    draft = Draft(cluster, "scale", targets, options)
    queue, wanted = targets.names[0], options.count
    site = fresh_site(cluster)
    count = counted(cluster, queue, kept_up(cluster), draft.kind)
    if not count.total:
        raise ActionError(Refusal.REFUSED, f"queue {queue} has no nodes")
    if wanted is None or not 0 <= wanted <= MOST:
        raise no_count(cluster, queue, "" if wanted is None else str(wanted))
    if wanted > count.total:
        for_good = "\n".join(_for_good(draft, queue, wanted))
        text = f"queue {queue} has {plural(count.total, 'node')}, not {wanted}: that is a change of its configuration"
        raise ActionError(Refusal.REFUSED, f"{text}\n{for_good}" if for_good else text)
    if wanted > len(count.up):
        return _grow(draft, queue, wanted, count, site)
    if wanted < len(count.up):
        return _shrink(draft, queue, wanted, count, site)
    raise ActionError(Refusal.REFUSED, f"nothing to do: {plural(wanted, 'node')} of queue {queue} are up already")


def _grow(draft: Draft, queue: str, wanted: int, count: Count, site: SlurmSite) -> Plan:
    start = [node.name for node in count.startable[: wanted - len(count.up)]]
    if not start:
        raise ActionError(Refusal.REFUSED, f"no node of queue {queue} can be started: {_why(count.others)}")
    if site.resume_timeout_s is None:
        raise ActionError(Refusal.REFUSED, "this cluster does not power nodes up (no ResumeTimeout)")
    keep = draft.options.keep
    if keep and (why := cannot_keep(site)):
        raise ActionError(Refusal.REFUSED, f"--keep: {why}")
    if keep:  # first, so that none of them is suspended while the others still boot
        keep_step(draft, start, there=True)
    for hosts, some in host_batches(start):
        draft.admin(f"power up {hosts}", ["update", f"nodename={hosts}", "state=power_up"], some)
    lives = f"they stay up until they are let go (unpin); {LOST}" if keep else idles_for(site)
    wishes: list[Wish] = [KeptUp(tuple(start))] if keep else []
    wishes.append(Up(tuple(start), site.resume_timeout_s + _SLACK_S))
    return draft.plan(
        f"scale {queue} to {plural(wanted, 'node')}: start {short_list(start)}",
        tier=COUNTED,
        count=len(start),
        needs=NEEDS,
        strict=True,
        effects=(
            f"{len(count.up)} of {count.total} nodes are up now; {plural(len(start), 'instance')} will be launched",
            lives,
            f"given up after {span(site.resume_timeout_s)} (ResumeTimeout)",
        ),
        ahead=ahead(draft.cluster, start),
        for_good=_for_good(draft, queue, wanted),
        warnings=tuple(_short_of(len(start) + len(count.up), wanted, count)),
        wishes=tuple(wishes),
        undo=(Undo("unpin", tuple(start)),) if keep else (),
    )


def _shrink(draft: Draft, queue: str, wanted: int, count: Count, site: SlurmSite) -> Plan:
    stop = [node.name for node in count.stoppable[: len(count.up) - wanted]]
    busy = len(count.up) - len(count.stoppable)
    if not stop:
        why = f"{plural(busy, 'node')} of queue {queue} have jobs, are static, pinned or reserved: none can be let go"
        raise ActionError(Refusal.REFUSED, why)
    for hosts, some in host_batches(stop):
        draft.admin(f"power down {hosts}", ["update", f"nodename={hosts}", "state=power_down_asap"], some)
    left = len(count.up) - len(stop)
    short = f"{left} stay up, not {wanted}: they have jobs, are static, pinned or reserved; this kills no job"
    return draft.plan(
        f"scale {queue} to {plural(wanted, 'node')}: let {short_list(stop)} go",
        tier=COUNTED,
        count=len(stop),
        needs=NEEDS,
        strict=True,
        effects=(
            f"{len(count.up)} of {count.total} nodes are up now; {plural(len(stop), 'idle instance')} will be let go",
            "a job that starts there in this very moment runs on to its end",
        ),
        for_good=_for_good(draft, queue, wanted),
        warnings=(short,) if left > wanted else (),
        wishes=(PoweredDown(tuple(stop), (site.suspend_timeout_s or 0.0) + _SLACK_S),),
    )


def _for_good(draft: Draft, queue: str, wanted: int) -> tuple[str, ...]:
    config = draft.cluster.config
    members = [node.name for node in nodes_by_name(draft.cluster).values() if queue in node.partitions]
    return draft.kind.size_for_good(queue, members, wanted, config.stack or config.name, config.region or "")


def _short_of(reached: int, wanted: int, count: Count) -> Iterable[str]:
    if reached < wanted:
        yield f"only {reached} of {wanted} can be had: {_why(count.others)}"


def _why(others: Sequence[tuple[Node, str]]) -> str:
    """Why the rest cannot be used, the same words together."""
    groups: dict[str, list[str]] = {}
    for node, why in others:
        groups.setdefault(why, []).append(node.name)
    told = [f"{short_list(names)} {why}" for why, names in list(groups.items())[:4]]
    return "; ".join(told) or "all are up"
