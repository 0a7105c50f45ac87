"""What is wrong with the fleet's GPUs, by what the probes told and by what Slurm says of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from cockpit.fleet import BUSY_PCT, HELD_MIB, GpuRow, about, gpu_freshness
from cockpit.fleet_state import Fleet, Onsets
from cockpit.formats.hostlist import fold
from cockpit.gpu_models import DriverState, GpuProcess, GpuSample, NodeReading, known
from cockpit.gpu_rules import Finding
from cockpit.gpu_use import JobUse
from cockpit.models import Freshness, Health, Problem
from cockpit.node_problems import of_nodes
from cockpit.sources.gpus import NodeWatch

WITHOUT_JOB_FOR_S = 30.0  # Slurm and the probes are asked at their own pace, and jobs begin and end in between
PROCESSES_S = 60.0
LASTING_S = 60.0
COOLER_C = 3.0

_READABLE = (DriverState.OK, DriverState.SILENT, DriverState.SMI, DriverState.DCGM)
_RANK = {health: rank for rank, health in enumerate(Health)}
_Pick = Callable[[GpuRow, NodeReading], bool]


class FleetProblems:
    """The rules of the whole fleet, with what they must remember from one look to the next."""

    def __init__(self) -> None:
        self._use = JobUse()
        self._findings = Onsets()
        self._without_job = Onsets()

    def of(self, fleet: Fleet) -> Iterator[Problem]:
        """Every problem of GPUs, jobs on them, probes, drivers and file systems, in no order."""
        yield from self._of_gpus(fleet)
        yield from self._use.problems(fleet)
        yield from self._of_free_gpus(fleet)
        for name, watch in fleet.reading.nodes.items():
            yield from _count(name, watch, fleet)
        yield from of_nodes(fleet)

    def _of_gpus(self, fleet: Fleet) -> Iterator[Problem]:
        """Findings of single GPUs; the same one on several GPUs of a node is one problem."""
        alike: dict[tuple[str, str], list[tuple[GpuRow, Finding]]] = defaultdict(list)
        for row in fleet.rows:
            for finding in chain(row.findings, _still_hot(row, fleet, self._findings)):
                alike[row.node, finding.code].append((row, self._settled(row, finding)))
        self._findings.turn()
        for (node, code), found in alike.items():
            yield _gpu_problem(f"gpu:{node}:{code}", found, fleet)

    def _settled(self, row: GpuRow, finding: Finding) -> Finding:
        """The finding; one of a kind that must last is a warning first, and critical when it has lasted."""
        reading = row.watch.reading if row.watch else None
        if row.sample is None or reading is None:
            return finding
        # By the node's clock: a reading that grows old proves nothing.
        lasted_s = self._findings.lasted_s((row.node, row.sample.gpu.key, finding.code), reading.taken_at)
        if finding.lasting:
            return replace(finding, health=Health.CRITICAL if lasted_s >= LASTING_S else Health.WARN)
        return finding

    def _of_free_gpus(self, fleet: Fleet) -> Iterator[Problem]:
        """GPUs that work, or hold memory, though Slurm gave them to nobody, or not to who uses them."""
        if fleet.nodes_live and fleet.queue_live:
            free = [row for row in fleet.rows if row.allocated is False and row.sample is not None]
            fresh = [row for row in free if gpu_freshness(row, fleet.steady) is Freshness.LIVE]
            for code, pick, tell in _FREE:
                for node, found in self._lasting(code, pick, fresh, fleet.steady).items():
                    yield tell(f"gpu:{node}:{code}", f"{node} GPU {_slots(found)}", found)
        self._without_job.turn()

    def _lasting(self, code: str, pick: _Pick, rows: Iterable[GpuRow], steady: float) -> dict[str, list[GpuRow]]:
        found: dict[str, list[GpuRow]] = defaultdict(list)
        for row in rows:
            reading = row.watch.reading if row.watch else None
            if reading is None or not pick(row, reading):
                continue
            if self._without_job.lasted_s((code, row.key), steady) >= WITHOUT_JOB_FOR_S:
                found[row.node].append(row)
        return found


def _still_hot(row: GpuRow, fleet: Fleet, onsets: Onsets) -> Iterator[Finding]:
    """A GPU that was too hot stays so until it is some degrees cooler than the rule: else it comes and goes."""
    temp_c = known(row.sample.temp_c) if row.sample else None
    if row.sample is None or temp_c is None or not onsets.known((row.node, row.sample.gpu.key, "hot")):
        return
    limit_c = fleet.rules.gpu_hot_c
    if limit_c - COOLER_C <= temp_c < limit_c and all(finding.code != "hot" for finding in row.findings):
        title = f"{temp_c:.0f} °C, was over {limit_c:.0f} just now"
        yield Finding("hot", Health.WARN, title, "compare its load and temperature with the node's other GPUs")


def _gpu_problem(key: str, found: Sequence[tuple[GpuRow, Finding]], fleet: Fleet) -> Problem:
    worst_row, worst = max(found, key=lambda pair: _RANK[pair[1].health])
    jobs = {row.job.label: row.job for row, _ in found if row.job}
    return Problem(
        key=key,
        health=worst.health,
        subject=f"{worst_row.node} GPU {_slots([row for row, _ in found])}",
        title=worst.title + fleet.as_of(worst_row.watch) + (f" · job {', '.join(jobs)}" if jobs else ""),
        next_step=worst.next_step,
        evidence=worst.evidence,
        since=min((at for row, finding in found if (at := _began(row, finding, fleet)) is not None), default=None),
        count=len(found),
        about=about(row for row, _ in found),
    )


def _began(row: GpuRow, finding: Finding, fleet: Fleet) -> float | None:
    """When the first Xid of this kind came; other findings bring no time of their own."""
    kind, _, code = finding.code.partition(":")
    if kind != "xid" or row.watch is None or row.sample is None:
        return None
    boot = row.watch.reading.boot_id if row.watch.reading else ""
    events = row.watch.events.of_gpu(row.sample.gpu.pci)
    same = [event for event in events if str(event.code) == code and not event.clears]
    # Those of an earlier boot are over and no part of what is told now.
    times = [event.at for event in same if event.at is not None and (not boot or event.boot in ("", boot))]
    return fleet.our_time(row.watch, min(times)) if times else None


def _slots(rows: Sequence[GpuRow]) -> str:
    return fold(str(row.slot) for row in rows).strip("[]")


def _works(row: GpuRow) -> bool:
    return row.sample is not None and (known(row.sample.util_pct) or 0) > BUSY_PCT


def _holds(row: GpuRow) -> bool:
    return row.sample is not None and (known(row.sample.mem_used_mib) or 0) > HELD_MIB


def _alive(row: GpuRow) -> list[GpuProcess]:
    """Processes that are there; the driver may go on naming one that died."""
    return [process for process in row.processes if process.exists is not False]


def _foreign_jobs(rows: Iterable[GpuRow]) -> list[int]:
    return sorted({p.job_id for row in rows for p in _alive(row) if p.job_id is not None})


def _not_given(row: GpuRow, reading: NodeReading) -> bool:
    return bool(_foreign_jobs([row])) and (_works(row) or _holds(row))


def _no_job(row: GpuRow, reading: NodeReading) -> bool:
    return not _foreign_jobs([row]) and _works(row)


def _leftover(row: GpuRow, reading: NodeReading) -> bool:
    """Only where processes were asked for lately: none told is not none there."""
    asked_at, most_s = reading.processes_at, max(PROCESSES_S, 3 * (reading.interval_s or 0.0))
    if asked_at is None or reading.taken_at - asked_at > most_s:
        return False
    return not _alive(row) and not _works(row) and _holds(row)


def _tell_not_given(key: str, subject: str, found: Sequence[GpuRow]) -> Problem:
    title = f"used by job {', '.join(map(str, _foreign_jobs(found)[:4]))}, which was not given it"
    step = "a process outlived its job, or nothing keeps jobs to their GPUs (ConstrainDevices in cgroup.conf)"
    jobs = tuple(("job", str(job_id)) for job_id in _foreign_jobs(found))
    return Problem(key, Health.WARN, subject, title, step, _who(found), count=len(found), about=about(found) + jobs)


def _tell_no_job(key: str, subject: str, found: Sequence[GpuRow]) -> Problem:
    step = "somebody works past Slurm, or a job's process outlived it: look at the processes"
    return Problem(key, Health.WARN, subject, "busy without a Slurm job", step, _who(found),
                   count=len(found), about=about(found))  # fmt: skip


def _tell_leftover(key: str, subject: str, found: Sequence[GpuRow]) -> Problem:
    used = [f"{known(row.sample.mem_used_mib) or 0:.0f} MiB" for row in found if row.sample]
    dead = sorted({str(process.pid) for row in found for process in row.processes})
    evidence = ", ".join(used) + (f"; the driver names pid {', '.join(dead[:4])}, which is gone" if dead else "")
    step = "a process died and left it: reset the GPU or reboot the node before the next job"
    return Problem(key, Health.WARN, subject, "memory is held and no process is there", step, evidence,
                   count=len(found), about=about(found))  # fmt: skip


def _who(found: Iterable[GpuRow]) -> str:
    return ", ".join(sorted({f"{p.user or '?'} {p.command or p.pid}" for row in found for p in _alive(row)})[:8])


_FREE: tuple[tuple[str, _Pick, Callable[[str, str, Sequence[GpuRow]], Problem]], ...] = (
    ("not_given", _not_given, _tell_not_given),
    ("no_job", _no_job, _tell_no_job),
    ("leftover", _leftover, _tell_leftover),
)


def _count(name: str, watch: NodeWatch, fleet: Fleet) -> Iterator[Problem]:
    """Fewer GPUs than Slurm was promised; of a GPU that is cut up, each MIG instance is one."""
    node, reading = fleet.nodes.get(name), watch.reading
    promised = node.gpus_total if node else None
    if not promised or reading is None or reading.driver.state not in _READABLE:
        return
    if reading.hidden_gpus:
        return  # the driver lists to this login only what it may open
    sizes = [_instances(sample) for sample in reading.gpus]
    if any(size is None for size in sizes) or sum(size or 0 for size in sizes) >= promised:
        return  # each lost GPU is told by itself
    there = sum(size or 0 for size, sample in zip(sizes, reading.gpus, strict=True) if sample.lost is None)
    cut_up = any(sample.gpu.mig for sample in reading.gpus)
    title = f"{there} {'MIG instances' if cut_up else 'GPUs'}, Slurm counts on {promised}{fleet.as_of(watch)}"
    step = "a GPU is lost or hidden: lspci -d 10de: on the node; drain and replace the instance"
    if cut_up:
        step = "compare nvidia-smi -L with gres.conf: instances are not there, or a GPU is lost"
    yield Problem(f"gpu:{name}:count", Health.CRITICAL, name, title, step, about=(("node", name),))


def _instances(sample: GpuSample) -> int | None:
    """How many devices a GPU is to Slurm; None when it is cut up and nobody tells into how many."""
    return (len(sample.instances) or None) if sample.gpu.mig else 1
