"""Slurm's view of nodes and jobs joined with what the probes see: one row a GPU. Pure; nothing is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.config import Rules
from cockpit.gpu_models import GpuProcess, GpuSample, known
from cockpit.gpu_rules import Finding, findings
from cockpit.models import Freshness, Health, Job, Node
from cockpit.sources.gpus import FleetReading, NodeWatch

WITHOUT_MACHINE = ("powered_down", "powering_down", "powering_up")
LIVE_S = 8.0
LOST_S = 60.0
_ORDER = list(Health)


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One GPU of the fleet. `sample` is None for one that Slurm counts and no probe has seen.

    `allocated` is what Slurm says of it (None: it does not tell by index), `job` the job that surely has it.
    """

    node: str
    slot: int
    watch: NodeWatch | None
    sample: GpuSample | None = None
    allocated: bool | None = None
    job: Job | None = None
    processes: tuple[GpuProcess, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def key(self) -> str:
        """Stable over refreshes: the node and the GPU's place on it."""
        return f"{self.node}/{self.slot}"

    @property
    def health(self) -> Health:
        """The worst of its findings; UNKNOWN when nobody has read it."""
        if self.findings:
            return self.findings[0].health
        return Health.OK if self.sample is not None else Health.UNKNOWN


def gpu_freshness(row: GpuRow, steady: float) -> Freshness:
    """The same for one GPU: a node whose driver hangs still tells, but nothing new of its GPUs."""
    freshness = watch_freshness(row.watch, steady)
    if freshness is not Freshness.LIVE or row.sample is None or row.watch is None or row.watch.reading is None:
        return freshness
    behind_s = row.watch.reading.taken_at - (row.sample.taken_at or 0.0)
    if row.sample.lost is not None or behind_s <= LIVE_S:
        return Freshness.LIVE
    return Freshness.LOST if behind_s > LOST_S else Freshness.STALE


def gpu_age_s(row: GpuRow, steady: float) -> float | None:
    """Seconds since this GPU's readings were taken; None when there never were any."""
    watch = row.watch
    if watch is None or watch.seen_at is None or watch.reading is None or row.sample is None:
        return None
    if row.sample.taken_at is None:
        return None
    return steady - watch.seen_at + max(0.0, watch.reading.taken_at - row.sample.taken_at)


def watch_freshness(watch: NodeWatch | None, steady: float) -> Freshness:
    """How far a node's readings may be trusted by their age."""
    if watch is None or watch.seen_at is None:
        return Freshness.NEVER
    age_s = steady - watch.seen_at
    if age_s <= LIVE_S:
        return Freshness.LIVE
    return Freshness.LOST if age_s > LOST_S else Freshness.STALE


class FleetJoin:
    """Joins the fleet once per change; a node whose parts are the very same objects costs nothing."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._kept: dict[str, tuple[tuple[object, ...], tuple[GpuRow, ...]]] = {}

    def rows(
        self, fleet: FleetReading | None, nodes: tuple[Node, ...], jobs: Mapping[str, tuple[Job, ...]]
    ) -> tuple[GpuRow, ...]:
        """Every GPU that Slurm counts or a probe has seen, by node in Slurm's order."""
        watches = fleet.nodes if fleet else {}
        kept: dict[str, tuple[tuple[object, ...], tuple[GpuRow, ...]]] = {}
        for node in nodes:
            watch, held = watches.get(node.name), jobs.get(node.name, ())
            if watch is None and not node.gpus_total:
                continue
            parts: tuple[object, ...] = (watch, node, held)
            old = self._kept.get(node.name)
            same = old is not None and old[0][0] is watch and old[0][1] is node and old[0][2] == held
            kept[node.name] = old if old and same else (parts, _node_rows(node, watch, held, self._rules))
        self._kept = kept
        return tuple(row for _, rows in kept.values() for row in rows)


def _node_rows(node: Node, watch: NodeWatch | None, held: tuple[Job, ...], rules: Rules) -> tuple[GpuRow, ...]:
    if watch is None and node.state.has(*WITHOUT_MACHINE):
        return ()  # there is no machine, so there are no GPUs
    samples = watch.reading.gpus if watch and watch.reading else ()
    rows = [_row(node, watch, held, slot, sample, rules) for slot, sample in enumerate(samples)]
    # What Slurm counts on and nobody has seen keeps its row, too.
    rows += [GpuRow(node.name, slot, watch) for slot in range(len(samples), node.gpus_total or 0)]
    return tuple(rows)


def _row(
    node: Node, watch: NodeWatch | None, held: tuple[Job, ...], slot: int, sample: GpuSample, rules: Rules
) -> GpuRow:
    assert watch is not None and watch.reading is not None  # noqa: PT018
    processes = tuple(p for p in watch.reading.processes if p.gpu == sample.gpu.key)
    allocated = _allocated(node, sample, slot)
    events = watch.events.of_gpu(sample.gpu.pci)
    return GpuRow(
        node.name,
        slot,
        watch,
        sample,
        allocated,
        _job(held, processes, allocated),
        processes,
        findings(sample, events, rules),
    )


def _allocated(node: Node, sample: GpuSample, slot: int) -> bool | None:
    if node.gpu_indices is None:
        return True if node.gpus_total and node.gpus_used == node.gpus_total else None
    # Slurm's index is the place in gres.conf, normally the minor number of /dev/nvidiaN.
    place = sample.gpu.minor if sample.gpu.minor is not None else sample.gpu.index
    return (slot if place is None else place) in node.gpu_indices


def _job(held: tuple[Job, ...], processes: tuple[GpuProcess, ...], allocated: bool | None) -> Job | None:
    ids = {process.job_id for process in processes if process.job_id is not None}
    told = next((job for job in held if job.job_id in ids), None)
    if told is not None:
        return told
    return held[0] if allocated and len(held) == 1 else None


def worst_first(row: GpuRow) -> tuple[int, float]:
    """Sort key: worst state first, then the least used of the allocated ones."""
    util = known(row.sample.util_pct) if row.sample else None
    return -_ORDER.index(row.health), util if util is not None and row.allocated else 101.0
