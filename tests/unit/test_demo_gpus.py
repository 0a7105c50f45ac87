"""The demo's GPUs, read as any cluster's: real hosts, real streams, the real probe on every node."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cockpit.config_file import load_config
from cockpit.demo.cluster import DemoCluster
from cockpit.demo.gpu_state import uuid_of
from cockpit.demo.machines import GPUS
from cockpit.demo.sim import Simulation
from cockpit.gpu_models import DriverState, GpuSample, NodeReading, known
from cockpit.hosts import open_host
from cockpit.hosts.pool import NodePool
from cockpit.sources.gpus import FleetReading, FleetStreams, Target

WITHIN_S = 60.0


class Fleet:
    """The cockpit's streams to some of a demo's nodes."""

    def __init__(self, demo: DemoCluster, config: Path, nodes: list[str]) -> None:
        cluster = next(iter(load_config(config).clusters.values()))
        self.sim = demo.sim
        self._head = open_host(cluster.head, ssh_config=cluster.ssh_config)
        targets = [Target(name, demo.sim.nodes[name].own_address) for name in nodes]
        self.streams = FleetStreams(
            lambda: NodePool(self._head, cluster.nodes, ssh_config=cluster.ssh_config),
            lambda: targets,
            most=cluster.nodes.max,
            interval_s=0.5,
        )

    def wait(self, true: Callable[[FleetReading], bool]) -> FleetReading:
        """The first reading of the fleet for which this is true."""
        until = time.monotonic() + WITHIN_S
        while not true(fleet := self.streams.collect()):
            assert time.monotonic() < until, {name: watch.fault for name, watch in fleet.nodes.items()}
            time.sleep(0.1)
        return fleet

    def readings(self) -> dict[str, NodeReading]:
        """Every node with its GPUs read once, and who is on them."""
        fleet = self.wait(lambda fleet: all(is_full(watch.reading) for watch in fleet.nodes.values()))
        return {name: watch.reading for name, watch in fleet.nodes.items() if watch.reading is not None}

    def close(self) -> None:
        self.streams.close()
        self._head.close()


def is_full(reading: NodeReading | None) -> bool:
    """Whether all that comes at different paces has come."""
    return (
        reading is not None
        and len(reading.gpus) == GPUS
        and all(sample.taken_at is not None and sample.slow_at is not None for sample in reading.gpus)
        and all(process.exists is not None for process in reading.processes)
        and bool(reading.mounts and reading.efa and reading.log_source)
    )


def up(sim: Simulation) -> list[str]:
    return [node.name for node in sim.nodes.values() if node.reachable]


@contextmanager
def watched(
    scenario: str,
    choose: Callable[[Simulation], list[str]] = up,
    clock: Callable[[], float] = time.time,
) -> Iterator[Fleet]:
    demo = DemoCluster(12, scenario, clock=clock)
    with demo as config:
        fleet = Fleet(demo, config, choose(demo.sim))
        try:
            yield fleet
        finally:
            fleet.close()


def lead_nodes(sim: Simulation) -> list[str]:
    assert sim.lead_id is not None
    return list(sim.jobs[sim.lead_id].hosts)


def values(sample: GpuSample, *names: str) -> list[float]:
    """Readings that must be there, in this order."""
    found = [known(getattr(sample, name)) for name in names]
    assert None not in found
    return [value for value in found if value is not None]


def is_training(sample: GpuSample) -> bool:
    util, power, memory, temp, hbm = values(sample, "util_pct", "power_w", "mem_used_mib", "temp_c", "hbm_temp_c")
    return (
        93 <= util <= 100
        and 550 <= power <= 690
        and 60 <= memory / 1024 <= 76
        and 58 <= temp <= 72
        and hbm == pytest.approx(temp + 8, abs=1)
    )


def is_at_rest(sample: GpuSample) -> bool:
    util, power, memory, temp = values(sample, "util_pct", "power_w", "mem_used_mib", "temp_c")
    return util == 0 and 60 <= power <= 85 and memory < 100 and 28 <= temp <= 45


def test_every_node_that_is_up_tells_eight_gpus_and_their_jobs() -> None:
    with watched("busy") as fleet:
        readings, sim = fleet.readings(), fleet.sim
        assert set(readings) == set(up(sim))
        for name, reading in readings.items():
            check_node(sim, name, reading)
        check_ranks(sim, readings)
        check_use(sim, readings)
        serials = {sample.gpu.serial for reading in readings.values() for sample in reading.gpus}
        assert len(serials) == GPUS * len(readings)


def check_node(sim: Simulation, name: str, reading: NodeReading) -> None:
    """The machine itself, and GPUs that keep their names."""
    assert reading.driver.state is DriverState.OK
    assert (reading.hostname, reading.cpus, reading.log_source) == (name, 192, "kmsg")
    assert [sample.gpu.uuid for sample in reading.gpus] == [uuid_of(name, gpu) for gpu in range(GPUS)]
    assert set(reading.pci_gpus) == {sample.gpu.pci for sample in reading.gpus}
    assert [sample.gpu.minor for sample in reading.gpus] == list(range(GPUS))
    assert reading.booted_at == pytest.approx(sim.nodes[name].boot_at, abs=2)
    assert {mount.path for mount in reading.mounts if mount.used_mib} == {
        *("/", "/home", "/fsx", "/scratch", "/dev/shm"),
    }
    assert len(reading.efa) == (31 if name == short_of_efa(sim) else 32)
    assert not reading.not_read
    assert reading.bad_lines == 0


def short_of_efa(sim: Simulation) -> str:
    """The node that the scenario `busy` gives one EFA device less."""
    return [node.name for node in sim.nodes.values() if node.static and node.reachable][-1]


def check_ranks(sim: Simulation, readings: dict[str, NodeReading]) -> None:
    """Processes match Slurm's jobs: user, id, GPU, and ranks that count through all nodes of a job."""
    for name, reading in readings.items():
        place = {sample.gpu.key: number for number, sample in enumerate(reading.gpus)}
        told = {(process.job_id, place[process.gpu], process.user) for process in reading.processes}
        shares = sim.nodes[name].shares.items()
        assert told == {(job, gpu, sim.jobs[job].ask.user) for job, share in shares for gpu in share.gpus}
        assert len({process.pid for process in reading.processes}) == len(reading.processes)
    assert sim.lead_id is not None
    job = sim.jobs[sim.lead_id]
    processes = [p for host in job.hosts for p in readings[host].processes if p.job_id == job.job_id]
    assert sorted(known(p.rank) or 0 for p in processes) == list(range(len(job.hosts) * GPUS))
    assert {known(p.world_size) for p in processes} == {float(len(job.hosts) * GPUS)}
    for host in job.hosts:
        assert {known(p.procid) for p in readings[host].processes} == {float(job.hosts.index(host))}
        for p in readings[host].processes:
            assert p.started_at == pytest.approx((job.started_at or 0) + 8, abs=2)


