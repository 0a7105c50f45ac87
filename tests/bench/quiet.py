"""A session that nobody touches: processor time, memory, bytes to the terminal, requests, processes."""

from __future__ import annotations

import re
import time
from typing import Any

from tests.bench.churn import Churn
from tests.bench.session import Event, Session
from tests.bench.stats import median, ratio
from tests.bench.targets import Target

STARTED_S = 60.0
SETTLED_S = 6.0  # after the start: by then all that keys need is loaded
PAINTED_S = 0.5  # so long after a read its lines are on their way to the screen
_COUNT = re.compile(r"^\s*(REQUEST_\w+|MESSAGE_\w+)\s+\(\s*\d+\)\s+count:(\d+)", re.MULTILINE)


def measure_quiet(target: Target, seconds: float, *, changing: bool = False) -> dict[str, Any]:
    """One session over at least `seconds`, from one read of the queue to another.

    With `changing` jobs and nodes of a rig change meanwhile, and its requests say nothing.
    """
    with Session(target, heartbeat=False) as session, Churn(target.rig if changing else None):
        wait_data(session)
        time.sleep(max(0.0, session.started_at + SETTLED_S - time.monotonic()))
        session.press(b"r")  # the first read is a slow one, and the wait after it is long
        first = session.next_beat("queue")
        before, until = controller_requests(target), time.monotonic() + seconds
        while (last := session.next_beat("queue"))["at"] < until:
            pass
        requests = _difference(before, controller_requests(target))
        found = _spent(first, last) | _sent(session, first, last) | _reads(session, first, last, requests)
        found["rss_mib"], found["rss_peak_mib"] = session.memory_mib("VmRSS"), session.memory_mib("VmHWM")
        return found | {"quit_s": session.quit_s()}


def wait_data(session: Session) -> None:
    """Until every source was read once and no more nodes are being dialled; TimeoutError when one was not read."""
    for name in ("nodes", "queue", "slurm"):
        session.wait_beats(name, 1, STARTED_S)
    until, dialled = time.monotonic() + STARTED_S, -1
    # Each `ssh -G` is a machine on its way; a large fleet takes a while.
    while dialled != (dialled := len(session.events("started", argv="ssh"))) and time.monotonic() < until:
        time.sleep(1.5)


def controller_requests(target: Target) -> dict[str, int]:
    """What slurmctld has been asked so far, by kind of request; {} for a demo."""
    if target.rig is None:
        return {}
    told = target.rig.slurm("sdiag").stdout.decode()
    counts = {name: int(count) for name, count in _COUNT.findall(told)}
    counts.pop("REQUEST_STATS_INFO", None)  # this very question
    return counts


def _difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    more = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in more.items() if count}


def _spent(first: Event, last: Event) -> dict[str, Any]:
    """Percent of a core, of the process itself and of what it ran on this machine."""
    span_s = last["at"] - first["at"]
    own, children = (100 * (last[name] - first[name]) / span_s for name in ("own_cpu_s", "children_cpu_s"))
    return {
        "cpu_pct": own,
        "children_cpu_pct": children,
        "cpu_with_children_pct": own + children,
        "cpu_s_per_minute": 0.6 * own,
        "span_s": span_s,
    }


def _reads(session: Session, first: Event, last: Event, requests: dict[str, int]) -> dict[str, Any]:
    """What one refresh (nodes and queue read once each) takes."""
    beats = {name: _within(session.events("beat", name=name), first, last) for name in ("nodes", "queue")}
    gaps = [b["at"] - a["at"] for a, b in zip([first, *beats["queue"]], beats["queue"], strict=False)]
    refreshes = sum(map(len, beats.values())) / 2
    started = _within(session.events("started"), first, last)
    return {
        "refresh_interval_s": median(gaps),
        "queue_read_s": median([beat["took_s"] for beat in beats["queue"]]),
        "nodes_read_s": median([beat["took_s"] for beat in beats["nodes"]]),
        "reads_first_s": {name: session.events("beat", name=name)[0]["took_s"] for name in ("nodes", "queue", "slurm")},
        "errors": [beat["error"] for found in beats.values() for beat in found if beat["error"]],
        "requests_by_kind": requests,
        "requests_per_refresh": ratio(sum(requests.values()), refreshes) if requests else None,
        "processes_per_refresh": len(started) / refreshes if refreshes else None,
        "processes_started": len(session.events("started")),
    }


def _within(events: list[Event], first: Event, last: Event) -> list[Event]:
    return [event for event in events if first["at"] < event["at"] <= last["at"]]


def _sent(session: Session, first: Event, last: Event) -> dict[str, Any]:
    """Bytes to the terminal: a second while nothing was read, and for each refresh."""
    beats = _within(session.events("beat"), first, last)
    busy = [(beat["at"] - 0.05, beat["at"] + PAINTED_S) for beat in beats]
    sent = [session.bytes_between(begin, end) for begin, end in busy]
    idle_bytes, idle_s = 0, 0.0
    start = first["at"] + PAINTED_S
    for begin, end in [*sorted(busy), (last["at"], 0.0)]:
        if begin > start:
            idle_bytes, idle_s = idle_bytes + session.bytes_between(start, begin), idle_s + begin - start
        start = max(start, end)
    return {
        "idle_bytes_per_s": idle_bytes / idle_s if idle_s else None,
        "bytes_per_s": session.bytes_between(first["at"], last["at"]) / (last["at"] - first["at"]),
        "refresh_bytes": median(sent),
        "refresh_bytes_worst": max(sent, default=None),
    }
