"""What the probe knows of a process is read again now and then, and never vanishes meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cockpit.probe.agent.child import Nursery
from cockpit.probe.agent.procs import Processes

PID = 4242
STAT = f"{PID} (python3) S " + " ".join(["1"] * 18) + " 500 0 0 0\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc of one process of job 7, whose rank is 3."""
    home = tmp_path / str(PID)
    home.mkdir()
    (tmp_path / "uptime").write_text("1000.0 1.0\n")
    (home / "stat").write_text(STAT)
    (home / "cgroup").write_text("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_3\n")
    (home / "environ").write_bytes(b"RANK=3\0WORLD_SIZE=8\0")
    return tmp_path


def rows(processes: Processes) -> list[list[object]]:
    return processes.take(True) or []


def answered(processes: Processes, now: float) -> list[list[object]]:
    """Step until the question in flight has its answer."""
    processes.step(now)
    until = time.monotonic() + 20
    while processes._question.child is not None:
        assert time.monotonic() < until
        processes.step(now)
        time.sleep(0.005)
    return rows(processes)


def test_a_rank_does_not_vanish_while_it_is_read_again(proc: Path) -> None:
    processes = Processes(Nursery(), str(proc), 10.0)
    held: list[object] = [[[PID, 100, None]]]
    processes.update(0.0, held, [0])
    first = answered(processes, 0.0)
    assert first[0][:5] == [0, PID, 100, None, 1]
    assert {3, 7} <= set(first[0][5:])
    (proc / str(PID) / "cgroup").write_text("0::/system.slice/slurmstepd.scope/job_8/step_0/user/task_3\n")
    processes.update(61.0, held, [0])
    assert rows(processes) == first
    again = answered(processes, 61.0)
    assert {3, 8} <= set(again[0][5:])
    assert 7 not in again[0][5:]


def test_a_pid_that_is_another_process_by_now_is_not_told_as_the_old_one(proc: Path) -> None:
    processes = Processes(Nursery(), str(proc), 10.0)
    held: list[object] = [[[PID, 100, None]]]
    processes.update(0.0, held, [0])
    answered(processes, 0.0)
    (proc / str(PID) / "stat").write_text(STAT.replace(" 500 ", " 900 "))
    processes.update(1.0, held, [0])
    assert rows(processes) == [[0, PID, 100, None]]