def check_use(sim: Simulation, readings: dict[str, NodeReading]) -> None:
    lead = lead_nodes(sim)
    assert all(is_training(sample) for host in lead for sample in readings[host].gpus)
    free = [
        sample
        for name, reading in readings.items()
        for gpu, sample in enumerate(reading.gpus)
        if gpu not in sim.nodes[name].gpus_used
    ]
    assert free
    assert all(is_at_rest(sample) for sample in free)


def test_a_second_look_sees_the_same_gpus_and_processes() -> None:
    seen = []
    demo = DemoCluster(12, "calm")
    with demo as config:
        for _ in range(2):
            fleet = Fleet(demo, config, lead_nodes(demo.sim)[:1])
            (reading,) = fleet.readings().values()
            fleet.close()
            seen.append(([s.gpu for s in reading.gpus], [(p.pid, p.started_at) for p in reading.processes]))
    assert seen[0] == seen[1]


def test_gpus_come_to_rest_when_their_job_ends() -> None:
    with watched("calm", lambda sim: lead_nodes(sim)[:1]) as fleet:
        ((name, reading),) = fleet.readings().items()
        assert all(is_training(sample) for sample in reading.gpus)
        with fleet.sim.current() as sim:
            assert sim.lead_id is not None
            sim.finish(sim.jobs[sim.lead_id], "COMPLETED")

        def over(now: FleetReading) -> bool:
            reading = now.nodes[name].reading
            return reading is not None and all(known(s.util_pct) == 0 for s in reading.gpus) and not reading.processes

        fleet.wait(over)


def test_calm_has_nothing_wrong() -> None:
    with watched("calm") as fleet:
        for reading in fleet.readings().values():
            assert reading.messages == ()
            for sample in reading.gpus:
                assert sample.lost is None
                assert set(sample.throttle) <= {"idle"}
                assert values(sample, "remap_pending", "ecc_uncorrected", "nvlinks_down") == [0, 0, 0]


