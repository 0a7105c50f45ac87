"""The record of changes as a person reads it next morning, and as JSON for export."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from actions.audit import UNKNOWN, Entry
from actions.plan_lines import command
from cockpit.config import ConfigError
from cockpit.text import printable
from cockpit.words import on_the_wall, span

_AGO = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def since(text: str, now: float | None = None) -> float:
    """Epoch seconds of `2h` (ago), `2026-11-30` or `2026-11-30T18:00` (local); 0 for "". Raises ConfigError."""
    text = text.strip()
    if not text:
        return 0.0
    if found := _AGO.fullmatch(text):
        return (time.time() if now is None else now) - int(found[1]) * _UNITS_S[found[2]]
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        raise ConfigError(f"--since {text}: write 2h, 3d, 2026-11-30 or 2026-11-30T18:00") from None


def lines(entries: Sequence[Entry]) -> list[str]:
    """Two or more lines for each action: when, who, what and what came of it; then every command as it was run."""
    found: list[str] = []
    for entry in entries:
        found.append(_headline(entry))
        if reason := entry.begin.get("reason"):
            found.append(f"    reason: {reason}")
        found += [f"    {line}" for line in _commands(entry)]
        text = (entry.end or {}).get("text")
        if text or entry.outcome == UNKNOWN:
            found.append(f"    {text or 'it was killed before its end: look at the cluster'}")
    return [printable(line) for line in found]


def _headline(entry: Entry) -> str:
    who = entry.begin.get("who")
    person = f"{who.get('user')}@{who.get('host')}" if isinstance(who, dict) else "?"
    login = f" as {who['login']}" if isinstance(who, dict) and who.get("login") else ""
    took = f" in {span(entry.took_s)}" if entry.took_s is not None else ""
    when = time.strftime("%Y-%m-%d %H:%M:%S", on_the_wall(entry.at)) if entry.at else "?"
    title = entry.begin.get("title") or entry.begin.get("action")
    return f"{when}  {entry.id}  {person}{login}  {entry.begin.get('cluster')}  {title}: {entry.outcome}{took}"


def _commands(entry: Entry) -> list[str]:
    results = (entry.end or {}).get("results")
    ran = results if isinstance(results, list) else []
    found = []
    for number, argv in enumerate(entry.begin.get("commands") or ()):
        shown = command(map(str, argv)) if isinstance(argv, list) else "?"
        found.append(f"{shown}  {_status(entry, ran, number)}")
    return found


def _status(entry: Entry, ran: Sequence[Any], number: int) -> str:
    if number < len(ran) and isinstance(ran[number], dict):
        result = ran[number]
        status = f"exit {result['rc']}" if result.get("rc") is not None else "no answer"
        return f"[{status}, {result.get('took_s')}s]{f' {said}' if (said := result.get('said')) else ''}"
    return "[not run]" if entry.end is not None else "[not known whether it ran]"


def entry_record(entry: Entry) -> dict[str, Any]:
    """One action as JSON: both of its lines in one object, and the outcome."""
    begin = {key: value for key, value in entry.begin.items() if key not in ("phase", "process")}
    end = entry.end if entry.end is not entry.begin else None
    return begin | {
        "outcome": entry.outcome,
        "ended_at": (end or {}).get("at"),
        "took_s": entry.took_s,
        "text": (entry.end or {}).get("text"),
        "notes": (end or {}).get("notes", []),
        "results": (end or {}).get("results", []),
        "verified": (end or {}).get("verified", {}),
        "findings": (end or {}).get("findings", {}),
    }
