"""`sacctmgr list event`: when a node was down or drained, by whom and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo

from cockpit.formats.times import instant
from cockpit.formats.words import NO_TEXT, word
from cockpit.text import printable

_FIELDS = ("start", "end", "state", "user", "reason")  # the free text last: it may hold `|` and newlines
_START = re.compile(r"(?:[0-9]{1,18}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{5,8})\|(?:[^|]*\|){3}")


@dataclass(frozen=True, slots=True)
class NodeOutage:
    """A time during which the accounting database has a node out of service; `ended_at` None: it still is."""

    began_at: float | None
    ended_at: float | None
    state: str  # DRAIN, DOWN*, ... as Slurm writes it
    user: str = ""
    reason: str = ""


def history_args(node: str, days: int) -> list[str]:
    """What follows `sacctmgr`. Without a start it tells only what began since yesterday."""
    return [
        *("-n", "-P", "list", "event", "event=node", f"nodes={node}", f"start=now-{days}days"),
        f"format={','.join(_FIELDS)}",
    ]


def parse_node_history(raw: bytes, tz: tzinfo | None = None) -> tuple[NodeOutage, ...]:
    """Every outage, the newest first; a line that begins like none goes on with the reason before it."""
    records: list[str] = []
    for line in raw.decode("utf-8", "replace").split("\n"):
        if _START.match(line):
            records.append(line)
        elif records and line.strip():
            records[-1] += f"\n{line}"
    found = [_outage(record.split("|", len(_FIELDS) - 1), tz) for record in records]
    return tuple(sorted(found, key=lambda outage: -(outage.began_at or 0.0)))


def _outage(fields: list[str], tz: tzinfo | None) -> NodeOutage:
    start, end, state, user, reason = fields
    return NodeOutage(
        instant(start, tz),
        instant(end, tz),
        printable(state.strip()),
        printable(user.partition("(")[0]),
        word(reason.strip(), NO_TEXT),
    )
