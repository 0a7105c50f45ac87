"""What is wrong with the fleet's GPUs and the nodes under them, by what the probes told. Pure but for the history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from cockpit.config import Rules
from cockpit.fleet import GpuRow, gpu_freshness, watch_freshness
from cockpit.formats.hostlist import brief, fold
from cockpit.gpu_models import DriverState, NodeReading, known
from cockpit.gpu_rules import Finding
from cockpit.models import FaultKind, Freshness, Health, Job, Node, Problem
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import FleetReading, NodeWatch

FULL_PCT = 90.0
FULL_INODES_PCT = 95.0
STRAGGLER_OVER_S = 120.0
STRAGGLER_MAD_Z = 3.5
IDLE_JOB_PCT = 5.0
LEFTOVER_MIB = 1024.0
BUSY_WITHOUT_JOB_PCT = 10.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything the rules look at."""

    rows: tuple[GpuRow, ...]
    reading: FleetReading
    nodes: Mapping[str, Node]
    history: GpuHistory
    rules: Rules
    steady: float


def of_fleet(fleet: Fleet) -> Iterator[Problem]:
    """Every problem of GPUs, probes, drivers and file systems, in no order."""
    fresh = [row for row in fleet.rows if gpu_freshness(row, fleet.steady) is Freshness.LIVE]
    yield from _gpu_findings(fleet.rows)
    yield from _job_use(fresh, fleet)
    yield from _without_job(fresh)
    for name, watch in fleet.reading.nodes.items():
        if watch.reading is not None:
            yield from _driver(name, watch.reading)
            yield from _count(name, watch.reading, fleet.nodes.get(name))
    yield from _mounts(fleet.reading.nodes.values())
    yield from _probes(fleet)


def _gpu_findings(rows: Iterable[GpuRow]) -> Iterator[Problem]:
    """Findings of single GPUs; the same one on several GPUs of a node is one problem."""
    alike: dict[tuple[str, str], list[tuple[GpuRow, Finding]]] = defaultdict(list)
    for row in rows:
        for finding in row.findings:
            alike[row.node, finding.code].append((row, finding))
    for (node, code), found in alike.items():
        worst = max(found, key=lambda pair: list(Health).index(pair[1].health))[1]
        jobs = {row.job.label: row.job for row, _ in found if row.job}
        yield Problem(
            key=f"gpu:{node}:{code}",
            health=worst.health,
            subject=f"{node} GPU {_slots([row for row, _ in found])}",
            title=worst.title + (f" · job {', '.join(jobs)}" if jobs else ""),
            next_step=worst.next_step,
            evidence=worst.evidence,
            count=len(found),
        )


def _slots(rows: Sequence[GpuRow]) -> str:
    return fold(str(row.slot) for row in rows).strip("[]")


def _job_use(rows: Iterable[GpuRow], fleet: Fleet) -> Iterator[Problem]:
    """Jobs whose GPUs idle, are little used, or of which one lags behind its peers."""
    by_job: dict[int, list[GpuRow]] = defaultdict(list)
    for row in rows:
        if row.job is not None and row.allocated is not False:
            by_job[row.job.job_id].append(row)
    for held in by_job.values():
        job = held[0].job
        if job is None:
            continue
        use = {row.key: _mean_use(row, fleet) for row in held}
        told = {key: value for key, value in use.items() if value is not None}
        if len(told) == len(held):
            yield from _low_use(job, held, told, fleet.rules)
        if (job.gpus or len(held)) > 1:
            yield from _stragglers(job, held, fleet)


def _mean_use(row: GpuRow, fleet: Fleet) -> float | None:
    """Mean utilisation over the rule's time; None when less than nine tenths of it were seen."""
    assert row.sample is not None
    return _mean(fleet.history, row, "util_pct", fleet.rules.gpu_idle_for_s)


def _mean(history: GpuHistory, row: GpuRow, metric: str, span_s: float) -> float | None:
    if row.sample is None:
        return None
    series = history.series(row.node, row.sample.gpu.key, metric)
    recent = [(at, value) for at, value in series if series and at >= series[-1][0] - span_s]
    values = [value for _, value in recent if value is not None]
    if not values or recent[-1][0] - recent[0][0] < 0.9 * span_s:
        return None
    return fmean(values)


