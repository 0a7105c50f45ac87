"""A cluster that stands still with probes on its nodes: what details are made from, one reading a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig
from cockpit.demo.gpu_state import node_ranks
from cockpit.demo.sim import Simulation
from cockpit.formats.kernel_log import KernelEvent
from cockpit.gpu_models import Driver, DriverState, GpuProcess, NodeReading
from cockpit.models import QueueRow
from cockpit.sources.gpu_events import NodeEvents
from cockpit.sources.gpus import FleetReading, NodeWatch
from screens.lines import Line, Link, links
from tests.still import StillClock, StillHost, still_cluster
from tests.still_gpus import sample, tell

Change = Callable[[NodeWatch], NodeWatch]


def watched(
    change: Mapping[str, Change] | None = None, *, kind: str | None = None, **simulation: Any
) -> tuple[Cluster, StillHost, StillClock]:
    """The still cluster, read once, with a live probe on every node that is up; `change` alters single nodes'."""
    cluster, head, clock = still_cluster(ClusterConfig("still", kind=kind), **simulation)
    cluster.read_once()
    put_fleet(cluster, head.sim, clock, change or {})
    return cluster, head, clock


def put_fleet(cluster: Cluster, sim: Simulation, clock: StillClock, change: Mapping[str, Change]) -> None:
    """What the source `gpus` answers now: every GPU well, every rank where the simulation has it."""
    up = [name for name, node in sim.nodes.items() if node.responding and node.boot_at is not None]
    found = {name: _watch(sim, name, clock) for name in up}
    found |= {name: alter(found[name]) for name, alter in change.items() if name in found}
    tell(cluster, FleetReading(found))


def _watch(sim: Simulation, name: str, clock: StillClock) -> NodeWatch:
    now = clock.now()
    held = [
        GpuProcess(
            f"GPU-{rank.gpu}",
            rank.pid,
            float(rank.mem_mib),
            exists=True,
            user=rank.uid_of,
            command=rank.program,
            job_id=rank.job_id,
            rank=float(rank.rank or 0),
            world_size=float(rank.world),
        )
        for rank in node_ranks(sim, sim.nodes[name])
    ]
    reading = NodeReading(
        now,
        1,
        hostname=name,
        boot_id="this",
        booted_at=now - 86_400,
        interval_s=2.0,
        driver=Driver(DriverState.OK, version="570.133.20"),
        gpus=tuple(sample(slot, now) for slot in range(8)),
        processes=tuple(held),
        processes_at=now,
        log_source="journal",
    )
    return NodeWatch(name, reading, clock.steady())


def with_reading(**changes: Any) -> Change:
    """Change what a node's reading says."""
    return lambda one: replace(one, reading=replace(one.reading or NodeReading(0, 0), **changes))


def with_gpu(slot: int, **changes: Any) -> Change:
    """Change one GPU's sample."""

    def change(one: NodeWatch) -> NodeWatch:
        assert one.reading is not None
        gpus = list(one.reading.gpus)
        gpus[slot] = replace(gpus[slot], **changes)
        return replace(one, reading=replace(one.reading, gpus=tuple(gpus)))

    return change


def with_events(*events: KernelEvent) -> Change:
    """What the node's kernel told."""
    return lambda one: replace(one, events=NodeEvents(events))


def lead(cluster: Cluster) -> QueueRow:
    """The big training run over several nodes."""
    queue = cluster.view.queue
    assert queue is not None
    return max(queue.rows, key=lambda row: (row.lead.state == "R", row.lead.node_count or 0))


def row_named(cluster: Cluster, name: str) -> QueueRow:
    """The line of the job of that name."""
    queue = cluster.view.queue
    assert queue is not None
    return next(row for row in queue.rows if row.lead.name == name)


def text(line: Line) -> str:
    """A line as it is read."""
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in line)


def texts(lines: list[Line]) -> str:
    """All lines as they are read."""
    return "\n".join(map(text, lines))


def with_text(lines: list[Line], wanted: str) -> Line:
    """The first line that holds the text; AssertionError when there is none."""
    found = next((line for line in lines if wanted in text(line)), None)
    assert found is not None, f"{wanted!r} is not in\n{texts(lines)}"
    return found


def leads_to(lines: list[Line]) -> set[tuple[str, str]]:
    """Every (kind, key) that some link leads to."""
    return {(subject.kind, subject.key) for line in lines for subject in links(line)}


def link_texts(line: Line) -> list[str]:
    """The texts of a line's links."""
    return [piece.text for piece in line if isinstance(piece, Link)]
