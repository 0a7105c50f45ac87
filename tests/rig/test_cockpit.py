"""The cockpit on a real Slurm over real SSH: it counts as Slurm does, and outages are told, never hidden."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.models import FaultKind, Freshness
from cockpit.sources.slurm import NODES, QUEUE
from tests.rig import Rig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

HOSTILE = [
    b"a|b|c",
    b"two\nlines",
    b"field\x1fand\x1erecord",
    b"[/]",
    b"[@click=app.quit]x[/]",
    b"\x1b]52;c;eA==\x07\x1b[31mred",
    "汉字汉字 🚀".encode(),
    "\u202egnp.exe".encode(),
    b"n" * 200,
    b"caf\xe9 \xff",
    b"`id` $(id) '\"",
]


def command(rig: Rig, *words: str, env: dict[str, str] | None = None, **config: Any) -> tuple[int, dict[str, Any]]:
    """Run the command line on the rig; its exit code and JSON."""
    argv = [sys.executable, "-m", "cockpit", "--config", str(rig.config(**config)), *words, "--json"]
    done = subprocess.run(argv, capture_output=True, timeout=60, env={**os.environ, **(env or {})}, check=False)
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


@contextmanager
def polled(rig: Rig) -> Iterator[Cluster]:
    """A cluster that polls the rig over SSH every second."""
    config = load_config(rig.config("polled.yaml", refresh={"slurm": 1}))
    cluster = Cluster(next(iter(config.clusters.values())))
    cluster.start()
    try:
        eventually(lambda: cluster.view.nodes is not None and cluster.view.queue is not None)
        yield cluster
    finally:
        cluster.stop()


def eventually(true: Callable[[], object], timeout_s: float = 40.0) -> None:
    until = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until, "did not come true in time"
        time.sleep(0.05)


def test_status_counts_as_sinfo_and_squeue_do(rig: Rig) -> None:
    rig.submit("sleep 300", nodes=2, gpus_per_node=8)
    rig.submit("sleep 300", array="1-40%2", gpus=1)
    rig.submit("sleep 300", hold=True)
    rig.wait_for(lambda: rig.slurm("squeue", "-h", "-t", "R").stdout.count(b"\n") >= 3)
    code, status = command(rig, "status")
    states = rig.slurm("squeue", "-h", "-a", "-r", "-o", "%t").stdout.decode().split()
    assert status["jobs"]["by_state"] == dict(Counter(states))
    assert status["jobs"]["running"] == states.count("R")
    assert status["jobs"]["pending"] == states.count("PD")
    names = set(rig.slurm("sinfo", "-h", "-a", "-N", "-o", "%N").stdout.decode().split())
    assert status["nodes"]["total"] == len(names)
    assert status["gpus"]["total"] == 8 * len(names)
    assert status["gpus"]["allocated"] == 16 + 2
    assert {source["state"] for source in status["sources"].values()} == {"live"}
    assert code == (1 if status["problems"] else 0)


def test_a_users_own_slurm_settings_change_nothing(rig: Rig) -> None:
    rig.submit("sleep 300", gpus=1)
    odd = {"SQUEUE_FORMAT": "%i", "SQUEUE_STATES": "CD", "SLURM_TIME_FORMAT": "relative", "LC_ALL": "de_DE.UTF-8"}
    config = rig.config("odd.yaml", head="local", ssh_config=None)
    env = {**os.environ, **rig.local_env, **odd, "SINFO_FORMAT": "%n", "SINFO_PARTITION": "nowhere"}
    argv = [sys.executable, "-m", "cockpit", "--config", str(config), "status", "--json"]
    done = subprocess.run(argv, capture_output=True, timeout=60, env=env, check=False)
    status = json.loads(done.stdout)
    assert status["nodes"]["total"] == len(rig.nodes), done.stderr
    assert sum(status["jobs"]["by_state"].values()) == 1


def test_hostile_job_names_are_one_row_each(rig: Rig) -> None:
    ids = [rig.submit("sleep 300", hold=True, job_name=name, comment=name) for name in HOSTILE]
    _, found = command(rig, "jobs")
    jobs = {job["job_id"]: job for job in found["jobs"]}
    assert set(ids) <= set(jobs)
    assert len(jobs) == len(ids)
    for job_id in ids:
        job = jobs[job_id]
        assert job["state"] == "PD"
        assert job["user"] == "root"
        assert job["reason"].startswith("JobHeld")
        assert not [c for c in job["name"] if ord(c) < 32 or 0x7F <= ord(c) < 0xA0]


def test_a_stopped_controller_goes_stale_then_recovers_and_is_never_empty(rig: Rig) -> None:
    job = rig.submit("sleep 300", gpus=1)
    with polled(rig) as cluster:
        eventually(lambda: cluster.view.queue and cluster.view.queue.by_state.get("R") == 1)
        rig.freeze("slurmctld")
        try:
            until = time.monotonic() + 15
            seen = set()
            while time.monotonic() < until:
                assert cluster.view.nodes is not None
                assert len(cluster.view.nodes) == len(rig.nodes)
                assert cluster.view.queue is not None
                assert [each.job_id for each in cluster.view.queue.jobs] == [job]
                seen.add(cluster.store.state(QUEUE).freshness(cluster.clock.steady()))
                time.sleep(0.1)
            assert Freshness.STALE in seen
            eventually(lambda: cluster.store.state(NODES).error is not None)
            error = cluster.store.state(NODES).error
            assert error is not None
            assert error.kind is FaultKind.CONTROLLER_HUNG
            assert any("slurmctld" in problem.title for problem in cluster.problems())
        finally:
            rig.thaw("slurmctld")
        eventually(lambda: cluster.store.state(QUEUE).error is None and cluster.store.state(NODES).error is None)
        assert not [p for p in cluster.problems() if p.key.startswith("source:")]


def test_a_controller_that_does_not_run_is_named(rig: Rig) -> None:
    config = rig.config("down.yaml")
    cluster = Cluster(next(iter(load_config(config).clusters.values())))
    head = cluster.head
    real = head.run

    def without_controller(argv: Any, **options: Any) -> Any:
        # The same programs with a port on which no controller listens, as after a crash.
        conf = str(rig.state / "dead.conf")
        return real(argv, **{**options, "env": {**(options.get("env") or {}), "SLURM_CONF": conf}})

    text = next(rig.state.rglob("slurm.conf")).read_text()
    dead = "".join(
        "SlurmctldPort=1\n" if line.startswith("SlurmctldPort") else line + "\n" for line in text.splitlines()
    )
    (rig.state / "dead.conf").write_text(dead)
    head.run = without_controller  # type: ignore[method-assign]
    try:
        cluster.read_once()
        error = cluster.store.state(NODES).error
        assert error is not None
        assert error.kind is FaultKind.CONTROLLER_DOWN, error.line()
        assert cluster.view.nodes is None
    finally:
        cluster.stop()


def test_a_frozen_head_is_told_and_recovers(rig: Rig) -> None:
    with polled(rig) as cluster:
        rig.freeze("head")
        try:
            eventually(lambda: cluster.store.state(NODES).error is not None)
            assert cluster.view.nodes is not None
            assert len(cluster.view.nodes) == len(rig.nodes)
        finally:
            rig.thaw("head")
        cluster.refresh()
        eventually(lambda: cluster.store.state(NODES).error is None, 60)


def test_q_quits_while_the_head_hangs(rig: Rig) -> None:
    with terminal([sys.executable, "-m", "cockpit", "--config", str(rig.config(refresh={"slurm": 1}))]) as screen:
        eventually(lambda: b"gpu-st-p5-1" in screen.output)
        rig.freeze("head")
        try:
            time.sleep(2.5)  # a poll is in flight by now
            began = time.monotonic()
            screen.type(b"q")
            screen.process.wait(10)
            print(f"quit with a hung head took {time.monotonic() - began:.2f} s")
        finally:
            rig.thaw("head")
        assert screen.process.returncode == 0


class Screen:
    """A program in a pseudo-terminal, its output collected."""

    def __init__(self, argv: list[str]) -> None:
        self.master, slave = pty.openpty()
        import fcntl
        import struct
        import termios

        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        env = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        os.close(slave)
        self.output = b""
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        try:
            while chunk := os.read(self.master, 65536):
                self.output += chunk
        except OSError:
            return

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)


@contextmanager
def terminal(argv: list[str]) -> Iterator[Screen]:
    screen = Screen(argv)
    try:
        yield screen
    finally:
        if screen.process.poll() is None:
            screen.process.kill()
            screen.process.wait()
        os.close(screen.master)


def test_a_head_that_is_not_there_is_exit_3_with_the_reason(rig: Rig, tmp_path: Path) -> None:
    config = rig.config("away.yaml", head="root@127.0.0.1:1", ssh_config=None)
    argv = [sys.executable, "-m", "cockpit", "--config", str(config), "status"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "refused" in done.stderr
    assert "Traceback" not in done.stderr