def _low_use(job: Job, held: list[GpuRow], use: Mapping[str, float], rules: Rules) -> Iterator[Problem]:
    minutes = f"{rules.gpu_idle_for_s / 60:.0f} min"
    low = [row for row in held if use[row.key] < rules.gpu_idle_pct]
    nodes = fold({row.node for row in held})
    if all(value < IDLE_JOB_PCT for value in use.values()):
        title = f"holds {len(held)} GPUs and uses none for {minutes} · {job.user}"
        step = "ask its owner; H diagnoses it once that is built, cancel frees the GPUs"
        yield Problem(f"job:idle:{job.job_id}", Health.WARN, f"job {job.label}", title, step, nodes, count=len(held))
    elif low:
        title = (
            f"{len(low)} of its {len(held)} GPUs are used under {rules.gpu_idle_pct:.0f} % for {minutes} · {job.user}"
        )
        evidence = ", ".join(f"{row.key} {use[row.key]:.0f} %" for row in low[:8])
        step = "enter on the job: which ranks they are, and what these do"
        yield Problem(f"job:low:{job.job_id}", Health.WARN, f"job {job.label}", title, step, evidence, count=len(low))


def _stragglers(job: Job, held: list[GpuRow], fleet: Fleet) -> Iterator[Problem]:
    """GPUs far under their job's median, by utilisation or power, over two minutes.

    Median and MAD with a floor of 1 % of the median, and never for less than the rule's distance: in a job
    whose GPUs all wait, small differences mean nothing.
    """
    for metric, word, unit in (("util_pct", "utilisation", "%"), ("power_w", "power", "W")):
        means = {row.key: _mean(fleet.history, row, metric, STRAGGLER_OVER_S) for row in held}
        values = [value for value in means.values() if value is not None]
        if len(values) < max(2, len(held)):
            continue
        middle = median(values)
        spread = max(median(abs(value - middle) for value in values), 0.01 * middle)
        limit = middle * (1 - fleet.rules.straggler_pct / 100)
        late = [
            row
            for row in held
            if (value := means[row.key]) is not None
            and value < limit
            and (len(values) < 5 or 0.6745 * (middle - value) / spread > STRAGGLER_MAD_Z)
        ]
        if late and len(late) * 2 < len(held):
            title = f"{len(late)} of {len(held)} GPUs lag in {word}: job median {middle:.0f} {unit}"
            evidence = ", ".join(f"{row.key} {means[row.key]:.0f} {unit}" for row in late[:8])
            step = "compare clocks, temperature and throttling of these GPUs with their peers"
            subject = f"job {job.label} {late[0].key}" + (f" and {len(late) - 1} more" if len(late) > 1 else "")
            yield Problem(f"job:lag:{job.job_id}:{metric}", Health.WARN, subject, title, step, evidence)


def _without_job(rows: Iterable[GpuRow]) -> Iterator[Problem]:
    """GPUs that work, or hold memory, though Slurm gave them to nobody."""
    busy: dict[str, list[GpuRow]] = defaultdict(list)
    leftover: dict[str, list[GpuRow]] = defaultdict(list)
    for row in rows:
        if row.sample is None or row.allocated is not False or row.job is not None:
            continue
        if (known(row.sample.util_pct) or 0) > BUSY_WITHOUT_JOB_PCT:
            busy[row.node].append(row)
        elif not row.processes and (known(row.sample.mem_used_mib) or 0) > LEFTOVER_MIB:
            leftover[row.node].append(row)
    for node, found in busy.items():
        who = sorted({f"{p.user or '?'} {p.command or p.pid}" for row in found for p in row.processes})
        step = "somebody works past Slurm, or a job's process outlived it: look at the processes"
        yield Problem(f"gpu:{node}:no_job", Health.WARN, f"{node} GPU {_slots(found)}", "busy without a Slurm job",
                      step, ", ".join(who), count=len(found))  # fmt: skip
    for node, found in leftover.items():
        used = ", ".join(f"{known(row.sample.mem_used_mib) or 0:.0f} MiB" for row in found if row.sample)
        step = "a process died and left it: reset the GPU or reboot the node before the next job"
        yield Problem(f"gpu:{node}:leftover", Health.WARN, f"{node} GPU {_slots(found)}",
                      "memory is held and no process is there", step, used, count=len(found))  # fmt: skip


_DRIVER_BAD = {
    DriverState.HUNG: (Health.CRITICAL, "driver not answering", "look for Xid 119/120 and D-state processes; reboot"),
    DriverState.CRASHED: (Health.CRITICAL, "the driver's library crashes", "reboot the node"),
    DriverState.FAILED: (Health.CRITICAL, "the driver refuses", "reboot when idle; a new driver under an old module?"),
    DriverState.SLOW: (Health.WARN, "the driver answers slowly", "watch it; a driver that grows slow often hangs next"),
}


