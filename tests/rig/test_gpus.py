"""GPU faults on real nodes over real SSH: each is seen as what it is, and a hung one harms nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.fleet import GpuRow, watch_freshness
from cockpit.gpu_models import GpuSample, Lack, Missing, known
from cockpit.models import Freshness, Health
from screens.gpu_table import GpuTable
from tests.rig import Rig
from tests.rig.files import USERS
from tests.rig.nvml import missing
from tests.rig.nvml.control import NvmlControl
from tests.rig.test_cockpit import terminal

pytestmark = [
    pytest.mark.rig,
    pytest.mark.xdist_group("rig"),
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


def eventually(true: Callable[[], object], what: str, timeout_s: float = 20.0) -> float:
    """Wait until it is true; returns the seconds it took, which are printed, not asserted."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < timeout_s, f"never came true: {what}"
        time.sleep(0.05)
    took_s = time.monotonic() - began
    print(f"{what}: seen after {took_s:.1f} s")
    return took_s


@pytest.fixture(scope="module")
def cluster(rig: Rig) -> Iterator[Cluster]:
    config = load_config(rig.config("gpus.yaml"))
    found = Cluster(next(iter(config.clusters.values())))
    found.start()
    eventually(lambda: len([row for row in found.view.gpu_rows if row.sample]) == 8 * len(rig.static_nodes), "all GPUs")
    yield found
    found.stop()


def rows(cluster: Cluster, node: str) -> list[GpuRow]:
    return [row for row in cluster.view.gpu_rows if row.node == node]


def told(cluster: Cluster, node: str) -> int:
    watch = rows(cluster, node)[0].watch
    return watch.reading.number if watch and watch.reading else 0


def problem(cluster: Cluster, key: str) -> bool:
    return any(found.key == key and found.health is not Health.OK for found in cluster.problems())


