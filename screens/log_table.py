"""The log pane: changes made or refused, faults of sources, complaints of the head's daemons; newest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from actions.audit import UNKNOWN
from actions.audit_lines import entry_record
from cockpit.cluster import Cluster, View
from cockpit.formats.hostlist import fold
from cockpit.models import Health
from cockpit.report import iso
from cockpit.sources.base import SourceKey
from cockpit.text import printable
from cockpit.words import moment, span
from screens.details.node_instance import event_words
from screens.grid_model import Cell, Column
from screens.log_book import LogBook, LogRow, log_book
from screens.pane_spec import PaneSpec
from themes import state_token

# No source of the store: the record on the disk is never stale.
LOG: SourceKey[tuple[LogRow, ...]] = SourceKey("log")
_HEALTH = {
    "ok": Health.OK,
    "running": Health.OK,
    "failed": Health.CRITICAL,
    "refused": Health.UNKNOWN,
    "cancelled": Health.WARN,
    "unverified": Health.WARN,
    UNKNOWN: Health.WARN,
}
_WORDS = {"cancelled": "stopped", "unverified": "not seen", UNKNOWN: "unknown"}


@dataclass(frozen=True, slots=True)
class LogTable:
    """Columns and filter fields over lines of the log; `now` is the time on our own clock."""

    now: Callable[[], float]

    def columns(self) -> tuple[Column[LogRow], ...]:
        """Every column, in order; the narrowest screen keeps when, what came of it, what was done and to what."""
        return (
            Column("when", "when", self._when, lambda r: r.at, 5, 12, down_first=True, live=True),
            Column("outcome", "outcome", _outcome, outcome_word, 7, 10),
            Column("action", "action", action_word, action_word, 6, 13),
            Column("targets", "on", targets, targets, 8, 36, cut=True, note="nodes, jobs, queue or source"),
            Column("who", "who", who, who, 4, 24, drop=2, cut=True, note="who was at the keyboard"),
            Column("took", "took", lambda r: span(took_s(r)), took_s, 4, 6, "right", drop=3, live=True,
                   note="or how long it failed"),
            Column("reason", "reason, or what came of it", _why, None, 22, 120, drop=1, cut=True),
            Column("id", "id", lambda r: r.entry.id if r.entry else "", None, 20, 24, wide=True, note="in the audit"),
        )  # fmt: skip

    def fields(self) -> Mapping[str, Callable[[LogRow], str]]:
        """What `field:value` in a filter may name."""
        return {
            "outcome": lambda r: f"{outcome_word(r)} {r.outcome}",
            "action": action_word,
            "on": targets,
            "who": who,
            "reason": lambda r: f"{reason(r)} {text(r)}",
            "id": lambda r: r.key,
        }

    def _when(self, row: LogRow) -> Cell:
        return moment(row.at, self.now()) if row.at else "?"


def health(row: LogRow) -> Health:
    """How it ended; a fault that is over is nothing to look at."""
    if row.trouble is not None:
        return Health.CRITICAL if row.trouble.over_at is None else Health.OK
    if row.event is not None:
        return row.event.health
    return _HEALTH.get(row.outcome, Health.WARN)


def outcome_word(row: LogRow) -> str:
    """One word: done, failed, refused, stopped, not seen, running, unknown; failing or over (a fault); event."""
    if row.event is not None:
        return "event"
    if row.trouble is not None:
        return "failing" if row.trouble.over_at is None else "over"
    return printable(_WORDS.get(row.outcome, row.outcome))


def _outcome(row: LogRow) -> Cell:
    token = "accent" if row.outcome == "running" else state_token(health(row))
    return outcome_word(row), token


def action_word(row: LogRow) -> str:
    """What was done; of a fault, that it is one of a source; of an event, who told it."""
    if row.event is not None:
        return printable(row.event.source)
    return _text(row, "action") if row.entry is not None else "source"


def targets(row: LogRow) -> str:
    """The nodes, jobs or queue; the name of the source."""
    if row.event is not None:
        return printable(fold(row.event.nodes))
    return printable(row.trouble.source) if row.trouble is not None else _text(row, "targets")


def who(row: LogRow) -> str:
    """Whoever sat at the keyboard."""
    person = row.entry.begin.get("who") if row.entry is not None else None
    return printable(f"{person.get('user')}@{person.get('host')}") if isinstance(person, dict) else ""


def took_s(row: LogRow) -> float | None:
    """How long it took, or how long a source failed."""
    if row.trouble is not None:
        return (row.trouble.over_at or row.trouble.last_at) - row.trouble.since
    return row.entry.took_s if row.entry is not None else None


def reason(row: LogRow) -> str:
    """The operator's words."""
    return _text(row, "reason")


def text(row: LogRow) -> str:
    """What came of it, in a sentence."""
    if row.event is not None:
        return event_words(row.event)
    if row.trouble is not None:
        return printable(f"{row.trouble.fault.what}: {row.trouble.fault.why}")
    return printable(str((row.entry.end or {}).get("text") or "")) if row.entry is not None else ""


def _why(row: LogRow) -> Cell:
    words = reason(row)
    return (words, "") if words and health(row) is Health.OK else (text(row) or words, "dim")


def _text(row: LogRow, key: str) -> str:
    return printable(str(row.entry.begin.get(key) or "")) if row.entry is not None else ""


def record(row: LogRow) -> dict[str, Any]:
    """The whole line, for exports."""
    if row.entry is not None:
        return {"kind": "change", **entry_record(row.entry)}
    if row.event is not None:
        return {"kind": "event", **asdict(row.event), "at": iso(row.at), "health": row.event.health.value}
    assert row.trouble is not None
    trouble = row.trouble
    return {
        "kind": "fault",
        "source": trouble.source,
        "since": iso(trouble.since),
        "last_at": iso(trouble.last_at),
        "over_at": iso(trouble.over_at) if trouble.over_at is not None else None,
        "polls": trouble.polls,
        **{key: str(getattr(value, "value", value)) for key, value in asdict(trouble.fault).items()},
    }


def log_spec(cluster: Cluster) -> PaneSpec:
    """The log of a cluster as a pane."""
    book, table = log_book(cluster), LogTable(cluster.clock.now)
    return PaneSpec(
        id="log",
        kind="log",
        source=LOG,
        rows=lambda view: book.rows() or (),
        key=lambda row: row.key,
        health=health,
        columns=table.columns(),
        fields=table.fields(),
        record=record,
        copied=lambda keys: _copied(book, keys),
        empty=lambda view: _empty(book, view),
    )


def _copied(book: LogBook, keys: Sequence[str]) -> str:
    """Each line as one pastes it into a channel."""
    found = [row for row in (book.row(key) for key in keys) if row is not None]
    return "\n".join(
        " · ".join(word for word in (iso(row.at), outcome_word(row), who(row), _title(row), reason(row)) if word)
        for row in found
    )


def _title(row: LogRow) -> str:
    return (_text(row, "title") or action_word(row)) if row.entry is not None else text(row)


def _empty(book: LogBook, view: View) -> str:
    if book.rows() is None:
        return "reading the record …"
    return (
        f"the record cannot be read: {book.fault}"
        if book.fault
        else "nothing was changed from here, no source has failed, and no daemon of the head complained"
    )
