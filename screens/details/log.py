"""What the details of a line of the log say: a change with every command, a fault, an event. No Textual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actions.audit import UNKNOWN, Entry
from actions.plan_lines import command
from cockpit.cluster import Cluster
from cockpit.event_models import ClusterEvent
from cockpit.formats.hostlist import split_outside
from cockpit.joins import nodes_of
from cockpit.models import Health
from cockpit.text import printable
from cockpit.words import plural, span, stamp
from screens import log_table
from screens.lines import Line, Link, Subject, fact, facts, section
from screens.log_book import LogRow, log_book
from screens.undoing import can_undo
from screens.waiting import failing_facts
from themes import state_token

MOST_LINKS = 12


def log_lines(cluster: Cluster, key: str) -> list[Line]:
    """Everything known of a line of the log."""
    row = log_book(cluster).row(key)
    if row is None:
        return [["the log has no such line (any more)"]]
    if row.event is not None:
        return _event(row.event, log_table.health(row))
    return _fault(cluster, row) if row.entry is None else _change(row, row.entry)


_MEANINGS = {
    "ok": "Everything was sent, and Slurm was seen to be as wished.",
    "failed": "Something was refused, or will not come true by waiting; what is listed below is not as wished.",
    "unverified": "It was sent, but not seen to be true before the time was up. It may be true by now: look.",
    "cancelled": "Somebody stopped it: what was sent was done, the rest was not.",
    "refused": "Nothing was sent: read-only, old data, not confirmed, or the cluster had changed.",
    "running": "It still runs, here or in another cockpit.",
    UNKNOWN: "The cockpit that ran it was killed before it could write the end: look at the cluster.",
}


def explain_log(cluster: Cluster, key: str) -> list[Line]:
    """What its outcome means, before everything known of it."""
    row = log_book(cluster).row(key)
    if row is None or row.entry is None:
        return log_lines(cluster, key)
    return [[_MEANINGS.get(row.outcome, "This version does not know that outcome.")], [], *_change(row, row.entry)]


def _fault(cluster: Cluster, row: LogRow) -> list[Line]:
    trouble = row.trouble
    assert trouble is not None
    state = "fails now" if trouble.over_at is None else f"over since {_stamp(trouble.over_at)}"
    return [
        [(f"source {printable(trouble.source)}", "bright"), (f"  {state}", state_token(log_table.health(row)))],
        *facts(
            [
                ("what", printable(trouble.fault.what)),
                ("why", printable(trouble.fault.why)),
                ("next", printable(trouble.fault.next_step)),
                ("since", _stamp(trouble.since)),
                ("last seen", _stamp(trouble.last_at)),
                ("polls", f"{trouble.polls} in a row failed so"),
                *(failing_facts(cluster, (trouble.source,)) if trouble.over_at is None else ()),
            ]
        ),
    ]


def _event(event: ClusterEvent, health: Health) -> list[Line]:
    told = [
        ("when", _stamp(event.at or 0.0)),
        ("cause", printable(event.cause)),
        ("count", str(event.count) if event.count is not None else ""),
        ("codes", printable(", ".join(f"{code} {count}" for code, count in event.codes.items()))),
    ]
    return [
        [(printable(event.type or event.source), "bright"), (f"  told by {printable(event.source)}", "dim")],
        [(printable(event.text), state_token(health))],
        [],
        *facts(told),
        *(_links("node", event.nodes) if event.nodes else []),
    ]


def _change(row: LogRow, entry: Entry) -> list[Line]:
    begin, end = entry.begin, entry.end or {}
    token = state_token(log_table.health(row))
    told = log_table.text(row) or (
        "it was killed before its end: look at the cluster" if row.outcome == UNKNOWN else ""
    )
    lines: list[Line] = [
        [(_word(begin, "title") or _word(begin, "action"), "bright")],
        [(f"{log_table.outcome_word(row)}{': ' if told else ''}", token), told],
        [],
        *facts(
            [
                ("when", _stamp(entry.at)),
                ("took", span(entry.took_s)),
                ("who", _who(begin)),
                ("reason", _word(begin, "reason")),
                ("confirmed", _word(begin, "confirmed")),
                ("id", printable(entry.id)),
            ]
        ),
        *_on(begin),
        *_undo(row, entry),
        [],
        section("commands"),
        *_commands(entry),
    ]
    return lines + _open(end) + _notes(end)


def _on(begin: Mapping[str, Any]) -> list[Line]:
    """What it was done to, as links."""
    scope, names = str(begin.get("scope")), str(begin.get("targets") or "")
    found = list(nodes_of(names)) if scope == "node" else list(split_outside(names)) if names else []
    kind = {"node": "node", "job": "job", "queue": "queue"}.get(scope)
    if kind is None or not found:
        return facts([("on", printable(names))])
    return _links(kind, found)


def _links(kind: str, found: Sequence[str]) -> list[Line]:
    line: list[Any] = [("  on           ", "dim")]
    for place, name in enumerate(found[:MOST_LINKS]):
        line += [*([", "] if place else []), Link(printable(name), "", Subject(kind, name))]
    if len(found) > MOST_LINKS:
        line.append(f" and {len(found) - MOST_LINKS} more")
    return [line]


def _undo(row: LogRow, entry: Entry) -> list[Line]:
    if not can_undo(entry):
        return []
    return [fact("way back", f"a, then u: undo (it shows its plan first), or `cockpit undo {printable(entry.id)}`")]


def _commands(entry: Entry) -> list[Line]:
    """Every command with its exit status and the end of what it said."""
    ran = _list(entry.end or {}, "results")
    lines: list[Line] = []
    for number, argv in enumerate(_list(entry.begin, "commands")):
        shown = command(map(str, argv)) if isinstance(argv, list) else "?"
        result = ran[number] if number < len(ran) and isinstance(ran[number], dict) else None
        lines.append([f"  {shown}"])
        lines.append([("    ", ""), *_status(entry, result)])
        said = result.get("said") if result else None
        lines += [[(f"    {printable(str(said))}", "dim")]] if said else []
    return lines or [[("  none", "dim")]]


def _status(entry: Entry, result: Mapping[str, Any] | None) -> Line:
    if result is None and entry.outcome == "running":
        return [("no result yet", "dim")]
    if result is None:
        words = "not run" if entry.end is not None else "not known whether it ran"
        return [(words, "warning" if entry.end is None else "dim")]
    if result.get("fault"):
        return [(printable(str(result["fault"])), state_token(Health.CRITICAL))]
    rc = result.get("rc")
    return [(f"{'no answer' if rc is None else f'exit {rc}'}, {result.get('took_s')}s", "dim")]


def _open(end: Mapping[str, Any]) -> list[Line]:
    """The targets that were not as wished when it was last looked."""
    found = end.get("findings")
    if not isinstance(found, dict) or not found:
        return []
    told = [fact(printable(str(name)), printable(str(words)), "warning") for name, words in found.items()]
    return [[], section(f"not as wished: {plural(len(found), 'target')}"), *told]


def _notes(end: Mapping[str, Any]) -> list[Line]:
    notes = _list(end, "notes")
    return [[], section("notes"), *([f"  {printable(str(note))}"] for note in notes)] if notes else []


def _who(begin: Mapping[str, Any]) -> str:
    who = begin.get("who")
    if not isinstance(who, dict):
        return ""
    return printable(f"{who.get('user')}@{who.get('host')}{f' as {login}' if (login := who.get('login')) else ''}")


def _word(record: Mapping[str, Any], key: str) -> str:
    return printable(str(record.get(key) or ""))


def _list(record: Mapping[str, Any], key: str) -> list[Any]:
    found = record.get(key)
    return found if isinstance(found, list) else []


def _stamp(epoch: float) -> str:
    return stamp(epoch) if epoch else "?"
