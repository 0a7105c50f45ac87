"""ParallelCluster's `*.events` files (one JSON object a line) and the errors in slurm_resume.log, to a time line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from cockpit.event_models import ClusterEvent
from cockpit.formats.aws_ec2 import epoch
from cockpit.models import Health
from cockpit.text import printable

HEARTBEAT = "clustermgtd-heartbeat"
LAUNCH_FAILURE = "node-launch-failure-count"
PROTECTED = "protected-mode-error-count"
_QUIET = frozenset({HEARTBEAT, "compute-node-idle-time"})  # every loop, and nothing to act on
_LONGEST = 300

_HEALTH = {"WARNING": Health.WARN, "ERROR": Health.CRITICAL, "CRITICAL": Health.CRITICAL}
_WORDS = {
    LAUNCH_FAILURE: "EC2 refused to launch",
    "nodes-failing-health-check-count": "nodes fail a health check",
    PROTECTED: "nodes failed to boot",
    "invalid-backing-instance-count": "nodes have lost their instance",
    "node-not-responding-down-count": "nodes do not respond and are down",
}
# Python's logging as ParallelCluster sets it up: `2026-11-01 10:00:00,123 - [module:function] - ERROR - text`.
_LOG = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) - (?:\[[^\]]*\] - )?(ERROR|CRITICAL) - (.*)")
_CODE = re.compile(r"(?:An error occurred \(|\(Code:|error code[^A-Za-z]{1,4})([A-Za-z][A-Za-z.]+)\)?")
_NODE = re.compile(r"[a-z0-9-]+-(?:st|dy)-[a-z0-9-]+-\d+")


def parse_events(raw: bytes) -> tuple[tuple[ClusterEvent, ...], float | None, int]:
    """Events in order, the last heartbeat, and how many lines could not be read (the first may be cut)."""
    events, heartbeat, broken = [], None, 0
    for line in raw.split(b"\n"):
        if not line.strip():
            continue
        entry = _entry(line)
        if entry is None:
            broken += 1
            continue
        if entry.get("event-type") == HEARTBEAT:
            heartbeat = epoch(entry.get("datetime")) or heartbeat
        if entry.get("event-type") not in _QUIET:
            events.append(_event(entry))
    return tuple(events), heartbeat, broken


def _entry(line: bytes) -> Mapping[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _event(entry: Mapping[str, Any]) -> ClusterEvent:
    detail = entry.get("detail")
    detail = detail if isinstance(detail, dict) else {}
    kind, cause = _text(entry.get("event-type")), _text(detail.get("failure-type"))
    errors = detail.get("error-details")
    errors = errors if isinstance(errors, dict) else {}
    codes = {_text(code): _count(found) for code, found in errors.items()}
    names = [*_names(detail.get("nodes")), *(name for found in errors.values() for name in _error_names(found))]
    count = detail.get("count")
    count = count if isinstance(count, int) else None
    return ClusterEvent(
        at=epoch(entry.get("datetime")),
        health=_HEALTH.get(str(entry.get("level")), Health.OK),
        source=_text(entry.get("component")),
        type=kind,
        text=_words(kind, cause, count, codes) or _text(entry.get("message")),
        cause=cause,
        count=count,
        codes=codes,
        nodes=tuple(dict.fromkeys(names)),
    )


def _words(kind: str, cause: str, count: int | None, codes: Mapping[str, int]) -> str:
    """`EC2 refused to launch: 4 × InsufficientInstanceCapacity`; "" for a type nobody has words for."""
    words = _WORDS.get(kind)
    if words is None:
        return ""
    if codes:
        return f"{words}: {', '.join(f'{number} × {code}' for code, number in codes.items())}"
    why = f" ({cause})" if cause else ""
    return f"{words}: {count}{why}" if count is not None else words + why


def _count(found: object) -> int:
    count = found.get("count") if isinstance(found, dict) else None
    return count if isinstance(count, int) else len(list(_error_names(found)))


def _error_names(found: object) -> Iterator[str]:
    yield from _names(found.get("nodes") if isinstance(found, dict) else None)


def _names(entries: object) -> Iterator[str]:
    """Node names, told as texts or as objects with a name."""
    for entry in entries if isinstance(entries, list) else ():
        name = entry.get("name") if isinstance(entry, dict) else entry
        if isinstance(name, str) and name:
            yield printable(name)


def _text(value: object) -> str:
    return "" if value is None else printable(str(value))[:_LONGEST]


def parse_resume_log(raw: bytes) -> tuple[ClusterEvent, ...]:
    """The errors of slurm_resume.log, whose times are UTC; lines that are no error of that form are left out."""
    found = []
    for line in raw.decode("utf-8", "replace").split("\n"):
        match = _LOG.match(line)
        if match is None:
            continue
        at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
        said = printable(match[4])
        codes = dict.fromkeys(_CODE.findall(said), 1)
        names = tuple(dict.fromkeys(_NODE.findall(said)))
        stamp = at.timestamp() + int(match[2]) / 1000
        text = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
        found.append(ClusterEvent(stamp, Health.WARN, "slurm_resume.log", "", text, "", None, codes, names))
    return tuple(found)
