"""The probe as a process: it streams, and it ends with everything it started."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from cockpit.formats.probe import ProbeReader
from cockpit.gpu_models import DriverState
from cockpit.hosts.base import Host, LineStream
from cockpit.hosts.local import LocalHost
from cockpit.probe.bundle import probe_argv, probe_stdin
from tests.rig.procs import alive, descendants, program, start_ticks
from tests.sshd import Sshd, needs_sshd, wait_for
from tests.unit.probe_runs import INTERVAL_S, QUIET, Run, all_gone


@pytest.fixture
def stuck_program(tmp_path: Path) -> str:
    """A mount checker that ignores TERM and never ends: whatever may still run when the probe is to end."""
    path = tmp_path / "stuck"
    path.write_text("#!/bin/sh\ntrap '' TERM HUP\nwhile :; do sleep 5; done\n")
    path.chmod(0o755)
    return str(path)


def test_the_first_line_is_a_hello_and_then_samples_come(tmp_path: Path) -> None:
    with Run() as run:
        reading = run.until(lambda node: node.number >= 3 and node.driver.state is not DriverState.STARTING)
    assert b'"k":"h"' in run.lines[0]
    assert b'"k":"s"' in run.lines[1]
    assert reading.hostname == os.uname().nodename
    assert reading.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert reading.mem_total_mib is not None
    assert reading.mem_total_mib > 100
    assert len(reading.load) == 3
    assert reading.uptime_s is not None
    assert reading.uptime_s > 0
    assert "/" in [mount.path for mount in reading.mounts]
    assert reading.driver.state is DriverState.ABSENT
    assert reading.driver.why == "no NVIDIA driver"
    assert reading.gpus == ()
    assert run.reader.bad_lines == 0
    assert run.reader.ended == "input ended"


def test_what_cannot_be_read_is_said() -> None:
    with Run() as run:
        reading = run.until(lambda node: "kernel log" in node.not_read)
    assert "kmsg: No such file" in reading.not_read["kernel log"]
    assert reading.log_source == ""


def test_end_of_input_ends_it_within_two_seconds_with_all_children(stuck_program: str) -> None:
    with Run({"mount_check": stuck_program}) as run:
        assert wait_for(lambda: any(program(pid) == "stuck" for pid in run.children()), 10)
        below = run.children()
        assert len(below) >= 3
        started = time.monotonic()
        run.close_stdin()
        assert wait_for(lambda: all_gone(below), 2.0), time.monotonic() - started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_with_all_children(number: int, stuck_program: str) -> None:
    with Run({"mount_check": stuck_program}) as run:
        assert wait_for(lambda: any(program(pid) == "stuck" for pid in run.children()), 10)
        run.until(lambda node: node.number >= 2)
        below = run.children()
        os.kill(run.process.pid, number)
        assert wait_for(lambda: all_gone(below), 2.0)
    assert run.reader.ended == "signal"


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status")
    words = status.read_text().split() if status.exists() else ["PPid:", "0"]
    return int(words[words.index("PPid:") + 1])


def test_killed_outright_it_leaves_no_child(stuck_program: str) -> None:
    with Run({"mount_check": stuck_program}) as run:
        assert wait_for(lambda: any(program(pid) == "stuck" for pid in run.children()), 10)
        # Grandchildren, here a sleep of the checker, end by themselves.
        direct = {pid: ticks for pid, ticks in run.children().items() if parent(pid) == run.process.pid}
        assert direct
        os.kill(run.process.pid, signal.SIGKILL)
        assert wait_for(lambda: all_gone(direct), 2.0)


def test_a_missing_heartbeat_ends_it_once_there_has_been_one() -> None:
    with Run({"heartbeat": 1.0}) as run:
        first = run.until(lambda node: node.number >= 1)
        # Without any heartbeat it does not wait for one.
        run.until(lambda node: node.taken_at > first.taken_at + 1.5)
        for _ in range(4):
            run.beat()
            time.sleep(0.5)
        assert run.process.poll() is None
        assert run.process.wait(4) == 0
    assert run.reader.ended == "no heartbeat"


def test_a_beat_asks_for_half_the_pace_and_the_next_for_the_whole() -> None:
    with Run({"heartbeat": 30.0}) as run:
        run.until(lambda reading: reading.number >= 3)
        assert median(steps_after(run, b"-", 10)[-8:]) > 1.5 * INTERVAL_S
        assert min(steps_after(run, b".", 20)) < 1.5 * INTERVAL_S


def steps_after(run: Run, beat: bytes, count: int) -> list[float]:
    """Seconds between so many samples that follow a beat, by the node's own clock."""
    assert run.process.stdin is not None
    run.process.stdin.write(beat)
    run.process.stdin.flush()
    last = run.readings[-1].number + count + 1
    run.until(lambda reading: reading.number >= last)
    times = [reading.taken_at for reading in run.readings if last - count <= reading.number <= last]
    return [after - before for before, after in pairwise(times)]


