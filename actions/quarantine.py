"""A bad node kept as it is for whoever looks for the cause: no new jobs, no replacement, no powering down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actions import blast
from actions.audit import AuditError, AuditLog
from actions.draft import REASON, Draft
from actions.errors import ActionError, Refusal
from actions.looks import kept_up, reservations
from actions.node_wishes import KeptUp, Reserved
from actions.nodes import NEEDS, drained_again, sorted_out
from actions.power import LOST, cannot_keep, keep_step
from actions.rights import site_now
from actions.spec import COUNTED, UNDONE_EASILY, Options, Plan, Targets, Undo, Wish
from actions.targets import host_batches
from cockpit.formats.hostlist import fold
from cockpit.models import Node

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from cockpit.cluster import Cluster
    from cockpit.kinds import Kind

MOST = 32  # a reservation each; more than that is no look at a bad node any more
_PREFIX = "cockpit-"
_DRAINING_EVENTS = frozenset(
    {"instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"}
)


def reservation_of(node: str) -> str:
    """The name of the reservation that quarantines a node: one each, so that each can be let go alone."""
    return f"{_PREFIX}{node}"


def quarantine(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Reserve nodes for the operator; on a kind that replaces drained nodes this is how one is kept."""
    draft = Draft(cluster, "quarantine", targets, options)
    known = reservations(cluster)
    go, left = sorted_out(cluster, targets, lambda node, _: _not_to_keep(node, known, draft.kind))
    names = tuple(node.name for node in go)
    if len(names) > MOST:
        raise ActionError(Refusal.USAGE, f"{len(names)} nodes at once; {MOST} at most")
    pinned = _to_pin(draft, go)
    keep_step(draft, pinned, there=True)
    users = ",".join(dict.fromkeys(("root", draft.rights.user or "root")))
    for name in names:
        _reserve(draft, name, users)
    drained = [node for node in go if node.state.has("drain") and draft.kind.fate_of_drained(node.name)]
    undrained = tuple(node.name for node in drained)
    for hosts, some in host_batches(undrained):
        draft.admin(
            f"undrain {hosts}, so that it is not replaced", ["update", f"nodename={hosts}", "state=undrain"], some
        )
    for hosts, some in host_batches(names):
        draft.admin(f"note why on {hosts}", ["update", f"nodename={hosts}", REASON], some)
    wishes: tuple[Wish, ...] = (Reserved(names, tuple((name, reservation_of(name)) for name in names)),)
    return draft.plan(
        f"quarantine {fold(names)}",
        tier=COUNTED,
        count=len(names),
        needs=NEEDS,
        needs_reason=True,
        jobs=blast.touched(cluster, blast.jobs_on(cluster, names), "runs on to its end", loses=False),
        effects=(
            "no new job starts there and the instance stays as it is, for a year or until it is let go (unquarantine)",
            f"to try something there: srun --reservation={reservation_of(names[0])} as {users.replace(',', ' or ')}",
            *((f"{', '.join(pinned)} is kept up when idle; {LOST}",) if pinned else ()),
            *((f"{fold(undrained)} is drained no longer: when the quarantine ends it serves",) if undrained else ()),
        ),
        warnings=tuple(_replaced_all_the_same(cluster, draft.kind, names)),
        left_out=tuple(left),
        wishes=(*wishes, *((KeptUp(pinned),) if pinned else ())),
        undo=(*drained_again(drained), Undo("unquarantine", names)),  # drained first: no job starts in between
    )


def _replaced_all_the_same(cluster: Cluster, kind: Kind, names: Iterable[str]) -> Iterable[str]:
    """What clustermgtd drains by itself for what EC2 tells of the instance."""
    for name in names:
        instance = cluster.view.instance_of_node.get(name)
        checks = instance.checks if instance else None
        if checks is None or not kind.fate_of_drained(name):
            continue
        bad = [f"EC2's {word} status check fails" for word in checks.impaired if word in ("system", "instance")]
        bad += [f"EC2 has planned {event.code}" for event in checks.events if event.code in _DRAINING_EVENTS]
        if bad:
            yield f"{name}: {' and '.join(bad)}: {kind.title} drains and replaces it for that, reserved or not"


def _not_to_keep(node: Node, known: Collection[str], kind: Kind) -> str:
    if reservation_of(node.name) in known:
        return "is in quarantine already"
    if node.state.has("powered_down", "powering_down"):
        return f"is {node.word}: it has no instance to keep"
    if node.state.base == "down" and kind.fate_of_drained(node.name):
        return f"is down: {kind.title} replaces it within about a minute, reserved or not"
    return ""


def _to_pin(draft: Draft, nodes: Sequence[Node]) -> tuple[str, ...]:
    """The nodes that would power down when idle; says so where this Slurm cannot help it."""
    kept = kept_up(draft.cluster)
    idle = [
        node.name
        for node in nodes
        if node.state.has("cloud") and node.name not in kept and draft.kind.origin(node.name) != "static"
    ]
    site = site_now(draft.cluster)
    if not idle or site.suspend_time_s is None:
        return ()
    if why := cannot_keep(site):
        draft.warnings.append(f"{', '.join(idle)} may power down once idle: {why}")
        return ()
    return tuple(idle)


def _reserve(draft: Draft, name: str, users: str) -> None:
    args = [
        "create",
        "reservation",
        f"reservationname={reservation_of(name)}",
        "starttime=now",
        "duration=infinite",
        f"nodes={name}",
        f"users={users}",
        f"flags={draft.kind.quarantine_flags()}",
    ]
    draft.operator(f"reserve {name}", args, (name,))


def _pinned_here(cluster: Cluster) -> frozenset[str]:
    try:
        return AuditLog(cluster.config.name).pinned_by("quarantine")
    except AuditError:
        return frozenset()


def _serving_again(nodes: Sequence[Node]) -> Iterable[str]:
    drained = [node.name for node in nodes if node.state.has("drain", "fail")]
    if len(drained) < len(nodes):
        yield "new jobs start there again"
    if drained:
        yield f"{fold(drained)} stays drained: `resume` puts it back into service"


def unquarantine(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Give quarantined nodes back to everybody."""
    draft = Draft(cluster, "unquarantine", targets, options)
    known = reservations(cluster)
    go, left = sorted_out(
        cluster, targets, lambda node, _: "" if reservation_of(node.name) in known else "is not in quarantine"
    )
    names = tuple(node.name for node in go)
    for name in names:
        draft.operator(f"end the reservation of {name}", ["delete", f"reservationname={reservation_of(name)}"], (name,))
    kept = kept_up(cluster)
    ours = _pinned_here(cluster)
    # Only what a quarantine of ours pinned: others may have had a reason of their own to keep a node up.
    pinned = tuple(name for name in names if name in kept and name in ours)
    keep_step(draft, pinned, there=False)
    others = [name for name in names if name in kept and name not in pinned and draft.kind.origin(name) != "static"]
    wishes: tuple[Wish, ...] = (Reserved(names, tuple((name, reservation_of(name)) for name in names), there=False),)
    return draft.plan(
        f"end the quarantine of {fold(names)}",
        tier=UNDONE_EASILY,
        count=len(names),
        needs=NEEDS,
        effects=tuple(_serving_again(go)),
        warnings=tuple(f"{name} stays up when idle, as somebody else asked for: unpin ends that" for name in others),
        left_out=tuple(left),
        wishes=(*wishes, *((KeptUp(pinned, there=False),) if pinned else ())),
        undo=(Undo("quarantine", names),),
    )
