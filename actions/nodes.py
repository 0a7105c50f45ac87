"""Nodes out of service and back: drain, resume, down, reboot, replace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from actions import blast
from actions.draft import REASON, Draft
from actions.errors import ActionError, Refusal
from actions.node_wishes import Down, Drained, HandedOver, InService, Rebooted, Renewed
from actions.rights import site_now
from actions.spec import COUNTED, NAMED, NODE_NEEDS, UNDONE_EASILY, Context, Offer, Options, Plan, Targets, Undo, Wish
from actions.targets import host_batches, known_nodes, nodes_by_name, short_list
from cockpit.formats.hostlist import fold
from cockpit.formats.scontrol import version_of
from cockpit.kinds.base import StateChange
from cockpit.models import Node
from cockpit.words import span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

NEEDS = NODE_NEEDS
_SLACK_S = 90.0  # the power-save pass and clustermgtd's loop come on top of what Slurm itself waits
_RESUMABLE = ("drain", "fail", "reboot_requested", "power_down")
Left = list[tuple[str, str]]


def drain(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Take nodes out of service; their jobs run on."""
    draft = Draft(cluster, "drain", targets, options)
    go, left = sorted_out(cluster, targets, _already_drained)
    names = [node.name for node in go]
    for hosts, some in host_batches(names):
        draft.admin(f"drain {hosts}", ["update", f"nodename={hosts}", "state=drain", REASON], some)
    fates = _fates(names, draft.kind.fate_of_drained)
    return draft.plan(
        f"drain {fold(names)}",
        tier=COUNTED,
        count=len(names),
        needs=NEEDS,
        needs_reason=True,
        jobs=blast.touched(cluster, blast.jobs_on(cluster, names), "runs on to its end", loses=False),
        effects=("no new job starts there; running ones go on", *fates),
        irreversible=("the instances and what lies on their own disks, once their jobs have ended",) if fates else (),
        offers=(Offer("quarantine", "keeps the node and its instance as they are, without new jobs"),) if fates else (),
        left_out=tuple(left),
        wishes=(Drained(tuple(names), _in_state(go, ("down",), "powering_down", "power_down")),),
        undo=(Undo("resume", tuple(names)),),
    )


def _in_state(nodes: Iterable[Node], bases: Collection[str], *flags: str) -> tuple[str, ...]:
    return tuple(node.name for node in nodes if node.state.base in bases or node.state.has(*flags))


def _already_drained(node: Node, cluster: Cluster) -> str:
    if not node.state.has("drain"):
        return ""
    return f"is {node.word} already{_told(node, cluster)}"


def _told(node: Node, cluster: Cluster) -> str:
    """By whom, when and why a node is out of service, as far as Slurm tells."""
    if not node.reason:
        return ""
    at = f" {span(cluster.head_now() - node.reason_at)} ago" if node.reason_at is not None else ""
    return f" (by {node.reason_by or 'Slurm'}{at}: {node.reason})"


