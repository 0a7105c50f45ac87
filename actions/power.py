"""Nodes kept up although they are idle (SuspendExcNodes), and let go again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actions.draft import Draft
from actions.errors import ActionError, Refusal
from actions.looks import kept_up
from actions.node_wishes import KeptUp
from actions.nodes import NEEDS, sorted_out
from actions.rights import site_now
from actions.spec import UNDONE_EASILY, Options, Plan, Targets, Undo
from actions.targets import host_batches
from cockpit.formats.hostlist import fold
from cockpit.formats.scontrol import version_of
from cockpit.models import Node, SlurmSite
from cockpit.words import span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.cluster import Cluster

LOST = "it is lost when slurmctld restarts or reads its configuration anew"


def cannot_keep(site: SlurmSite) -> str:
    """Why nodes cannot be kept up at run time; "" when they can."""
    if version_of(site.version) >= (23, 2, 0):
        return ""
    return f"Slurm {site.version or 'of this version'} cannot change SuspendExcNodes at run time (23.02 and later can)"


def idles_for(site: SlurmSite) -> str:
    """How long an idle node lives."""
    if site.suspend_time_s is None:
        return "idle nodes never power down here (SuspendTime)"
    return f"without a job they power down again after {span(site.suspend_time_s)} (SuspendTime)"


def keep_step(draft: Draft, names: Sequence[str], *, there: bool) -> None:
    """Pin the nodes, or let them go."""
    for hosts, some in host_batches(list(names)):
        sign, title = ("+", "keep {} up when idle") if there else ("-", "let {} power down when idle")
        draft.admin(title.format(hosts), ["update", f"SuspendExcNodes{sign}={hosts}"], some)


def pin(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Keep nodes up however long they idle."""
    draft = Draft(cluster, "pin", targets, options)
    site = site_now(cluster)
    if why := cannot_keep(site):
        raise ActionError(Refusal.REFUSED, why)
    kept = kept_up(cluster)
    go, left = sorted_out(cluster, targets, lambda node, _: _needs_no_pin(node, kept))
    names = tuple(node.name for node in go)
    keep_step(draft, names, there=True)
    return draft.plan(
        f"keep {fold(names)} up",
        tier=UNDONE_EASILY,
        count=len(names),
        needs=NEEDS,
        effects=(f"they cost money until they are let go again (unpin); {LOST}",),
        left_out=tuple(left),
        wishes=(KeptUp(names),),
        undo=(Undo("unpin", names),),
    )


def _needs_no_pin(node: Node, kept: frozenset[str]) -> str:
    if node.name in kept:
        return "is kept up already"
    return "" if node.state.has("cloud") else "never powers down: it is no cloud node"


def unpin(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Let nodes power down again when they idle."""
    draft = Draft(cluster, "unpin", targets, options)
    site = site_now(cluster)
    if why := cannot_keep(site):
        raise ActionError(Refusal.REFUSED, why)
    kept = kept_up(cluster)
    go, left = sorted_out(cluster, targets, lambda node, _: _not_pinned(draft, node, kept))
    names = tuple(node.name for node in go)
    keep_step(draft, names, there=False)
    return draft.plan(
        f"let {fold(names)} power down",
        tier=UNDONE_EASILY,
        count=len(names),
        needs=NEEDS,
        effects=(idles_for(site),),
        left_out=tuple(left),
        wishes=(KeptUp(names, there=False),),
        undo=(Undo("pin", names),),
    )


def _not_pinned(draft: Draft, node: Node, kept: frozenset[str]) -> str:
    if draft.kind.origin(node.name) == "static":
        return "is static: it is always kept up"
    return "" if node.name in kept else "is not kept up"
