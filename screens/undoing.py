"""The way back as a plan dialog: of one recorded action, or of the last that has one. Imports no Textual."""

from __future__ import annotations

import time
from collections.abc import Iterable

from actions.audit import AuditError, AuditLog, Entry
from actions.errors import ActionError, Refusal
from actions.spec import NODE_NEEDS, Options, Plan
from cockpit.cluster import Cluster
from screens.question import Question

NEWS_S = 10.0


def undo_question(cluster: Cluster, log: AuditLog, audit_id: str = "") -> Question:
    """The record is read when the plan is made, on its thread: a home directory may hang."""

    def make(_: Options) -> Plan:
        from actions.undo import undo_of

        wait_for_news(cluster)
        return undo_of(_entry(log, audit_id), cluster)

    return Question(f"undo {audit_id}".strip(), make)


def wait_for_news(cluster: Cluster) -> None:
    """Read nodes and queue again: what was changed a moment ago may not be known yet, and is what is taken back."""
    asked_at, until = cluster.clock.steady(), time.monotonic() + NEWS_S
    cluster.refresh()
    while time.monotonic() < until:
        if all(cluster.store.state(source).good_at > asked_at for source in NODE_NEEDS):
            return
        time.sleep(0.05)


def _entry(log: AuditLog, audit_id: str) -> Entry:
    try:
        entries = log.entries()
    except AuditError as error:
        raise ActionError(Refusal.UNREACHED, str(error)) from error
    if audit_id:
        entry = next((entry for entry in entries if entry.id == audit_id), None)
        missing = f"the record has no action {audit_id}"
    else:
        entry = last_undoable(entries)
        missing = "nothing that was changed from here has a way back"
    if entry is None:
        raise ActionError(Refusal.REFUSED, missing)
    return entry


def last_undoable(entries: Iterable[Entry]) -> Entry | None:
    """The last that changed something, has a way back and was not taken back already; undoing is not undone by it."""
    last: Entry | None = None
    known = list(entries)
    taken_back = {_undone(entry) for entry in known if entry.begin.get("action") == "undo" and _did(entry)}
    for entry in known:
        if entry.begin.get("undo") and entry.begin.get("action") != "undo" and _did(entry):
            last = entry if entry.id not in taken_back else last
    return last


def can_undo(entry: Entry) -> bool:
    """True for what changed something and has a way back."""
    return bool(entry.begin.get("undo")) and _did(entry)


def _did(entry: Entry) -> bool:
    if entry.begin.get("phase") == "refused" or entry.outcome == "running":
        return False
    return entry.end is None or bool(entry.end.get("changed"))


def _undone(entry: Entry) -> str:
    """`undo 20251130-105320-3f9a (drain ...)`: which action that took back."""
    words = str(entry.begin.get("title", "")).split(" ")
    return words[1] if len(words) > 1 else ""
