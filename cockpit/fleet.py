"""Slurm's view of nodes and jobs joined with what the probes see: one row a GPU. Pure; nothing is kept."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cockpit.config import Rules
from cockpit.formats.kernel_log import KernelEvent
from cockpit.gpu_models import DriverState, GpuProcess, GpuSample, NodeReading, known
from cockpit.gpu_rules import Finding, findings
from cockpit.models import Freshness, Health, Job, Node
from cockpit.sources.gpus import FleetReading, NodeWatch

WITHOUT_MACHINE = ("powered_down", "powering_down", "powering_up")
LIVE_S, LOST_S = 8.0, 60.0  # at least; a probe with a long interval may be silent for longer
SLACK_S = 4.0
MAX_INTERVAL_S = 3600.0
BUSY_PCT, HELD_MIB = 10.0, 1024.0  # more than that, and somebody uses it
_ORDER = list(Health)
_LITTLE_PCT = (10.0, 50.0)  # an allocated GPU below the first does nothing, below the second little


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
        """The worst of its findings; UNKNOWN when nobody has read it, or its driver is silent just now."""
        if self.findings:
            return self.findings[0].health
        if driver_silent(self):
            return Health.UNKNOWN
        return Health.UNKNOWN if self.sample is None or self.sample.taken_at is None else Health.OK


def driver_silent(row: GpuRow) -> bool:
    """Whether its driver is overdue with an answer, by seconds only: what was read before may no longer be so."""
    reading = row.watch.reading if row.watch else None
    return reading is not None and reading.driver.state is DriverState.SILENT


def driver_silent_s(row: GpuRow, steady: float) -> float | None:
    """For how long; None while it answers, or when nobody knows since when."""
    watch = row.watch
    if not driver_silent(row) or watch is None or watch.reading is None or watch.seen_at is None:
        return None
    since = watch.reading.driver.since
    return None if since is None else max(0.0, steady - watch.seen_at + watch.reading.taken_at - since)


def gpu_freshness(row: GpuRow, steady: float) -> Freshness:
    """The same for one GPU: a node whose driver hangs, or has lost it, still tells, but nothing new of this GPU."""
    freshness = watch_freshness(row.watch, steady)
    if row.sample is None or row.sample.taken_at is None or row.watch is None or row.watch.reading is None:
        return Freshness.NEVER
    if freshness is not Freshness.LIVE:
        return freshness
    return _by_age(row.watch.reading.taken_at - row.sample.taken_at, row.watch)


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
    return _by_age(steady - watch.seen_at, watch)


def newest_at(fleet: FleetReading) -> float | None:
    """When any node was last heard (steady clock); None when none ever was."""
    return max((watch.seen_at for watch in fleet.nodes.values() if watch.seen_at is not None), default=None)


def _by_age(age_s: float, watch: NodeWatch) -> Freshness:
    interval_s = (watch.reading.interval_s if watch.reading else None) or 0.0
    # One reading may come late; what the node says of its interval is not trusted beyond what can be set.
    live_s = max(LIVE_S, 2 * min(interval_s, MAX_INTERVAL_S) + SLACK_S)
    if age_s <= live_s:
        return Freshness.LIVE
    return Freshness.LOST if age_s > max(LOST_S, 2 * live_s) else Freshness.STALE


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
    if watch and watch.reading and not _by_minor(node, watch.reading, held):
        node = replace(node, gpu_indices=None)
    rows = [_row(node, watch, held, slot, sample, rules) for slot, sample in enumerate(samples)]
    if not _sliced(samples):  # Slurm counts slices there, of which none has a row
        # What Slurm counts on and nobody has seen keeps its row, too.
        rows += [GpuRow(node.name, slot, watch) for slot in range(len(samples), node.gpus_total or 0)]
    return tuple(rows)


def _by_minor(node: Node, reading: NodeReading, held: tuple[Job, ...]) -> bool:
    """Whether Slurm's indexes, which are places in gres.conf, can be those of the devices.

    They cannot where jobs work on GPUs that these leave out, though no more GPUs are in use than were given: each by
    one job at most, and by each job no more than it has. (A job that leaves its own GPU idle for another one looks
    the same; where devices are kept apart by cgroups it cannot do that.)
    """
    if node.gpu_indices is None or len(node.gpu_indices) in (0, node.gpus_total):
        return True  # none is told, or there is nothing to tell apart
    ids = {job.job_id: -(-job.gpus // max(1, job.node_count or 1)) if job.gpus else None for job in held}
    jobs: dict[int, set[int]] = {}
    for place, sample in enumerate(reading.gpus):
        of = {p.job_id for p in reading.processes if p.gpu == sample.gpu.key and p.exists is not False}
        found = {job_id for job_id in of if job_id in ids}
        if found or in_use(sample):
            jobs[_place(sample, place)] = found
    if all(place in node.gpu_indices for place, found in jobs.items() if found):
        return True
    counts = Counter(job_id for found in jobs.values() for job_id in found)
    too_many = any(ids[job_id] is not None and count > (ids[job_id] or 0) for job_id, count in counts.items())
    return too_many or any(len(found) > 1 for found in jobs.values()) or len(jobs) > len(node.gpu_indices)


def in_use(sample: GpuSample) -> bool:
    """Whether it works or holds memory, as far as it is known."""
    return (known(sample.util_pct) or 0) > BUSY_PCT or (known(sample.mem_used_mib) or 0) > HELD_MIB


def _place(sample: GpuSample, slot: int) -> int:
    """Where it stands by the minor number of /dev/nvidiaN, which is the order of gres.conf in most places."""
    place = sample.gpu.minor if sample.gpu.minor is not None else sample.gpu.index
    return slot if place is None else place


def _sliced(samples: Iterable[GpuSample]) -> bool:
    return any(sample.gpu.mig for sample in samples)


def _row(
    node: Node, watch: NodeWatch | None, held: tuple[Job, ...], slot: int, sample: GpuSample, rules: Rules
) -> GpuRow:
    assert watch is not None and watch.reading is not None  # noqa: PT018
    processes = tuple(p for p in watch.reading.processes if p.gpu == sample.gpu.key)
    # Slurm's indexes are those of slices as soon as one GPU is cut.
    allocated = None if _sliced(watch.reading.gpus) else _allocated(node, sample, slot)
    return GpuRow(
        node.name,
        slot,
        watch,
        sample,
        allocated,
        _job(held, processes, allocated),
        processes,
        findings(sample, _since_boot(watch.events.of_gpu(sample.gpu.pci), watch.reading.boot_id), rules),
    )


def _since_boot(events: tuple[KernelEvent, ...], boot_id: str) -> tuple[KernelEvent, ...]:
    """Without those that a reboot has ended; an event without a boot is of this one."""
    return tuple(event for event in events if not event.boot or not boot_id or event.boot == boot_id)


def _allocated(node: Node, sample: GpuSample, slot: int) -> bool | None:
    if node.gpu_indices is None:
        return True if node.gpus_total and node.gpus_used == node.gpus_total else None
    return _place(sample, slot) in node.gpu_indices


def _job(held: tuple[Job, ...], processes: tuple[GpuProcess, ...], allocated: bool | None) -> Job | None:
    ids = {process.job_id for process in processes if process.job_id is not None}
    if ids:  # a job that is not among those held may be hidden from this login: then it is nobody's that is known
        return next((job for job in held if job.job_id in ids), None)
    return held[0] if allocated and len(held) == 1 else None


def about(rows: Iterable[GpuRow]) -> tuple[tuple[str, str], ...]:
    """These GPUs, their nodes and the jobs that have them, for `Problem.about`."""
    found: dict[tuple[str, str], None] = {}
    for row in rows:
        found[("gpu", row.key)] = found[("node", row.node)] = None
        if row.job is not None:
            found[("job", row.job.key)] = None
    return tuple(found)


def worst_first(row: GpuRow) -> tuple[int, int]:
    """Sort key: worst state first, then of the allocated ones those that do nothing, and those that do little.

    The number itself changes with every reading: lines that are sorted by it jump about under the reader's eyes.
    """
    util = known(row.sample.util_pct) if row.sample else None
    use = len(_LITTLE_PCT) if util is None or not row.allocated else bisect_right(_LITTLE_PCT, util)
    return -_ORDER.index(row.health), use


def has_looked(watch: NodeWatch) -> bool:
    """Whether the probe has come as far as the driver, which takes seconds on a node just booted."""
    return watch.reading is not None and watch.reading.driver.state is not DriverState.STARTING