def resume(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Put nodes back into service, and say why they were out of it."""
    draft = Draft(cluster, "resume", targets, options)
    go, left = sorted_out(cluster, targets, _needs_no_resume)
    names = [node.name for node in go]
    for hosts, some in host_batches(names):
        draft.admin(f"resume {hosts}", ["update", f"nodename={hosts}", "state=resume"], some)
    return draft.plan(
        f"resume {fold(names)}",
        tier=UNDONE_EASILY,
        count=len(names),
        needs=NEEDS,
        effects=tuple(f"{node.name} is {node.word}{_told(node, cluster)}" for node in go),
        warnings=tuple(_resume_warnings(go)),
        left_out=tuple(left),
        wishes=(InService(tuple(names)),),
        undo=tuple(drained_again(go)),
    )


def resume_why(ctx: Context) -> str | None:
    """Why there is nothing to resume among what is marked."""
    names = set(ctx.targets.names) if ctx.targets is not None else set()
    marked = [node for node in ctx.cluster.view.nodes or () if node.name in names]
    out = [node for node in marked if not _needs_no_resume(node, ctx.cluster)]
    return f"{marked[0].name} is {marked[0].word}" if marked and not out else None


def _needs_no_resume(node: Node, _: Cluster) -> str:
    out = node.state.base in ("down", "error") or node.state.has(*_RESUMABLE)
    return "" if out else f"is {node.word}: it needs no resume"


def _resume_warnings(nodes: Iterable[Node]) -> Iterable[str]:
    for node in nodes:
        if node.state.has("invalid_reg"):
            yield f"{node.name} registered less than is configured; Slurm refuses to resume it until that is mended"
        elif node.state.has("not_responding") and not node.state.has("powered_down"):
            yield f"{node.name} does not answer: it takes work only once its slurmd registers"


def drained_again(nodes: Iterable[Node]) -> Iterable[Undo]:
    """What was drained, with the reason that it had; nodes of the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for node in nodes:
        if node.state.has("drain") and node.reason:
            by_reason.setdefault(node.reason, []).append(node.name)
    return (Undo("drain", tuple(names), Options(reason=why, verbatim=True)) for why, names in by_reason.items())


def down(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Declare nodes dead: their jobs are killed at once."""
    draft = Draft(cluster, "down", targets, options)
    go, left = sorted_out(cluster, targets, lambda node, _: "is down already" if node.state.base == "down" else "")
    names = [node.name for node in go]
    for hosts, some in host_batches(names):
        draft.admin(f"set {hosts} down", ["update", f"nodename={hosts}", "state=down", REASON], some)
    fates = _fates(names, draft.kind.fate_of_drained)
    return draft.plan(
        f"set {fold(names)} down",
        tier=NAMED,
        count=len(names),
        needs=NEEDS,
        needs_reason=True,
        strict=True,
        jobs=blast.killed(cluster, blast.jobs_on(cluster, names)),
        effects=("their jobs are killed on all of their nodes", *fates),
        irreversible=("the work of the killed jobs",),
        warnings=("a node whose slurmd lives may come back by itself (ReturnToService): drain keeps it out",),
        left_out=tuple(left),
        wishes=(Down(tuple(names), _in_state(go, (), "powering_down", "powered_down")),),
        undo=(Undo("resume", tuple(names)),),
    )


def reboot(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Reboot nodes once their jobs have ended, and put them back into service."""
    draft = Draft(cluster, "reboot", targets, options)
    go, left = sorted_out(cluster, targets, _no_machine)
    names = [node.name for node in go]
    own = draft.kind.reboot(names[0])
    site = site_now(cluster)
    if own is not None:
        _change(draft, own, names, f"have {short_list(names)} rebooted")
    else:
        for hosts, some in host_batches(names):
            args = ["reboot", "asap", "nextstate=resume", REASON, hosts]
            draft.admin(f"reboot {hosts} when its jobs have ended", args, some)
    warning = draft.kind.reboot_warning(version_of(site.version))
    effect = own.fate if own else "no new job starts there; each node reboots when its jobs have ended, then serves"
    wish: Wish = HandedOver(tuple(names), own.reason) if own else Rebooted(tuple(names), _boot_s(site.resume_timeout_s))
    return draft.plan(
        f"reboot {fold(names)}",
        tier=NAMED,
        count=len(names),
        needs=NEEDS,
        needs_reason=True,
        strict=True,
        jobs=blast.touched(
            cluster, blast.jobs_on(cluster, names), "runs on to its end, then its nodes reboot", loses=False
        ),
        effects=(effect,),
        irreversible=("what lies in memory and on a node's own scratch disks may be gone after the reboot",),
        warnings=(warning,) if warning else (),
        left_out=tuple(left),
        wishes=(wish,),
        undo=() if own else (Undo("cancel-reboot", tuple(names)),),
    )


def _no_machine(node: Node, _: Cluster) -> str:
    if node.state.has("powered_down", "powering_down", "powering_up"):
        return f"is {node.word}: there is nothing to reboot"
    return "a reboot is asked for already" if node.state.has("reboot_requested", "reboot_issued") else ""


def cancel_reboot(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Take back a reboot that was not issued yet."""
    draft = Draft(cluster, "cancel-reboot", targets, options)
    go, left = sorted_out(cluster, targets, _no_reboot)
    names = [node.name for node in go]
    for hosts, some in host_batches(names):
        draft.admin(f"cancel the reboot of {hosts}", ["cancel_reboot", hosts], some)
    return draft.plan(
        f"cancel the reboot of {fold(names)}",
        tier=UNDONE_EASILY,
        count=len(names),
        needs=NEEDS,
        effects=("the nodes take work again",),
        left_out=tuple(left),
        wishes=(InService(tuple(names)),),
    )


def _no_reboot(node: Node, _: Cluster) -> str:
    if node.state.has("reboot_issued"):
        return "reboots already"
    return "" if node.state.has("reboot_requested") else "has no reboot to cancel"


def replace(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Give nodes a new instance: after their jobs, or now."""
    draft = Draft(cluster, "replace", targets, options)
    known = nodes_by_name(cluster)
    changes = {name: _replacement(draft, known[name], options) for name in known_nodes(cluster, targets.names)}
    left = [(name, change) for name, change in changes.items() if isinstance(change, str)]
    groups: dict[StateChange, list[str]] = {}
    for name, change in changes.items():
        if isinstance(change, StateChange):
            groups.setdefault(change, []).append(name)
    names = [name for some in groups.values() for name in some]
    some_left(names, left)
    for change, some in groups.items():
        _change(draft, change, some, f"replace {short_list(some)}")
    jobs = blast.jobs_on(cluster, names)
    after = blast.touched(cluster, jobs, "runs on to its end, then its nodes are replaced", loses=False)
    return draft.plan(
        f"replace {fold(names)}{' now' if options.now else ''}",
        tier=NAMED,
        count=len(names),
        needs=NEEDS,
        needs_reason=True,
        strict=True,
        jobs=blast.killed(cluster, jobs) if options.now else after,
        effects=tuple(f"{short_list(some)}: {change.fate}" for change, some in groups.items()),
        irreversible=(
            "the instance and everything on its own disks; a new one may come from the same physical host",
            *(("the work of the killed jobs",) if options.now and jobs else ()),
        ),
        offers=(Offer("quarantine", "keeps the instance for whoever looks for the cause"),),
        left_out=tuple(left),
        wishes=tuple(_replaced(draft, groups)),
    )


def _replacement(draft: Draft, node: Node, options: Options) -> StateChange | str:
    """How this node is replaced, or why it is not."""
    if node.state.has("powered_down", "powering_down"):
        return f"is {node.word}: it has no instance"
    change = draft.kind.replacement(node.name, cloud=node.state.has("cloud"), now=options.now)
    return change or "is no cloud node: nobody here replaces its instance; reboot or drain it"


def _replaced(draft: Draft, groups: dict[StateChange, list[str]]) -> Iterable[Wish]:
    site = site_now(draft.cluster)
    for change, some in groups.items():
        if change.reason:
            yield HandedOver(tuple(some), change.reason)
        else:
            back = change.state == "drain" or any(draft.kind.origin(name) == "static" for name in some)
            seconds = _boot_s(site.resume_timeout_s) if back else _down_s(site.suspend_timeout_s)
            yield Renewed(tuple(some), seconds, back)


def _change(draft: Draft, change: StateChange, names: Sequence[str], title: str) -> None:
    """The steps of a state change; the operator's words go along where the kind leaves room for them."""
    reason = [f"reason={change.reason}"] if change.reason else [REASON] if change.takes_reason else []
    for hosts, some in host_batches(list(names)):
        draft.admin(title, ["update", f"nodename={hosts}", f"state={change.state}", *reason], some)


def _boot_s(resume_timeout_s: float | None) -> float:
    return (resume_timeout_s or 0.0) + _SLACK_S


def _down_s(suspend_timeout_s: float | None) -> float:
    return (suspend_timeout_s or 0.0) + _SLACK_S


def sorted_out(cluster: Cluster, targets: Targets, why_not: Callable[[Node, Cluster], str]) -> tuple[list[Node], Left]:
    """The nodes that the action is for, and the others with the reason; raises ActionError when none is left."""
    known = nodes_by_name(cluster)
    go: list[Node] = []
    left: Left = []
    for name in known_nodes(cluster, targets.names):
        why = why_not(known[name], cluster)
        if why:
            left.append((name, why))
        else:
            go.append(known[name])
    some_left(go, left)
    return go, left


def some_left(go: Sequence[object], left: Left) -> None:
    if not go:
        shown = "; ".join(f"{name} {why}" for name, why in left[:5])
        more = f"; and {len(left) - 5} more" if len(left) > 5 else ""
        raise ActionError(Refusal.REFUSED, f"nothing to do: {shown}{more}")


def _fates(names: Sequence[str], fate_of: Callable[[str], str]) -> tuple[str, ...]:
    """What becomes of the instances, each sentence with the nodes that it is about."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(fate_of(name), []).append(name)
    return tuple(f"{short_list(some)}: {fate}" for fate, some in groups.items() if fate)
