"""Off a bad node in one plan: the node out of service with its reason, then the job back into the queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from actions.errors import ActionError, Refusal
from actions.jobs import requeue
from actions.nodes import drain
from actions.spec import NODE_NEEDS, Offer, Options, Plan, Scope, Targets
from actions.targets import node_targets, nodes_by_name, queue_reading, records_of, short_list
from cockpit.formats.hostlist import fold
from cockpit.joins import nodes_of

if TYPE_CHECKING:
    from cockpit.cluster import Cluster


def drain_requeue(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Drain `options.nodes`, which are some of the jobs' own, then requeue the jobs; nothing is held.

    The order matters: a job that is requeued first may start on the bad node again. Raises ActionError.
    """
    nodes = _own_nodes(cluster, targets, options.nodes)
    later = requeue(cluster, targets, options)
    known = nodes_by_name(cluster)
    out = [name for name in nodes.names if known[name].state.has("drain")]
    left = tuple((name, f"is {known[name].word} already") for name in out)
    to_drain = tuple(name for name in nodes.names if name not in out)
    if not to_drain:
        return replace(later, action_id="drain-requeue", options=options, left_out=(*later.left_out, *left))
    first = drain(cluster, Targets(Scope.NODE, to_drain), options)
    return _joined(first, later, targets, options, left)


def _own_nodes(cluster: Cluster, targets: Targets, text: str) -> Targets:
    """The nodes that are named; all of them are held by one of the jobs."""
    records = [job for jobs in records_of(targets.names, queue_reading(cluster)).values() for job in jobs]
    held = tuple(dict.fromkeys(name for job in records for name in nodes_of(job.hostlist)))
    of = ", ".join(targets.names[:3])
    if not text.strip():
        its = f": {short_list(held)}" if held else ""
        raise ActionError(Refusal.USAGE, f"say which of the nodes of job {of} to drain{its}")
    named = node_targets(cluster, text)
    others = [name for name in named.names if name not in held]
    if others:
        raise ActionError(Refusal.USAGE, f"{fold(others)}: not among the nodes of job {of}; drain it by itself")
    return named


def _joined(first: Plan, later: Plan, targets: Targets, options: Options, left: tuple[tuple[str, str], ...]) -> Plan:
    """One plan out of both: the worse of the tiers, the wishes of both, and the first error ends it."""
    ended = {job.job_id for job in later.jobs}
    return replace(
        later,
        action_id="drain-requeue",
        title=f"{first.title} and {later.title}",
        targets=targets,
        options=options,
        steps=(*first.steps, *later.steps),
        tier=max(first.tier, later.tier),
        count=first.count + later.count,
        jobs=(*later.jobs, *(job for job in first.jobs if job.job_id not in ended)),
        effects=(*_unique((*first.effects, *later.effects)), "if the node cannot be drained, the job is left alone"),
        irreversible=_unique((*first.irreversible, *later.irreversible)),
        warnings=_unique((*first.warnings, *later.warnings)),
        left_out=(*first.left_out, *later.left_out, *left),
        offers=(Offer("requeue", "leaves the node in service"),),
        needs_reason=True,
        wishes=(*first.wishes, *later.wishes),
        undo=(*first.undo, *later.undo),
        needs=NODE_NEEDS,
        in_order=True,
    )


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
