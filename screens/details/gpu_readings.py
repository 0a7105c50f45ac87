"""A GPU's readings, its last ten minutes and what it is, as lines. Imports no Textual."""

from __future__ import annotations

from cockpit.catalog.gpu_codes import throttle_reasons
from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow
from cockpit.gpu_models import GpuSample, Missing, Value, known
from cockpit.words import MISSING, mib
from screens.details.parts import listed
from screens.graph import sparkline
from screens.lines import Line, Link, Piece, Subject, fact, facts

GRAPH_WIDTH = 60
READINGS: tuple[tuple[str, str, str], ...] = (
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
_HISTORY = (
    ("utilisation", "util_pct", 0.0, 100.0),
    ("temperature", "temp_c", 20.0, 100.0),
    ("power", "power_w", 0.0, None),
)


def history_lines(cluster: Cluster, row: GpuRow, sample: GpuSample) -> list[Line]:
    """Utilisation, temperature and power of the last minutes, a step a column."""
    lines: list[Line] = []
    for title, metric, low, high in _HISTORY:
        series = cluster.streams.history.series(row.node, sample.gpu.key, metric)
        values = [value for _, value in series]
        numbers = [value for value in values if value is not None]
        if not numbers:
            lines.append(fact(title, "nothing yet", "dim"))
            continue
        top = high if high is not None else max(max(numbers), known(sample.power_limit_w) or 0.0)
        graph = sparkline(values, GRAPH_WIDTH, low, top)
        lines.append([*fact(title, graph), (f"  {min(numbers):.0f}–{max(numbers):.0f}", "dim")])
    return lines


def reading_lines(sample: GpuSample) -> list[Line]:
    """Every reading; one that is not there with the reason."""
    lines = [fact(title, *_shown(getattr(sample, name), form)) for title, name, form in READINGS]
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
