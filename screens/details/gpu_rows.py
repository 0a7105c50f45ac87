"""One line for a GPU and its processes, and which of a job's GPUs differ from the others. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cockpit.fleet import GpuRow, gpu_age_s, gpu_freshness, watch_freshness
from cockpit.gpu_models import GpuProcess, known
from cockpit.gpu_use import late
from cockpit.models import Freshness, Health
from cockpit.words import MISSING, mib, span
from screens.details.parts import gpu_link, job_link
from screens.lines import Line, Piece
from themes import STATE_TOKENS, state_token

_METRICS = (("util_pct", "utilisation", "%"), ("power_w", "power", "W"))
_FRESH_PROCESSES_S = 60.0
_OK = Health.OK


@dataclass(frozen=True, slots=True)
class Odd:
    """A GPU that is not like the others of its job, and how."""

    row: GpuRow
    why: str
    health: Health


def rank_of(process: GpuProcess) -> int | None:
    """The rank a launcher gave it, else the number of Slurm's task."""
    told = known(process.rank)
    number = told if told is not None else known(process.procid)
    return None if number is None else int(number)


def process_words(process: GpuProcess) -> str:
    """`rank 3  pid 4242  maria  python3`, as far as it is known."""
    rank = rank_of(process)
    words = [
        "" if rank is None else f"rank {rank}",
        f"pid {process.pid}",
        process.user,
        process.command,
        "gone: its memory is held by nobody" if process.exists is False else "",
    ]
    return "  ".join(word for word in words if word)


def gpu_lines_of(row: GpuRow, processes: Sequence[GpuProcess], steady: float, *, with_job: bool = False) -> list[Line]:
    """A GPU in one line with its readings and first process; what is wrong, and more processes, stand below."""
    line: list[Piece] = ["    ", gpu_link(row, f"GPU {row.slot}"), *_readings(row, steady)]
    if with_job and row.job is not None:
        line += ["  job ", job_link(row.job)]
    if processes:
        line.append(f"  {process_words(processes[0])}")
    lines: list[Line] = [line]
    lines += [[f"           {process_words(process)}"] for process in processes[1:]]
    lines += [[("           ", ""), (one.title, state_token(one.health))] for one in row.findings]
    return lines


def _readings(row: GpuRow, steady: float) -> list[Piece]:
    sample = row.sample
    if sample is None or sample.taken_at is None:
        return [("  not read", STATE_TOKENS[Health.UNKNOWN])]
    if sample.lost is not None:
        return [("  not readable now", STATE_TOKENS[row.health])]
    util, temp_c, power_w = known(sample.util_pct), known(sample.temp_c), known(sample.power_w)
    text = (
        f"  {_number(util, '{:.0f}'):>3} %  {mib(known(sample.mem_used_mib)):>5}"
        f"  {_number(temp_c, '{:.0f}'):>3} °C  {_number(power_w, '{:.0f}'):>4} W"
    )
    if gpu_freshness(row, steady) is Freshness.LIVE:
        return [text]
    return [(f"{text}  as of {span(gpu_age_s(row, steady))} ago", "stale")]


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else form.format(value)


def odd_ones(
    rows: Sequence[GpuRow], processes: Mapping[str, Sequence[GpuProcess]], steady: float, straggler_pct: float
) -> list[Odd]:
    """A job's GPUs that something is wrong with, or that now do far less than the others; the worst first.

    `processes` are the job's own by GPU key.
    """
    found = [Odd(row, row.findings[0].title, row.health) for row in rows if row.findings and row.health is not _OK]
    live = list(_live(rows, steady))
    slow: dict[int, list[str]] = {}
    for metric, word, unit in _METRICS:
        read = ((at, known(getattr(row.sample, metric))) for at, row in enumerate(live))
        values = {at: value for at, value in read if value is not None}
        for at in late(values, straggler_pct) if len(values) > 1 else ():
            others = median(value for other, value in values.items() if other != at)
            slow.setdefault(at, []).append(f"{word} {values[at]:.0f} {unit} now, the others {others:.0f} {unit}")
    found += [Odd(live[at], ", ".join(whys), Health.WARN) for at, whys in slow.items()]
    found += [Odd(row, "no process of the job on it", Health.WARN) for row in _empty(live, processes)]
    order = list(Health)
    return sorted(found, key=lambda odd: -order.index(odd.health))


def _live(rows: Iterable[GpuRow], steady: float) -> Iterator[GpuRow]:
    """Those whose numbers are of now; a node's freshness is looked up once."""
    fresh: dict[str, bool] = {}
    for row in rows:
        reading = row.watch.reading if row.watch else None
        if row.sample is None or row.sample.lost is not None or reading is None:
            continue
        if row.node not in fresh:
            fresh[row.node] = watch_freshness(row.watch, steady) is Freshness.LIVE
        of_now = row.sample.taken_at == reading.taken_at or gpu_freshness(row, steady) is Freshness.LIVE
        if fresh[row.node] and of_now:
            yield row


def _empty(live: Sequence[GpuRow], processes: Mapping[str, Sequence[GpuProcess]]) -> list[GpuRow]:
    """GPUs without a process, where most others of the job have one and processes were asked for lately."""
    bare = [row for row in live if not processes.get(row.key)]
    asked = [row for row in live if _processes_known(row)] if bare else []
    empty = [row for row in bare if _processes_known(row)]
    return empty if 0 < len(empty) * 2 < len(asked) else []


def _processes_known(row: GpuRow) -> bool:
    reading = row.watch.reading if row.watch else None
    if reading is None or reading.processes_at is None:
        return False
    return reading.taken_at - reading.processes_at <= max(_FRESH_PROCESSES_S, 3 * (reading.interval_s or 0.0))


def processes_of(row: GpuRow, job_ids: set[int]) -> list[GpuProcess]:
    """The job's processes on a GPU by rank; those of nobody known count where the GPU is surely the job's."""
    mine = row.job is not None and row.job.job_id in job_ids
    if len(row.processes) == 1 and row.processes[0].job_id in job_ids:  # as nearly always
        return list(row.processes)
    found = [p for p in row.processes if p.job_id in job_ids or (p.job_id is None and mine)]
    return sorted(found, key=lambda p: (rank_of(p) is None, rank_of(p) or 0, p.pid))
