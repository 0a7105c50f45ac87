"""A run as lines of the audit record, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from actions.audit import process_mark
from actions.outcome import Result, StepResult
from actions.spec import Options, Plan, Scope, Undo
from actions.who import who
from cockpit.formats.hostlist import fold
from cockpit.report import iso

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

SCHEMA = 1
_MOST_FINDINGS = 200


def _head(cluster: Cluster, plan: Plan, audit_id: str, phase: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "id": audit_id,
        "phase": phase,
        "at": iso(cluster.clock.now()),
        "who": asdict(who(cluster)),
        "cluster": plan.cluster,
        "action": plan.action_id,
        "title": plan.title,
        "scope": plan.targets.scope.value,
        "targets": plan.targets.folded,
        "count": plan.count,
        "reason": plan.reason,
        "tier": plan.tier,
        "commands": [list(step.argv) for step in plan.steps],
    }


def begin(cluster: Cluster, plan: Plan, audit_id: str, confirmed: str) -> dict[str, Any]:
    """The line before the first command."""
    return _head(cluster, plan, audit_id, "begin") | {
        "confirmed": confirmed,
        "jobs": [job.label for job in plan.losing],
        "undo": [_undo_record(undo, plan.targets.scope) for undo in plan.undo],
        "process": process_mark(),
        "version": _version(),
    }


def refused(cluster: Cluster, plan: Plan, audit_id: str, text: str) -> dict[str, Any]:
    """The only line of what was not done."""
    return _head(cluster, plan, audit_id, "refused") | {"outcome": "refused", "text": text}


def end(cluster: Cluster, result: Result) -> dict[str, Any]:
    """The line after the last look."""
    looks: dict[str, list[str]] = {}
    for name, finding in result.findings.items():
        looks.setdefault(finding.look.value, []).append(name)
    scope = result.plan.targets.scope
    open_ = {name: f.text for name, f in result.findings.items() if f.look.value not in ("done", "underway")}
    return {
        "schema": SCHEMA,
        "id": result.audit_id,
        "phase": "end",
        "at": iso(cluster.clock.now()),
        "outcome": result.outcome,
        "took_s": round(result.took_s, 2),
        "text": result.text,
        "notes": list(result.notes),
        "results": [_step_record(each) for each in result.steps],
        "changed": _joined(sorted(result.changed), scope),
        "verified": {look: _joined(names, scope) for look, names in looks.items()},
        "findings": dict(list(open_.items())[:_MOST_FINDINGS]),
    }


def _step_record(result: StepResult) -> dict[str, Any]:
    return {
        "rc": result.rc,
        "took_s": round(result.took_s, 3),
        "said": result.said,
        "fault": result.fault.line() if result.fault else None,
    }


def _joined(names: list[str], scope: Scope) -> str:
    return fold(names) if scope is Scope.NODE else ",".join(names)


def _undo_record(undo: Undo, scope: Scope) -> dict[str, Any]:
    chosen = {key: value for key, value in asdict(undo.options).items() if value not in ("", False, None)}
    return {"action": undo.action_id, "names": _joined(list(undo.names), scope), "options": chosen}


def options_of(record: Mapping[str, Any]) -> Options:
    """Options as they were written; unknown ones, of a later version, are left out."""
    known = Options.__dataclass_fields__
    chosen = {key: value for key, value in record.items() if key in known}
    return replace(Options(), **chosen)


def signed(result: Result, audit_id: str, took_s: float) -> Result:
    """The result with its id in the record and its time."""
    return replace(result, audit_id=audit_id, took_s=took_s)


def noted(result: Result, note: str) -> Result:
    """The result with one more thing to tell."""
    return replace(result, notes=(*result.notes, note))


def _version() -> str:
    try:
        return version("gpu-cockpit")
    except PackageNotFoundError:
        return ""
