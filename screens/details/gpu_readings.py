"""A GPU's readings, its last ten minutes and what it is, as lines. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.catalog.gpu_codes import throttle_reasons
from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow
from cockpit.gpu_models import GpuSample, Missing, Value, known
from cockpit.sources.gpu_history import SPAN_S, STEP_S
from cockpit.words import MISSING, mib
from screens.details.parts import listed
from screens.graph import graph_lines, sparkline
from screens.lines import LABEL_WIDTH, Line, Link, Piece, Subject, fact, facts

GRAPH_WIDTH = 50  # with label and range it fits 80 columns: a graph must not be broken at a blank
GRAPH_HEIGHT = 5  # the last line tells the time
READINGS: tuple[tuple[str, str, str], ...] = (
    ("utilisation", "util_pct", "{:.0f} %"),
    ("memory bus", "mem_util_pct", "{:.0f} %"),
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
_AFTER_BUS = 2  # the place of the memory among them: a size, not a number with a unit
_UTILISATION = "util_pct"
_SPARKS = (("temperature", "temp_c", 20.0, 100.0), ("power", "power_w", 0.0, None))


def history_lines(cluster: Cluster, row: GpuRow, sample: GpuSample) -> list[Line]:
    """Its use as a graph with scale and time, and below it, over the same time, temperature and power."""
    past = {metric: _even(cluster, row, metric) for metric in (_UTILISATION, *(metric for _, metric, _, _ in _SPARKS))}
    use = past[_UTILISATION]
    lines: list[Line] = [fact("utilisation", "" if _known(use) else "nothing yet", "dim")]
    if _known(use):
        left = " " * (LABEL_WIDTH + 2 - len("100% ┤"))
        graph = graph_lines(use, GRAPH_WIDTH + len("100% ┤"), GRAPH_HEIGHT, span_s=SPAN_S, low=0, high=100, unit="%")
        lines = [[left, *line] for line in graph]
        lines[0] = [(f"{'  util':<{len(left)}}", "dim"), *graph[0]]
    return lines + [_spark(sample, title, past[metric], low, high) for title, metric, low, high in _SPARKS]


def _spark(sample: GpuSample, title: str, values: Sequence[float | None], low: float, high: float | None) -> Line:
    numbers = _known(values)
    if not numbers:
        return fact(title, "nothing yet", "dim")
    top = high if high is not None else max(max(numbers), known(sample.power_limit_w) or 0.0)
    return [*fact(title, sparkline(values, GRAPH_WIDTH, low, top)), (f"  {min(numbers):.0f}–{max(numbers):.0f}", "dim")]


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


def reading_lines(sample: GpuSample) -> list[Line]:
    """Every reading; one that is not there with the reason."""
    lines = [fact(title, *_shown(getattr(sample, name), form)) for title, name, form in READINGS]
    lines.insert(_AFTER_BUS, fact("memory", *_memory(sample)))
    rate = sample.ecc_corrected_per_s
    lines += facts([("ECC rate", "" if rate is None else f"{rate:.2f} corrected a second")])
    lines += [*listed("clocks held", _held(sample)), *facts([("driver asks", sample.recovery)])]
    for part in sample.instances:
        used, total = known(part.mem_used_mib), known(part.mem_total_mib)
        lines.append(fact(f"MIG {part.gpu_instance}", f"{part.name} {mib(used)} of {mib(total)}"))
    return lines


def _held(sample: GpuSample) -> list[Piece]:
    """Why its clocks are held; each reason leads to its explanation where the driver's mask is known."""
    mask = known(sample.throttle_mask)
    if mask is None:
        return list(sample.throttle)
    return [Link(one.word, "", Subject("throttle", f"{one.bit:x}")) for one in throttle_reasons(int(mask))]


def _memory(sample: GpuSample) -> tuple[str, str]:
    used, total = known(sample.mem_used_mib), known(sample.gpu.mem_total_mib)
    if used is None:
        return _shown(sample.mem_used_mib, "{}")
    return mib(used) + ("" if total is None else f" of {mib(total)}"), ""


def _shown(value: Value, form: str) -> tuple[str, str]:
    if isinstance(value, Missing):
        return f"{MISSING} {value.kind.value}{f': {value.why}' if value.why else ''}", "dim"
    return form.format(value), ""


def identity_lines(sample: GpuSample) -> list[Line]:
    """Which GPU it is."""
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