Fault = tuple[Callable[[NvmlControl], None], str]
FAULTS: dict[str, Fault] = {
    "lost": (lambda gpus: gpus.lost(3), "lost"),
    "unknown error": (lambda gpus: gpus.failing(3), "lost"),
    "hot": (lambda gpus: gpus.hot(3), "hot"),
    "throttled": (lambda gpus: gpus.hot(3), "throttle:40"),
    "uncorrected ECC": (lambda gpus: gpus.ecc(3, uncorrected=2), "ecc"),
    "remap pending": (lambda gpus: gpus.remap(3, pending=True), "remap_pending"),
    "remap failed": (lambda gpus: gpus.remap(3, failed=True), "remap_failed"),
    "NVLink down": (lambda gpus: gpus.nvlinks_down(3, 5), "nvlink"),
    "recovery action": (lambda gpus: gpus.recovery_action(3, 2), "recovery"),
    "Xid 79": (lambda gpus: gpus.xid(3, 79), "xid:79"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_seen_as_what_it_is(rig: Rig, cluster: Cluster, name: str) -> None:
    node = rig.static_nodes[0]
    set_fault, code = FAULTS[name]
    eventually(lambda: code not in [finding.code for finding in rows(cluster, node)[3].findings], "well before")
    set_fault(rig.nvml(node))
    eventually(lambda: code in [finding.code for finding in rows(cluster, node)[3].findings], name)
    assert [row.slot for row in rows(cluster, node)] == list(range(8))  # a lost one keeps its row
    assert all(not row.findings for row in rows(cluster, rig.static_nodes[1]))
    eventually(lambda: problem(cluster, f"gpu:{node}:{code}"), f"{name} as a problem")


def test_the_same_xid_twice_is_two(rig: Rig, cluster: Cluster) -> None:
    node = rig.static_nodes[2]
    gpus = rig.nvml(node)
    gpus.xid(1, 48)
    eventually(lambda: any(f.code == "xid:48" for f in rows(cluster, node)[1].findings), "first Xid 48")
    gpus.xid(1, 48)
    eventually(lambda: any("×2" in f.title for f in rows(cluster, node)[1].findings), "second Xid 48")


def test_a_hung_driver_leaves_the_nodes_other_readings_alive(rig: Rig, cluster: Cluster) -> None:
    node = rig.static_nodes[1]
    state = next(column for column in GpuTable(cluster.clock.steady).columns() if column.id == "state")
    before = told(cluster, node)
    eventually(lambda: told(cluster, node) > before, "an answer of the driver")
    rig.nvml(node).hang()  # right after an answer: the next question is the whole interval away

    def silent() -> bool:
        return all(str(state.cell(row)[0]).startswith("driver silent") for row in rows(cluster, node))

    eventually(silent, "driver silent in the table", 5.0)  # the promise of the design, so the time counts here
    assert {row.health for row in rows(cluster, node)} == {Health.UNKNOWN}
    assert not problem(cluster, f"driver:{node}")  # an answer may still come

    def slow() -> bool:
        watch = rows(cluster, node)[0].watch
        reading = watch.reading if watch else None
        return reading is not None and reading.driver.state.value in ("slow", "hung")

    eventually(slow, "driver slow or hung", 60)
    eventually(lambda: problem(cluster, f"driver:{node}"), "as a problem")
    watch = rows(cluster, node)[0].watch
    assert watch is not None
    number = told(cluster, node)
    eventually(
        lambda: (w := rows(cluster, node)[0].watch) and w.reading and w.reading.number > number + 1, "still told"
    )
    assert watch_freshness(watch, cluster.clock.steady()) is Freshness.LIVE


def test_a_frozen_node_goes_stale_and_the_others_keep_their_pace(rig: Rig, cluster: Cluster) -> None:
    frozen, other = rig.static_nodes[3], rig.static_nodes[0]
    rig.freeze(frozen)
    try:

        def stale() -> bool:
            watch = rows(cluster, frozen)[0].watch
            return watch_freshness(watch, cluster.clock.steady()) is Freshness.STALE

        eventually(stale, "frozen node stale", 15)
        watch = rows(cluster, other)[0].watch
        assert watch_freshness(watch, cluster.clock.steady()) is Freshness.LIVE
        assert rows(cluster, frozen)[0].sample is not None  # the last good values stay
    finally:
        rig.thaw(frozen)
    eventually(
        lambda: watch_freshness(rows(cluster, frozen)[0].watch, cluster.clock.steady()) is Freshness.LIVE,
        "thawed node live again",
        60,
    )


def test_nodes_that_boot_are_picked_up_and_those_that_go_are_let_go(rig: Rig, cluster: Cluster) -> None:
    node = rig.dynamic_nodes[0]
    assert rows(cluster, node) == []
    rig.slurm("scontrol", "update", f"nodename={node}", "state=POWER_UP")
    eventually(lambda: [row for row in rows(cluster, node) if row.sample], "booted node", 60)
    rig.slurm("scontrol", "update", f"nodename={node}", "state=POWER_DOWN")
    eventually(lambda: rows(cluster, node) == [], "node that went", 60)


def test_a_job_is_joined_to_its_gpus(rig: Rig, cluster: Cluster) -> None:
    job = rig.submit("srun sleep 300", nodes=1, gpus_per_node="h100:4", nodelist=rig.static_nodes[2])
    node = rig.static_nodes[2]
    eventually(lambda: [row.allocated for row in rows(cluster, node)].count(True) == 4, "allocated GPUs")
    eventually(lambda: held_by(cluster, node) == {job}, "their job")


def test_a_value_that_is_not_supported_is_no_number_and_no_fault(rig: Rig, cluster: Cluster) -> None:
    node = rig.static_nodes[2]
    rig.nvml(node).function("nvmlDeviceGetTemperature", 3)

    def unsupported() -> bool:
        found = rows(cluster, node)[0].sample
        return found is not None and isinstance(found.temp_c, Missing) and found.temp_c.kind is Lack.UNSUPPORTED

    eventually(unsupported, "temperature not supported")
    assert not rows(cluster, node)[0].findings
    assert known(sample_of(cluster, node).power_w) is not None  # the other values go on


def test_a_driver_of_another_version_is_told(rig: Rig) -> None:
    """A process that asked before the upgrade goes on; a new one is refused, so this takes a fresh cockpit."""
    node = rig.static_nodes[1]
    rig.nvml(node).driver(matches=False)
    argv = [sys.executable, "-m", "cockpit", "--config", str(rig.config("mismatch.yaml")), "gpus", "--json"]
    told = json.loads(subprocess.run(argv, capture_output=True, timeout=60, check=False).stdout)
    watched = next(watch for watch in told["nodes"] if watch["node"] == node)
    assert watched["driver"] == "failed"
    assert "mismatch" in watched["driver_why"].lower()
    assert len([gpu for gpu in told["gpus"] if gpu["node"] == node]) == 8
    assert [gpu["util_pct"] for gpu in told["gpus"] if gpu["node"] == node] == [None] * 8


def test_a_process_on_a_gpu_is_joined_to_its_user_job_and_rank(rig: Rig, cluster: Cluster) -> None:
    node = rig.static_nodes[2]
    job = rig.submit("srun -n 4 sleep 300", nodes=1, ntasks=4, gpus_per_node="h100:4", nodelist=node, uid=USERS["bob"])
    pids = rig.wait_for(lambda: ranks_of(rig, node, job), 30, "four ranks")
    for rank, pid in pids.items():
        rig.nvml(node).process(rank, pid, 2**30)

    def joined() -> bool:
        found = {int(known(p.procid) or 0): p for row in rows(cluster, node) for p in row.processes if p.user == "bob"}
        return {rank: process.pid for rank, process in found.items()} == pids

    eventually(joined, "processes with user and rank")
    eventually(lambda: held_by(cluster, node) == {job}, "their job")


def ranks_of(rig: Rig, node: str, job: int) -> dict[int, int]:
    """Rank -> pid of the four tasks, as scontrol on the node tells them."""
    lines = rig.ssh(node, ["scontrol", "listpids", str(job)]).stdout.decode().splitlines()[1:]
    found = [line.split() for line in lines]
    ranks = {
        int(words[4]): int(words[0]) for words in found if len(words) == 5 and words[4].isdigit() and words[2] == "0"
    }
    return ranks if len(ranks) == 4 else {}


def sample_of(cluster: Cluster, node: str) -> GpuSample:
    found = rows(cluster, node)[0].sample
    assert found is not None
    return found


def held_by(cluster: Cluster, node: str) -> set[int]:
    return {row.job.job_id for row in rows(cluster, node) if row.allocated and row.job}


def probes(rig: Rig, node: str) -> bytes:
    done = rig.ssh(
        node, ["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'interval=[0-9.]*'"]
    )
    return done.stdout


def test_no_probe_is_left_after_a_cockpit_was_killed(rig: Rig) -> None:
    node = rig.static_nodes[0]
    argv = [sys.executable, "-m", "cockpit", "--config", str(rig.config("killed.yaml"))]
    before = probes(rig, node).count(b"interval=")
    with terminal(argv) as screen:
        eventually(lambda: probes(rig, node).count(b"interval=") > before, "probe runs")
        os.kill(screen.process.pid, signal.SIGKILL)
        screen.process.wait()
        eventually(lambda: probes(rig, node).count(b"interval=") <= before, "probe gone", 20)


def test_the_command_line_tells_every_gpu(rig: Rig) -> None:
    argv = [sys.executable, "-m", "cockpit", "--config", str(rig.config("cli.yaml")), "gpus"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    told = [line for line in done.stdout.splitlines() if not line.startswith("! ")]  # what could not be read
    assert len(told) == 1 + 8 * len(rig.static_nodes)
