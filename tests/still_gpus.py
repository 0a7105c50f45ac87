"""GPUs that stand still: readings of a still cluster's nodes, told by hand, with some of everything that goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cockpit.cluster import Cluster
from cockpit.gpu_models import (
    Driver,
    DriverState,
    Gpu,
    GpuProcess,
    GpuSample,
    KernelMessage,
    Lack,
    Missing,
    NodeReading,
)
from cockpit.models import Fault, FaultKind, Job, Node, Snapshot
from cockpit.sources.base import Beat
from cockpit.sources.gpu_events import NodeEvents
from cockpit.sources.gpus import GPUS, FleetReading, NodeWatch

BOOT = "b007"
UNREACHED = Fault(FaultKind.UNREACHABLE, "reaching gpu-st-p5-8", "no route to host", "is it up?")


def sample(slot: int, at: float, **changes: object) -> GpuSample:
    """An H100 that works hard and is well; its numbers depend on nothing but its place."""
    gpu = Gpu(
        f"GPU-{slot}", slot, slot, f"GPU-{slot}", f"0000:{0x53 + 17 * slot:02x}:00", "NVIDIA H100 80GB HBM3",
        mem_total_mib=81_559, sm_clock_max_mhz=1980, pcie_gen_max=5, pcie_width_max=16,
    )  # fmt: skip
    good = GpuSample(
        gpu, at, at, util_pct=90 + slot, mem_util_pct=40 + slot, mem_used_mib=70_000 + 100 * slot, temp_c=58 + slot,
        hbm_temp_c=70 + slot, power_w=610 + 5 * slot, power_limit_w=700, sm_clock_mhz=1755, throttle_mask=0,
        ecc_corrected=0, ecc_uncorrected=0, remap_pending=0, remap_failed=0, nvlinks_down=0, nvlinks=18, pcie_gen=5,
        pcie_width=16, recovery_action=0, recovery="None",
    )  # fmt: skip
    return replace(good, **changes)  # type: ignore[arg-type]


IDLE = {"util_pct": 0, "mem_util_pct": 0, "mem_used_mib": 4, "temp_c": 31, "hbm_temp_c": 38, "power_w": 72}


def reading(node: Node, at: float, samples: Sequence[GpuSample], jobs: Sequence[Job]) -> NodeReading:
    """A node's probe as it would tell these GPUs, each with a process of one of the node's jobs."""
    held = [job for job in jobs for _ in range(job.gpus or 0)][:8]
    processes = [
        GpuProcess(
            one.gpu.key, 4000 + slot, 69_000.0, exists=True, user=job.user, command="python3", job_id=job.job_id,
            rank=float(slot),
        )
        for slot, (one, job) in enumerate(zip(samples, held, strict=False))
    ]  # fmt: skip
    return NodeReading(
        at, 7, hostname=node.name, boot_id=BOOT, interval_s=2.0, driver=Driver(DriverState.OK, version="570.133.20"),
        gpus=tuple(samples), processes=tuple(processes), processes_at=at, log_source="journal",
    )  # fmt: skip


def busy_fleet(cluster: Cluster) -> FleetReading:
    """Every node that is up, with a lost GPU, a hot one, a silent driver, an Xid, and a node nobody reaches."""
    at, steady = cluster.clock.now(), cluster.clock.steady()
    watches: dict[str, NodeWatch] = {}
    for node in cluster.view.nodes or ():
        if node.state.has("powering_up", "powering_down", "powered_down") or not node.gpus_total:
            continue
        if node.state.base == "down":
            watches[node.name] = NodeWatch(node.name, fault=UNREACHED, since=steady - 40)
            continue
        jobs = cluster.view.jobs_of_node.get(node.name, ())
        told = reading(node, at, [sample(slot, at, **({} if jobs else IDLE)) for slot in range(8)], jobs)
        watches[node.name] = NodeWatch(node.name, told, steady)
    _strike(watches, at)
    return FleetReading(watches)


def _strike(watches: dict[str, NodeWatch], at: float) -> None:
    lost = Missing(Lack.LOST, "GPU is lost", 15)
    changes: dict[str, dict[int, dict[str, object]]] = {
        "gpu-st-p5-2": {5: {"lost": lost, "taken_at": at - 300}},
        "gpu-st-p5-3": {1: {"temp_c": 91, "throttle_mask": 0x40, "throttle": ("HW thermal",), "sm_clock_mhz": 1200}},
        "gpu-st-p5-5": {slot: dict(IDLE) for slot in range(8)},
    }
    for name, of in changes.items():
        told = watches[name].reading
        assert told is not None
        gpus = tuple(replace(one, **of.get(slot, {})) for slot, one in enumerate(told.gpus))  # type: ignore[arg-type]
        watches[name] = replace(watches[name], reading=replace(told, gpus=gpus))
    _silence(watches, "gpu-st-p5-7", at)
    _complain(watches, "gpu-st-p5-4", at)


def _silence(watches: dict[str, NodeWatch], name: str, at: float) -> None:
    told = watches[name].reading
    assert told is not None
    gpus = tuple(replace(one, taken_at=at - 4) for one in told.gpus)
    driver = replace(told.driver, state=DriverState.SILENT, since=at - 3)
    watches[name] = replace(watches[name], reading=replace(told, gpus=gpus, driver=driver))


def _complain(watches: dict[str, NodeWatch], name: str, at: float) -> None:
    told = watches[name].reading
    assert told is not None
    line = "NVRM: Xid (PCI:0000:75:00): 31, pid=4002, name=python3, MMU Fault: FAULT_PDE ACCESS_TYPE_READ"
    told = replace(told, messages=(KernelMessage(at - 90, line, BOOT),))
    watches[name] = replace(watches[name], reading=told, events=NodeEvents().after(told))


def tell(cluster: Cluster, fleet: FleetReading) -> None:
    """Hand the cluster what its streams would have collected."""
    clock = cluster.clock
    cluster.store.put(GPUS.name, Beat(Snapshot(clock.now(), 0.01, fleet), 2.0, clock.steady() + 2.0))


def remember(cluster: Cluster, fleet: FleetReading, *, minutes: float = 10.0) -> None:
    """The minutes before: each GPU's use, temperature and power in slow waves, by its place and the time only."""
    for watch in fleet.nodes.values():
        if watch.reading is None:
            continue
        begin = watch.reading.taken_at - minutes * 60
        for step in range(int(minutes * 15)):
            at = begin + 4.0 * step
            wave = abs(step % 30 - 15) / 15  # 0 to 1 and back, every two minutes
            past = [
                replace(one, taken_at=at, util_pct=_waved(one.util_pct, wave), power_w=_waved(one.power_w, wave))
                for one in watch.reading.gpus
            ]
            # Until it was lost it was well; from then on it tells nothing.
            past = [
                replace(one, lost=None if at <= (now.taken_at or 0.0) else now.lost)
                for one, now in zip(past, watch.reading.gpus, strict=True)
            ]
            cluster.streams.history.add(watch.node, replace(watch.reading, taken_at=at, gpus=tuple(past)))


def _waved(value: float | Missing, wave: float) -> float | Missing:
    return value if isinstance(value, Missing) else round(value * (0.6 + 0.4 * wave), 1)
