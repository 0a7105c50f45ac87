"""GPUs for a cluster that stands still: what its probes would have told, put where they put it."""

from __future__ import annotations

from dataclasses import replace

from cockpit.cluster import Cluster
from cockpit.gpu_models import Driver, DriverState, Gpu, GpuSample, NodeReading
from cockpit.models import Node, Snapshot
from cockpit.sources.base import Beat
from cockpit.sources.gpus import GPUS, FleetReading, NodeWatch


def read_gpus(cluster: Cluster, **odd: dict[str, object]) -> None:
    """Every node that is up tells of its GPUs; `odd` changes the third GPU of a node, `p5_8={"temp_c": 93}`."""
    now, steady = cluster.clock.now(), cluster.clock.steady()
    watches = {}
    for place, node in enumerate(cluster.view.nodes or ()):
        if node.gpus_total and node.address and not node.state.has("down", "powering_up", "powered_down"):
            reading = NodeReading(
                now, 1, driver=Driver(DriverState.OK), gpus=_samples(node, place, now), interval_s=2.0
            )
            for name, changes in odd.items():
                if node.name.endswith(name.replace("_", "-")):
                    third = replace(reading.gpus[2], **changes)  # type: ignore[arg-type]
                    reading = replace(reading, gpus=(*reading.gpus[:2], third, *reading.gpus[3:]))
            watches[node.name] = NodeWatch(node.name, reading, steady)
    cluster.store.put(GPUS.name, Beat(Snapshot(now, 0.01, FleetReading(watches)), 2.0, steady + 2))


def _samples(node: Node, place: int, now: float) -> tuple[GpuSample, ...]:
    return tuple(_sample(node, place, slot, now) for slot in range(node.gpus_total or 0))


def _sample(node: Node, place: int, slot: int, now: float) -> GpuSample:
    gpu = Gpu(f"{node.name}-{slot}", index=slot, minor=slot, pci=f"0000:{slot:02x}:00", mem_total_mib=81_559)
    used = node.gpu_indices is not None and slot in node.gpu_indices
    util = 80 + (place * 7 + slot * 3) % 20 if used else 0
    return GpuSample(
        gpu, taken_at=now, util_pct=util, temp_c=40 + util / 4, power_w=100 + 5 * util, mem_used_mib=util * 700
    )
