"""What the details of a GPU say: pure functions. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow, driver_silent, gpu_age_s, gpu_freshness
from cockpit.gpu_models import GpuProcess, GpuSample, Missing, Value, known
from cockpit.models import Freshness
from cockpit.sources.gpu_history import SPAN_S, STEP_S
from cockpit.words import MISSING, mib, moment, plural, span
from screens.gpu_table import driver_words, silent_words
from screens.graph import graph_lines, sparkline
from screens.lines import LABEL_WIDTH, Line, fact, facts, section
from screens.unread import unread_lines
from themes import state_token

GRAPH_WIDTH = 50  # with label and range it fits 80 columns: a graph must not be broken at a blank
_READINGS: tuple[tuple[str, str, str], ...] = (
    ("utilisation", "util_pct", "{:.0f} %"),
    ("memory bus", "mem_util_pct", "{:.0f} %"),
    ("memory", "mem_used_mib", "{:.0f} MiB"),
    ("temperature", "temp_c", "{:.0f} °C"),
    ("HBM", "hbm_temp_c", "{:.0f} °C"),
    ("power", "power_w", "{:.0f} W"),
    ("power limit", "power_limit_w", "{:.0f} W"),
    ("SM clock", "sm_clock_mhz", "{:.0f} MHz"),
    ("ECC uncorr.", "ecc_uncorrected", "{:.0f}"),
    ("ECC corr.", "ecc_corrected", "{:.0f}"),
    ("remap pend.", "remap_pending", "{:.0f}"),
    ("remap fail.", "remap_failed", "{:.0f}"),
    ("NVLinks down", "nvlinks_down", "{:.0f}"),
    ("PCIe gen", "pcie_gen", "{:.0f}"),
    ("PCIe width", "pcie_width", "{:.0f}"),
)
GRAPH_HEIGHT = 5  # the last line tells the time
_UTILISATION = "util_pct"
_SPARKS = (("temperature", "temp_c", 20.0, 100.0), ("power", "power_w", 0.0, None))

_USE = {True: "allocated by Slurm", False: "free", None: "Slurm does not tell whether it is allocated"}


def gpu_lines(cluster: Cluster, row: GpuRow) -> list[Line]:
    """What is wrong with it, who uses it, its past and its peers, every reading."""
    steady = cluster.clock.steady()
    lines: list[Line] = [fact("state", _state(row, steady), state_token(row.health))]
    for finding in row.findings:
        lines += [[], fact("wrong", finding.title, state_token(finding.health))]
        lines += facts([("evidence", finding.evidence), ("next", finding.next_step)])
    lines += [[], section("who has it"), *_users(row)]
    unread = unread_lines(row.watch.reading if row.watch else None)
    if row.sample is None:
        return [*lines, *unread]
    lines += [[], section("the last ten minutes"), *_history(cluster, row)]
    live = gpu_freshness(row, steady) in (Freshness.LIVE, Freshness.NEVER)
    readings = "readings" if live else f"readings of {span(gpu_age_s(row, steady))} ago"
    lines += [*_peers(cluster, row), [], section(readings), *_readings(row.sample)]
    return [*lines, [], section("what it is"), *_identity(row.sample), *_events(cluster, row), *unread]


def _state(row: GpuRow, steady: float) -> str:
    watch = row.watch
    if watch is None:
        return "its node is not watched"
    if watch.seen_at is None:
        return f"not read: {watch.fault.line()}" if watch.fault else "connecting …"
    why = f" · {watch.fault.why}" if watch.fault else ""
    wrong = row.findings[0].title if row.findings else ""
    if row.sample is None or row.sample.taken_at is None:
        unread = "the driver does not show it" if row.sample is None else "not read yet"
        return f"{wrong or unread} · {_USE[row.allocated]}{why}"
    freshness = gpu_freshness(row, steady)
    age = "" if freshness is Freshness.LIVE else f"{freshness.value}, read {span(gpu_age_s(row, steady))} ago · "
    driver = silent_words(row, steady) if driver_silent(row) else driver_words(row)
    said = " · ".join(part for part in (driver, wrong) if part)
    return f"{age}{said or 'well'} · {_USE[row.allocated]}{why}"


def _users(row: GpuRow) -> list[Line]:
    lines: list[Line] = []
    if row.job is not None:
        lines.append([f"  job {row.job.label}  {row.job.user}  {row.job.name}"])
    lines += [_process(process) for process in row.processes]
    return lines or [[("  nobody that is known", "dim")]]


def _process(process: GpuProcess) -> Line:
    used = known(process.mem_mib)
    rank = known(process.rank)
    words = [
        f"  pid {process.pid}",
        process.user or "?",
        process.command or "?",
        "memory –" if used is None else mib(used),
        "" if rank is None else f"rank {rank:.0f}",
        "" if process.job_id is None else f"job {process.job_id}",
        "gone: its memory is held by nobody" if process.exists is False else "",
    ]
    return ["  ".join(word for word in words if word)]


def _history(cluster: Cluster, row: GpuRow) -> list[Line]:
    """Its use as a graph with scale and time, and below it, over the same time, temperature and power."""
    assert row.sample is not None
    past = {metric: _even(cluster, row, metric) for metric in (_UTILISATION, *(metric for _, metric, _, _ in _SPARKS))}
    use = past[_UTILISATION]
    lines: list[Line] = [fact("utilisation", "" if _known(use) else "nothing yet", "dim")]
    if _known(use):
        left = " " * (LABEL_WIDTH + 2 - len("100% ┤"))
        graph = graph_lines(use, GRAPH_WIDTH + len("100% ┤"), GRAPH_HEIGHT, span_s=SPAN_S, low=0, high=100, unit="%")
        lines = [[left, *line] for line in graph]
        lines[0] = [(f"{'  util':<{len(left)}}", "dim"), *graph[0]]
    return lines + [_spark(row.sample, label, past[metric], low, high) for label, metric, low, high in _SPARKS]


def _spark(sample: GpuSample, label: str, values: Sequence[float | None], low: float, high: float | None) -> Line:
    numbers = _known(values)
    if not numbers:
        return fact(label, "nothing yet", "dim")
    top = high if high is not None else max(max(numbers), known(sample.power_limit_w) or 0.0)
    return [*fact(label, sparkline(values, GRAPH_WIDTH, low, top)), (f"  {min(numbers):.0f}–{max(numbers):.0f}", "dim")]


def _even(cluster: Cluster, row: GpuRow, metric: str) -> list[float | None]:
    """The ten minutes up to now in equal steps, the mean of each; None where nothing was read in it."""
    reading = row.watch.reading if row.watch else None
    if reading is None or row.sample is None:
        return []
    steps = min(GRAPH_WIDTH, int(SPAN_S / max(1.0, 1.5 * max(reading.interval_s or 0.0, STEP_S))))
    found: list[list[float]] = [[] for _ in range(steps)]
    for at, value in cluster.streams.history.series(row.node, row.sample.gpu.key, metric):
        ago_s = reading.taken_at - at
        if value is not None and 0 <= ago_s < SPAN_S:
            found[steps - 1 - int(ago_s * steps / SPAN_S)].append(value)
    return [sum(values) / len(values) if values else None for values in found]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _peers(cluster: Cluster, row: GpuRow) -> list[Line]:
    """The other GPUs of the job: where this one stands among them."""
    steady = cluster.clock.steady()
    if row.job is None or gpu_freshness(row, steady) is not Freshness.LIVE:
        return []  # its own numbers are of another time than theirs
    peers = peers_of(row, cluster.view.gpu_rows, steady)
    if not peers:
        return []
    lines: list[Line] = [[], section(f"against its {plural(len(peers), 'peer')} of job {row.job.label}")]
    for label, name, form in (_READINGS[0], _READINGS[3], _READINGS[5], _READINGS[7]):
        values = [value for r in peers if (value := known(getattr(r.sample, name))) is not None]
        mine = known(getattr(row.sample, name))
        if values and mine is not None:
            spread = f"median {form.format(median(values))}, {form.format(min(values))} to {form.format(max(values))}"
            lines.append([*fact(label, form.format(mine)), (f"  {spread}", "dim")])
    return lines


def peers_of(row: GpuRow, rows: Iterable[GpuRow], steady: float) -> list[GpuRow]:
    """The other GPUs of its job whose numbers are of now."""
    return [
        other
        for other in rows
        if row.job is not None
        and other.job is not None
        and other.job.job_id == row.job.job_id
        and other.key != row.key
        and other.sample is not None
        and other.sample.lost is None
        and gpu_freshness(other, steady) is Freshness.LIVE
    ]


def _readings(sample: GpuSample) -> list[Line]:
    lines = [fact(label, *_shown(getattr(sample, name), form)) for label, name, form in _READINGS]
    rate = sample.ecc_corrected_per_s
    lines += facts([("ECC rate", "" if rate is None else f"{rate:.2f} corrected a second")])
    lines += facts([("clocks held", ", ".join(sample.throttle)), ("driver asks", sample.recovery)])
    for part in sample.instances:
        used, total = known(part.mem_used_mib), known(part.mem_total_mib)
        lines.append(fact(f"MIG {part.gpu_instance}", f"{part.name} {mib(used)} of {mib(total)}"))
    return lines


def _shown(value: Value, form: str) -> tuple[str, str]:
    if isinstance(value, Missing):
        return f"{MISSING} {value.kind.value}{f': {value.why}' if value.why else ''}", "dim"
    return form.format(value), ""


def _identity(sample: GpuSample) -> Sequence[Line]:
    gpu = sample.gpu
    index = "" if gpu.index is None else str(gpu.index)
    minor = "" if gpu.minor is None else f"/dev/nvidia{gpu.minor}"
    memory = known(gpu.mem_total_mib)
    return facts(
        [
            ("model", gpu.name),
            ("uuid", gpu.uuid),
            ("bus", gpu.pci),
            ("index", index),
            ("device", minor),
            ("serial", gpu.serial),
            ("memory", "" if memory is None else mib(memory)),
        ]
    )


def _events(cluster: Cluster, row: GpuRow) -> list[Line]:
    if row.watch is None or row.sample is None:
        return []
    events = row.watch.events.of_gpu(row.sample.gpu.pci)
    if not events:
        return []
    now = cluster.head_now()
    told: list[Line] = [[(f"  {moment(event.at, now)} ", "dim"), event.text] for event in reversed(events[-20:])]
    return [[], section("events of the last two hours"), *told]


def find_gpu(cluster: Cluster, key: str) -> GpuRow | None:
    """The row of that key; None when it is gone."""
    return next((row for row in cluster.view.gpu_rows if row.key == key), None)
