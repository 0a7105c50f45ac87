"""The way back from a recorded action, as a plan of its own that runs like any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from actions.audit import Entry
from actions.errors import ActionError, Refusal
from actions.record import options_of
from actions.spec import Options, Plan, Scope, Targets
from actions.table import action
from cockpit.formats.hostlist import split_outside
from cockpit.joins import nodes_of

if TYPE_CHECKING:
    from cockpit.cluster import Cluster


def undo_of(entry: Entry, cluster: Cluster) -> Plan:
    """The plan that takes back what an action has changed; waits for the head.

    Raises ActionError when there is no way back or nothing is left to take back, FaultError as planning does.
    """
    begin = entry.begin
    if begin.get("cluster") != cluster.config.name:
        raise ActionError(Refusal.USAGE, f"{entry.id} was done on {begin.get('cluster')}: name that --cluster")
    if begin.get("phase") == "refused":
        raise ActionError(Refusal.REFUSED, f"{entry.id} was refused: there is nothing to take back")
    if entry.outcome == "running":
        raise ActionError(Refusal.REFUSED, f"{entry.id} still runs")
    parts, whys = _parts(entry, cluster)
    if not parts:
        why = "; ".join(whys) or f"there is no way back from {begin.get('action')}"
        raise ActionError(Refusal.REFUSED, f"{entry.id}: {why}")
    return replace(_merged(entry, parts), again=lambda: undo_of(entry, cluster))


def _parts(entry: Entry, cluster: Cluster) -> tuple[list[Plan], list[str]]:
    plans: list[Plan] = []
    whys: list[str] = []
    scope = Scope(str(entry.begin.get("scope", "node")))
    for undo in _records(entry.begin, "undo"):
        names = _names(undo.get("names"), scope)
        if entry.end is not None:
            done = set(_names(entry.end.get("changed"), scope))
            names = tuple(name for name in names if name in done)
        if not names:
            whys.append("nothing was changed")
            continue
        options = options_of(_mapping(undo.get("options")))
        if undo.get("action") == "quarantine":
            options = replace(options, reason=str(entry.begin.get("reason") or f"undo of {entry.id}"))
        try:
            back = action(str(undo.get("action")))
            plans.append(back.plan(cluster, Targets(back.scope, names), options))
        except ActionError as error:
            if error.kind is not Refusal.REFUSED:
                raise
            whys.append(str(error))
        except KeyError:
            whys.append(f"this version knows no action {undo.get('action')!r}")
    return plans, whys


def _merged(entry: Entry, parts: list[Plan]) -> Plan:
    """One plan out of several: all of their steps, the highest of their tiers."""
    first = parts[0]
    targets = Targets(first.targets.scope, _unique(name for part in parts for name in part.targets.names))
    jobs = tuple({job.job_id: job for part in parts for job in part.jobs}.values())
    return replace(
        first,
        action_id="undo",
        title=f"undo {entry.id} ({entry.begin.get('title')}): {'; '.join(part.title for part in parts)}",
        targets=targets,
        options=Options(),
        tier=max(part.tier for part in parts),
        count=sum(part.count for part in parts),
        steps=tuple(step for part in parts for step in part.steps),
        jobs=jobs,
        effects=_unique(text for part in parts for text in part.effects),
        irreversible=_unique(text for part in parts for text in part.irreversible),
        warnings=_unique(text for part in parts for text in part.warnings),
        left_out=tuple(each for part in parts for each in part.left_out),
        offers=(),
        needs_reason=False,
        reason="; ".join(_unique(part.reason for part in parts if part.reason)),
        wishes=tuple(wish for part in parts for wish in part.wishes),
        undo=tuple(undo for part in parts for undo in part.undo),
        needs=tuple(dict.fromkeys(source for part in parts for source in part.needs)),
        strict=any(part.strict for part in parts),
        # Other things in one undo rest on each other: no reservation ends before what it held is drained.
        in_order=any(part.in_order for part in parts) or len({part.action_id for part in parts}) > 1,
    )


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _names(text: object, scope: Scope) -> tuple[str, ...]:
    if not isinstance(text, str) or not text:
        return ()
    return nodes_of(text) if scope is Scope.NODE else tuple(split_outside(text))


def _records(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = record.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