def test_hang_shows_one_rank_that_did_not_come() -> None:
    with watched("hang", lead_nodes) as fleet:
        readings = fleet.readings()
        assert len(readings) >= 2
        samples = [sample for reading in readings.values() for sample in reading.gpus]
        still = [sample for sample in samples if known(sample.util_pct) == 0]
        assert len(still) == 1
        for sample in samples:
            util, power, mem_util = values(sample, "util_pct", "power_w", "mem_util_pct")
            assert (util == 100 and mem_util <= 5 and 120 <= power <= 165) or sample is still[0]
        ranks = {known(p.rank): p.gpu for reading in readings.values() for p in reading.processes}
        assert set(ranks) == {float(rank) for rank in range(len(samples))}
        assert still[0].gpu.key in ranks.values()


def test_hot_gpu_throttles_and_lags_behind_its_job() -> None:
    with watched("hot-gpu", lead_nodes) as fleet:
        samples = [sample for reading in fleet.readings().values() for sample in reading.gpus]
        hot = [sample for sample in samples if (known(sample.temp_c) or 0) > 85]
        assert len(hot) == 1
        temp, clock, power = values(hot[0], "temp_c", "sm_clock_mhz", "power_w")
        assert temp == pytest.approx(91, abs=1)
        assert clock == pytest.approx(1100, abs=30)
        assert "HW thermal" in hot[0].throttle
        others = [sample for sample in samples if sample is not hot[0]]
        assert all(is_training(sample) for sample in others)
        assert power < 0.8 * min(known(sample.power_w) or 0 for sample in others)


def test_xid_takes_a_gpu_off_the_bus_while_one_looks() -> None:
    # The fall comes 30 s after the start; this start was 18 s ago.
    with watched("xid", lambda sim: sorted(sim.struck), clock=lambda: time.time() - 18) as fleet:
        fallen = next(name for name, found in fleet.sim.struck.items() if found[0].kind == "lost")
        gpu = fleet.sim.struck[fallen][0].gpu
        readings = fleet.readings()
        before = [sample.gpu.uuid for sample in readings[fallen].gpus]

        def fell(now: FleetReading) -> bool:
            watch = now.nodes[fallen]
            told = [event for event in watch.events.events if event.code == 79]
            return watch.reading is not None and watch.reading.gpus[gpu].lost is not None and bool(told)

        now = fleet.wait(fell).nodes[fallen].reading
        assert now is not None
        lost = now.gpus[gpu].lost
        assert lost is not None
        assert lost.code == 15
        assert [sample.gpu.uuid for sample in now.gpus] == before
        others = fleet.wait(lambda fleet: spinning(fleet.nodes[fallen].reading, gpu))
        codes = [event.code for event in others.nodes[fallen].events.events]
        assert codes.count(79) == 1
        waits = next(name for name in fleet.sim.struck if name != fallen)
        pending = [known(sample.remap_pending) for sample in readings[waits].gpus]
        assert sorted(pending, key=bool) == [0] * 7 + [1]
        assert [event.code for event in others.nodes[waits].events.events] == [63]


def spinning(reading: NodeReading | None, lost: int) -> bool:
    """Whether all but the lost GPU wait in a collective operation."""
    others = [] if reading is None else [s for gpu, s in enumerate(reading.gpus) if gpu != lost]
    return bool(others) and all(known(s.util_pct) == 100 and (known(s.power_w) or 0) < 165 for s in others)


def test_idle_holds_gpus_without_using_them() -> None:
    with watched("idle") as fleet:
        readings, sim = fleet.readings(), fleet.sim
        lead = lead_nodes(sim)
        assert len(lead) == 4
        for host in lead:
            assert all(known(sample.util_pct) == 0 for sample in readings[host].gpus)
            assert all((known(sample.mem_used_mib) or 0) > 50_000 for sample in readings[host].gpus)
            assert len(readings[host].processes) == GPUS
        empty = [name for name in readings if not sim.nodes[name].shares]
        assert len(empty) >= 3
        assert all(is_at_rest(sample) for name in empty for sample in readings[name].gpus)


def test_a_node_without_a_machine_refuses() -> None:
    with watched("busy", lambda sim: [node.name for node in sim.nodes.values() if node.down]) as fleet:
        (watch,) = fleet.wait(lambda fleet: all(w.fault is not None for w in fleet.nodes.values())).nodes.values()
        assert watch.reading is None


def processes_of(folder: Path) -> list[int]:
    """Processes with the demo's folder on their command line: the probes and their children."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_stop_ends_every_probe_and_removes_the_folder() -> None:
    demo = DemoCluster(12, "calm")
    config = demo.start()
    folder = config.parent
    fleet = Fleet(demo, config, up(demo.sim))
    fleet.readings()
    assert len(processes_of(folder)) >= 2 * len(up(demo.sim))
    demo.stop()
    until = time.monotonic() + 5
    while processes_of(folder) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_of(folder) == []
    assert not folder.exists()
    fleet.close()