def test_output_that_nobody_takes_ends_it() -> None:
    argv = probe_argv(0.02, **{**QUIET, "block": 1.0})
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        fcntl.fcntl(process.stdout.fileno(), fcntl.F_SETPIPE_SZ, 4096)
        process.stdin.write(probe_stdin())
        process.stdin.flush()
        assert process.wait(60) == 0  # the pipe fills, then a second passes
    finally:
        process.kill()
        process.wait(5)


def test_a_bad_option_is_told_and_ends_it() -> None:
    with Run(argv=[*probe_argv(1)[:4], "interval=soon"]) as run:
        assert run.process.wait(10) == 0
    assert "ValueError" in run.reader.ended


def stream(host: Host) -> LineStream:
    return host.stream(probe_argv(0.2, **QUIET), open_deadline_s=20, stdin=probe_stdin())


def test_through_local_host_and_closing_the_stream_ends_it() -> None:
    host, reader = LocalHost(), ProbeReader()
    lines = stream(host)
    readings = []
    for line in lines:
        reading = reader.feed(line)
        if reading is not None:
            readings.append(reading)
        if len(readings) == 3:
            below = {pid: start_ticks(pid) or 0 for pid in descendants(os.getpid()) if program(pid) == "python3"}
            assert below
            lines.close()
            break
    assert readings[-1].number == 3
    assert wait_for(lambda: all_gone(below), 2.0)
    host.close()


def beats_end_it(host: Host) -> None:
    """Send heartbeats for longer than the probe would wait without one, then no more."""
    argv = probe_argv(0.2, **QUIET, heartbeat=1.5)
    reader, lines = ProbeReader(), host.stream(argv, open_deadline_s=20, stdin=probe_stdin())
    started = last = time.monotonic()
    for line in lines:
        reader.feed(line)
        if time.monotonic() - started < 3:
            lines.write(b".")
            last = time.monotonic()
        if time.monotonic() - started > 20:
            lines.close()
            break
    assert reader.ended == "no heartbeat"
    assert last - started > 2.5
    assert time.monotonic() - last > 1.0


def test_heartbeats_through_local_host() -> None:
    host = LocalHost()
    beats_end_it(host)
    host.close()


class TestThroughSshd:
    pytestmark = needs_sshd

    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[Sshd]:
        with Sshd(tmp_path) as running:
            yield running

    def probes(self, server: Sshd) -> dict[int, int]:
        """The probe's processes on the other side."""
        pids = [pid for pid in server.sessions() if program(pid).startswith("python3")]
        return {pid: start_ticks(pid) or 0 for pid in pids}

    def test_lines_arrive_and_closing_the_stream_ends_it(self, server: Sshd) -> None:
        host, reader = server.host(), ProbeReader()
        try:
            lines = stream(host)
            for line in lines:
                reading = reader.feed(line)
                if reading is not None and reading.number == 3:
                    running = self.probes(server)
                    assert running
                    lines.close()
                    break
            assert reader.bad_lines == 0
            assert wait_for(lambda: all_gone(running), 2.0)
        finally:
            host.close()

    def test_heartbeats_keep_it_alive_and_their_end_ends_it(self, server: Sshd) -> None:
        host = server.host()
        try:
            beats_end_it(host)
        finally:
            host.close()

    def test_killing_the_client_outright_leaves_no_probe(self, server: Sshd) -> None:
        command = shlex.join(probe_argv(0.2, **QUIET))
        argv = ["ssh", "-T", "-F", str(server.write_config()), "box", command]
        client = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(probe_stdin())
        client.stdin.flush()
        assert b'"k":"h"' in client.stdout.readline()
        running = self.probes(server)
        assert running
        client.kill()
        client.wait(5)
        assert wait_for(lambda: all_gone(running), 20.0)


def test_nothing_but_its_own_children_is_signalled(tmp_path: Path) -> None:
    # Same session, same user, started beside it: must survive the probe's end.
    with Run() as run:
        run.until(lambda node: node.number >= 2)
        bystander = subprocess.Popen(["sleep", "30"])
        ticks = start_ticks(bystander.pid) or 0
        run.close_stdin()
        run.process.wait(5)
        assert alive(bystander.pid, ticks)
        bystander.kill()
        bystander.wait(5)
