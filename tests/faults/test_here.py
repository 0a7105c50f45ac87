"""What fails on the machine of the cockpit itself: its disk, its clock, its signals, its memory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from actions.audit import AuditLog
from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config import ClusterConfig
from cockpit.demo.sim import Simulation
from cockpit.models import Fault, FaultError, FaultKind, Freshness
from cockpit.sources.gpus import GPUS
from cockpit.sources.slurm import NODES
from tests.faults.conftest import Seen
from tests.faults.seat import Seat
from tests.rig import Rig
from tests.rig.nvml import missing
from tests.screens.helpers import screen_text
from tests.screens.tmux import needs_tmux
from tests.still import StillClock, StillHost, still_cluster
from tests.still_gpus import busy_fleet, tell

on_the_rig = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
HOUR_S = 3600.0


def cockpit(rig: Rig, state: Path, *words: str) -> subprocess.Popen[bytes]:
    """The command line on the rig, with its state in that folder."""
    argv = [sys.executable, "-m", "cockpit", "--config", str(rig.config("here.yaml")), *words]
    env = {**os.environ, "XDG_STATE_HOME": str(state)}
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


def state_of(rig: Rig, node: str) -> str:
    return rig.slurm("sinfo", "-h", "-N", "-n", node, "-O", "StateComplete:0").stdout.decode().split()[0]


class TestTheDiskIsFull:
    """The folder of the state is a file system of its own without a free byte."""

    pytestmark: ClassVar = [*on_the_rig, *needs_tmux, pytest.mark.skipif(missing() is not None, reason=missing() or "")]

    @pytest.fixture
    def full(self, tmp_path: Path) -> Iterator[Path]:
        state = tmp_path / "state"
        state.mkdir(mode=0o700)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(state)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")
        try:
            (state / "cockpit").mkdir(mode=0o700)
            with (state / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
                while filler.write(b"x" * 4096):
                    pass
            with pytest.raises(OSError, match="No space"):
                (state / "more").write_bytes(b"x" * 8192)
            (state / "more").unlink()
            yield state
        finally:
            subprocess.run(["umount", "-l", str(state)], check=False)

    def test_nothing_is_changed_without_its_record(self, rig: Rig, full: Path, seen: Seen) -> None:
        node = rig.static_nodes[0]
        process = cockpit(rig, full, "drain", node, "--reason", "full disk", "--yes")
        out, err = process.communicate(timeout=60)
        assert process.returncode == 4, (out, err)
        assert b"no change without its record" in out + err
        assert "drain" not in state_of(rig, node)
        seen("the drain was refused (exit 4) and Slurm was asked for nothing")

    def test_the_cockpit_shows_the_cluster_all_the_same(self, rig: Rig, full: Path, tmp_path: Path, seen: Seen) -> None:
        seat = Seat(rig, tmp_path, full)
        try:
            seat.start()
            seat.keys("x")
            seat.wait(lambda text: "space" in text, "the export that failed is told")
            seat.keys("q")
            seat.tmux.wait(lambda text: "ended 0" in text)
        finally:
            seat.close()
        seen("it starts, shows all, an export says that there is no space left, and it ends as always")


@pytest.mark.rig
@pytest.mark.xdist_group("rig")
def test_sigterm_in_the_middle_of_an_action_leaves_the_record(rig: Rig, tmp_path: Path, seen: Seen) -> None:
    node = rig.dynamic_nodes[0]
    # A node that boots keeps the action watching, with its command already sent.
    process = cockpit(rig, tmp_path, "scale", "gpu", str(len(rig.static_nodes) + 1), "--yes")
    log = AuditLog("rig", tmp_path / "cockpit" / "audit")
    rig.wait_for(lambda: log.path.exists() and "power" in state_of(rig, node), 20, "the command to be sent")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert process.returncode, (out, err)
    assert b"Traceback" not in err
    assert lines[0]["phase"] == "begin"
    assert lines[0]["commands"]
    (entry,) = log.entries()
    assert entry.outcome in ("outcome unknown", "cancelled"), entry
    told = cockpit(rig, tmp_path, "audit").communicate(timeout=60)[0].decode()
    assert entry.outcome in told
    seen(f"exit status {process.returncode}; the record names what was sent, and `cockpit audit` says {entry.outcome}")


class JumpyClock(StillClock):
    """A clock whose wall time can be set wrong, while the steady one goes on."""

    jump_s = 0.0

    def now(self) -> float:
        return self.time + self.jump_s


@pytest.mark.parametrize("jump_s", [-86_400.0, 86_400.0, -1e9])
async def test_the_wall_clock_jumps(jump_s: float, seen: Seen) -> None:
    app, clock = jumpy_app()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        cluster = app.cockpit.cluster
        cluster.read_once()
        tell(cluster, busy_fleet(cluster))
        clock.time += 3
        clock.jump_s = jump_s
        assert cluster.store.state(NODES).freshness(clock.steady()) is Freshness.LIVE
        cluster.read_once()
        for key in "1234":
            await pilot.press(key)
            await pilot.pause()
            app.cockpit.refresh_chrome()
            await pilot.pause()
            strip = screen_text(app).split("\n")[1]
            assert "● nodes 0s" in strip, strip
            assert "-" not in strip.replace("· -", ""), strip
    seen("ages count on the steady clock: nothing turned stale, nothing was younger than it is")


def jumpy_app() -> tuple[CockpitApp, JumpyClock]:
    """The cockpit on a still cluster whose clock can be set wrong."""
    clock = JumpyClock()
    head = StillHost(Simulation(clock=lambda: clock.time))
    cluster = Cluster(ClusterConfig("still"), clock=clock, head=head)
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    cluster.store.declare(GPUS, 1.0)
    return CockpitApp(Clusters.only(cluster)), clock


def test_a_suspended_laptop_wakes_up(seen: Seen) -> None:
    """The steady clock counts the night, so nothing from before it looks fresh."""
    cluster, head, clock = still_cluster()
    cluster.store.declare(GPUS, 1.0)
    cluster.read_once()
    tell(cluster, busy_fleet(cluster))
    clock.time += 8 * HOUR_S
    states = {state.name: state.freshness(clock.steady()) for state in cluster.store.states()}
    assert set(states.values()) == {Freshness.LOST}
    head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "SSH to head", "no route to it"))
    cluster.read_once()
    assert cluster.view.nodes, "an outage is never an empty list"
    head.fault = None
    cluster.read_once()
    assert cluster.store.state(NODES).freshness(clock.steady()) is Freshness.LIVE
    seen("all is `lost` until the first new answer, and kept on the screen meanwhile")


async def test_a_job_name_of_a_megabyte(seen: Seen) -> None:
    app, _ = jumpy_app()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        cluster = app.cockpit.cluster
        cluster.read_once()
        head = cluster.head
        assert isinstance(head, StillHost)
        real = head.run

        def run(argv: list[str], **options: object) -> object:
            answer = real(argv, **options)  # type: ignore[arg-type]
            if argv[0].endswith("squeue"):
                object.__setattr__(answer, "stdout", answer.stdout.replace(b"llama3", b"\x1b[31m" + b"n" * 2**20))
            return answer

        head.run = run  # type: ignore[method-assign, assignment]
        before = len(cluster.view.queue.jobs) if cluster.view.queue else 0
        cluster.read_once()
        queue = cluster.view.queue
        assert queue is not None
        assert len(queue.jobs) == before
        assert any(job.name.startswith("␛[31mnnn") and job.name.endswith("n…") for job in queue.jobs)
        for keys in (("4",), ("enter",), ("escape", "slash", *"name:nnn", "enter")):
            await pilot.press(*keys)
            await pilot.pause()
            text = screen_text(app)
            assert max(len(line) for line in text.split("\n")) <= 120
            assert "\x1b" not in text
    seen("one row a job as before, cut where the column ends; filter and details work")