def _driver(name: str, reading: NodeReading) -> Iterator[Problem]:
    bad = _DRIVER_BAD.get(reading.driver.state)
    if bad is not None:
        health, title, step = bad
        why = f": {reading.driver.why}" if reading.driver.why else ""
        yield Problem(f"driver:{name}", health, name, f"{title}{why}", step, since=reading.driver.since)


def _count(name: str, reading: NodeReading, node: Node | None) -> Iterator[Problem]:
    """Fewer GPUs than Slurm was promised."""
    promised = node.gpus_total if node else None
    there = [sample for sample in reading.gpus if sample.lost is None]
    if promised and reading.driver.state is DriverState.OK and len(there) < promised:
        lost = len(reading.gpus) - len(there)
        if lost + len(there) >= promised:
            return  # each lost GPU is told by itself
        title = f"{len(there)} GPUs, Slurm counts on {promised}"
        step = "a GPU is lost or hidden: lspci -d 10de: on the node; drain and replace the instance"
        yield Problem(f"gpu:{name}:count", Health.CRITICAL, name, title, step)


def _mounts(watches: Iterable[NodeWatch]) -> Iterator[Problem]:
    """Full or hung file systems; the same one on several nodes is one problem."""
    full: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    hung: dict[str, list[str]] = defaultdict(list)
    for watch in watches:
        for mount in watch.reading.mounts if watch.reading else ():
            if mount.hung_since is not None:
                hung[mount.path].append(watch.node)
            elif words := _how_full(mount.used_mib, mount.available_mib, mount.inodes_used, mount.inodes):
                shared = mount.kind in ("lustre", "nfs", "nfs4")
                full[mount.path, mount.source if shared else watch.node].append((watch.node, words))
    for path, nodes in hung.items():
        step = "whatever touches it waits: check the file system, then the nodes' kernel logs"
        yield Problem(f"mount:hung:{path}", Health.CRITICAL, fold(nodes), f"{path} does not answer", step,
                      count=len(nodes))  # fmt: skip
    for (path, where), found in full.items():
        step = "free space now: jobs die of a full file system at their next checkpoint"
        yield Problem(f"mount:full:{path}:{where}", Health.WARN, fold(node for node, _ in found),
                      f"{path} is {found[0][1]}", step, count=len(found))  # fmt: skip


def _how_full(used: float | None, available: float | None, inodes_used: float | None, inodes: float | None) -> str:
    if used is not None and available is not None and used + available > 0:
        pct = 100 * used / (used + available)  # as df counts it: what is kept for root is nobody's
        if pct >= FULL_PCT:
            return f"{pct:.0f} % full"
    if inodes and inodes_used is not None and 100 * inodes_used / inodes >= FULL_INODES_PCT:
        return f"out of inodes: {100 * inodes_used / inodes:.0f} % used"
    return ""


_FAULT_WORDS = {
    FaultKind.HOST_KEY: "its host key is not accepted",
    FaultKind.AUTH: "the login is refused",
    FaultKind.UNREACHABLE: "not reached",
    FaultKind.TIMEOUT: "no answer in time",
}


def _probes(fleet: Fleet) -> Iterator[Problem]:
    """Nodes nobody hears from, those with the same kind of fault as one."""
    alike: dict[str, list[NodeWatch]] = defaultdict(list)
    for watch in fleet.reading.nodes.values():
        freshness = watch_freshness(watch, fleet.steady)
        if freshness is Freshness.LIVE or (watch.fault is None and watch.seen_at is None):
            continue
        fault = watch.fault
        words = _FAULT_WORDS.get(fault.kind, fault.why) if fault else "its probe has fallen silent"
        alike[words].append(watch)
    for words, watches in alike.items():
        fault = watches[0].fault
        yield Problem(
            key=f"probe:{words}",
            health=Health.WARN,
            subject=brief(watch.node for watch in watches),
            title=f"no fresh GPU readings: {words}",
            next_step=fault.next_step if fault else "",
            evidence="; ".join(f"{watch.node}: {watch.fault.why}" for watch in watches[:8] if watch.fault),
            count=len(watches),
        )
    if fleet.reading.left_out:
        names = fold(fleet.reading.left_out)
        step = "raise `nodes.max` in the config, or read the GPUs from a Prometheus"
        title = f"{len(fleet.reading.left_out)} nodes are not watched: `nodes.max` is reached"
        yield Problem("probe:left_out", Health.WARN, brief(fleet.reading.left_out), title, step, names)
