"""ParallelCluster's own events: parsed, followed over log rotation, and cut lines waited for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cockpit.event_models import ClusterEvents
from cockpit.event_problems import of_events
from cockpit.formats.pcluster_events import parse_events, parse_resume_log
from cockpit.hosts.base import Completed
from cockpit.hosts.local import LocalHost
from cockpit.models import FaultError, Health, Problem
from cockpit.sources.cluster_events import EventReads
from tests.still import still_cluster

ICE = {
    "failure-type": "ice-failures",
    "count": 3,
    "error-details": {
        "InsufficientInstanceCapacity": {"count": 2, "nodes": [{"name": "gpu-dy-p5-1"}, {"name": "gpu-dy-p5-2"}]},
        "LimitedInstanceCapacity": {"count": 1, "nodes": [{"name": "gpu-dy-p5-3"}]},
    },
}


def line(kind: str, detail: dict[str, Any], second: int = 0, level: str = "WARNING") -> bytes:
    entry = {
        "datetime": f"2026-11-01T10:00:{second:02d}.123+00:00",
        "version": 0,
        "scheduler": "slurm",
        "cluster-name": "prod",
        "node-role": "HeadNode",
        "component": "clustermgtd",
        "level": level,
        "instance-id": "i-0",
        "event-type": kind,
        "message": "Number of failures",
        "detail": detail,
    }
    return json.dumps(entry).encode() + b"\n"


BEAT = line("clustermgtd-heartbeat", {"heartbeat-timestamp": "2026-11-01T10:00:30.000+00:00"}, 30, "INFO")


def test_events_are_told_with_their_codes_and_nodes() -> None:
    raw = line("node-launch-failure-count", ICE) + BEAT + line("something-new", {}, 40, "INFO")
    (failure, new), heartbeat, broken = parse_events(raw)
    assert (failure.health, failure.cause, failure.count) == (Health.WARN, "ice-failures", 3)
    assert failure.text == "EC2 refused to launch: 2 × InsufficientInstanceCapacity, 1 × LimitedInstanceCapacity"
    assert failure.nodes == ("gpu-dy-p5-1", "gpu-dy-p5-2", "gpu-dy-p5-3")
    assert (new.health, new.text) == (Health.OK, "Number of failures")
    assert (heartbeat, broken) == (1793527230.123, 0)


def test_boot_failures_name_their_nodes_and_broken_lines_are_counted() -> None:
    detail = {"failure-type": "dynamic-resume-timeout-error", "count": 1, "nodes": [{"name": "gpu-dy-p5-9"}]}
    raw = b'{"half\n' + b"[1]\n" + line("protected-mode-error-count", detail)
    (event,), heartbeat, broken = parse_events(raw)
    assert event.text == "nodes failed to boot: 1 (dynamic-resume-timeout-error)"
    assert (event.nodes, heartbeat, broken) == (("gpu-dy-p5-9",), None, 2)


@pytest.mark.parametrize(
    "detail", [None, [], {"error-details": 3, "nodes": "x", "count": "many"}, {"nodes": [None, 7]}]
)
def test_odd_details_do_no_harm(detail: Any) -> None:
    entry = {"event-type": "node-launch-failure-count", "detail": detail, "message": "\x1b[2Jx", "datetime": 5}
    (event,), _, broken = parse_events(json.dumps(entry).encode())
    assert (event.nodes, event.codes, event.at, broken) == ((), {}, None, 0)
    assert "\x1b" not in event.text


def test_errors_of_the_resume_log_with_code_and_nodes() -> None:
    raw = (
        b"2026-11-01 10:00:00,500 - [slurm_plugin.instance_manager:_launch] - INFO - Launching\n"
        b"2026-11-01 10:00:01,250 - [slurm_plugin.instance_manager:_launch] - ERROR - Encountered exception when "
        b"launching instances for nodes (x1) ['gpu-dy-p5-1']: An error occurred (VcpuLimitExceeded) when calling\n"
        b"Traceback (most recent call last):\n"
    )
    (event,) = parse_resume_log(raw)
    assert (event.at, event.codes, event.nodes) == (1793527201.25, {"VcpuLimitExceeded": 1}, ("gpu-dy-p5-1",))


def follow(folder: Path) -> tuple[EventReads, Path, Path]:
    events, log = folder / "clustermgtd.events", folder / "slurm_resume.log"
    return EventReads(LocalHost(), (str(events), str(log))), events, log


def kinds(read: ClusterEvents) -> list[str]:
    return [event.type for event in read.events]


def test_only_what_is_new_is_read_and_a_half_line_is_waited_for(tmp_path: Path) -> None:
    reads, events, log = follow(tmp_path)
    log.write_bytes(b"2026-11-01 10:00:09,000 - [a:b] - ERROR - no\n")
    whole = line("node-launch-failure-count", ICE, 1)
    events.write_bytes(whole + whole[:40])
    first = reads.read()
    assert (kinds(first), first.unread, first.broken_lines) == (["node-launch-failure-count", ""], {}, 0)
    with events.open("ab") as file:
        file.write(whole[40:] + BEAT)
    second = reads.read()
    assert kinds(second) == ["node-launch-failure-count"] * 2 + [""]
    assert second.heartbeat_at == 1793527230.123
    assert reads.read() == second
    events.write_bytes(line("invalid-backing-instance-count", {"count": 1}, 50))  # rotated
    assert kinds(reads.read())[-1] == "invalid-backing-instance-count"
    assert len(reads.read().of_node("gpu-dy-p5-1")) == 2


def test_a_file_that_is_not_there_is_told_and_an_answer_that_is_none_is_a_fault(tmp_path: Path) -> None:
    reads, events, log = follow(tmp_path)
    assert reads.read() == ClusterEvents(unread={str(events): "not there", str(log): "not there"})
    events.write_bytes(BEAT)
    assert reads.read().unread == {str(log): "not there"}
    _, head, _ = still_cluster()
    head.answers["sh"] = lambda argv: Completed(0, b"motd\n", b"", 0.1)
    with pytest.raises(FaultError, match="cut off"):
        EventReads(head, (str(events),)).read()
    head.answers["sh"] = lambda argv: Completed(0, f"{argv[3]} /x unread\n{argv[3]} end\n".encode(), b"", 0.1)
    with pytest.raises(FaultError, match="nor sudo may read"):
        EventReads(head, ("/x",)).read()


def test_a_log_cannot_pretend_to_be_another_file(tmp_path: Path) -> None:
    reads, events, log = follow(tmp_path)
    log.write_bytes(b"end\n/etc/passwd 0\n")
    events.write_bytes(b"end\n" + BEAT)
    assert reads.read().heartbeat_at == 1793527230.123


def problems(*parts: bytes, now: float = 1793527300.0) -> dict[str, Problem]:
    events, heartbeat, _ = parse_events(b"".join(parts))
    return {problem.key: problem for problem in of_events(ClusterEvents(events, heartbeat), now)}


def test_refused_launches_and_failed_boots_are_problems_while_they_are_recent() -> None:
    boot = line("protected-mode-error-count", {"failure-type": "x", "count": 2, "nodes": [{"name": "a"}]}, 20)
    failure = line("node-launch-failure-count", ICE, 10)
    found = problems(failure, failure, boot, BEAT)
    assert set(found) == {"events:launch", "events:boot"}
    assert (found["events:launch"].subject, found["events:launch"].count) == ("gpu-dy-p5-[1-3]", 3)
    assert "(2 times in 15m)" in found["events:launch"].title
    quota = {"count": 1, "error-details": {"VcpuLimitExceeded": {"count": 1, "nodes": []}}}
    assert "quota" in problems(line("node-launch-failure-count", quota), BEAT)["events:launch"].next_step
    assert problems(failure, boot, now=1793527300.0 + 1800) == {}


def test_a_silent_daemon_is_told() -> None:
    assert problems(BEAT) == {}
    assert problems(BEAT, now=1793527230.0 + 400)["events:silent"].health is Health.WARN
    assert problems(BEAT, now=1793527230.0 + 700)["events:silent"].health is Health.CRITICAL
    assert list(of_events(None, 0.0)) == []
