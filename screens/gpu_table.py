"""The columns of the GPU table: pure functions from a GPU row to a cell. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cockpit.fleet import GpuRow, driver_silent, driver_silent_s, gpu_age_s, gpu_freshness, worst_first
from cockpit.gpu_models import DriverState, GpuSample, Missing, Value, known
from cockpit.models import Freshness, Health
from cockpit.words import MISSING, span
from screens.grid_model import Cell, Column
from themes import STATE_TOKENS

_ANSWERS = (DriverState.OK, DriverState.SMI, DriverState.NEURON, DriverState.DCGM)


@dataclass(frozen=True, slots=True)
class GpuTable:
    """Columns and filter fields over GPU rows; `steady` is the clock that ages are measured on."""

    steady: Callable[[], float]

    def columns(self) -> tuple[Column[GpuRow], ...]:
        """Every column, in order; the narrowest screen keeps node, GPU, what is wrong, use and job."""
        return (
            Column("gpu", "gpu", lambda r: r.key, lambda r: (r.node, r.slot), 8, 40),
            Column("state", "state", self._state, worst_first, 18, 100, cut=True, live=True, note="sorts worst first"),
            Column("util", "util", self._value("util_pct", "{:.0f}%"), _number("util_pct"), 4, 5, "right", 1,
                   down_first=True, note="share of time with a kernel running"),
            Column("mem", "mem", self._memory, _number("mem_used_mib"), 6, 11, "right", 3, down_first=True,
                   note="in use, of all"),
            Column("temp", "temp", self._value("temp_c", "{:.0f}°"), _number("temp_c"), 4, 5, "right", 4,
                   down_first=True),
            Column("power", "power", self._value("power_w", "{:.0f}W"), _number("power_w"), 5, 6, "right", 5,
                   down_first=True),
            Column("clock", "SM MHz", self._value("sm_clock_mhz", "{:.0f}"), _number("sm_clock_mhz"), 6, 6, "right", 7,
                   down_first=True, note="of its multiprocessors"),
            Column("job", "job", _job, lambda r: r.job.job_id if r.job else None, 5, 22, drop=2),
            Column("ranks", "ranks", _ranks, None, 5, 10, drop=6, note="of the job, on this GPU"),
            Column("hbm", "HBM", self._value("hbm_temp_c", "{:.0f}°"), _number("hbm_temp_c"), 4, 5, "right", wide=True,
                   note="temperature of its memory"),
            Column("ecc", "ECC unc/cor", self._ecc, _number("ecc_uncorrected"), 6, 14, "right", wide=True,
                   note="errors: uncorrected, corrected"),
            Column("nvlink", "NVLinks", self._links, _number("nvlinks_down"), 6, 8, "right", wide=True,
                   note="links that are up, of all"),
            Column("pcie", "PCIe", self._pcie, _number("pcie_gen"), 5, 9, "right", wide=True),
            Column("throttle", "throttle", _throttle, None, 8, 40, wide=True, cut=True, note="why it is slowed down"),
            Column("pci", "bus", lambda r: r.sample.gpu.pci if r.sample else MISSING, None, 8, 14, wide=True,
                   note="its address on the node"),
            Column("uuid", "uuid", lambda r: r.sample.gpu.uuid if r.sample else MISSING, None, 8, 44, wide=True),
        )  # fmt: skip

    def fields(self) -> Mapping[str, Callable[[GpuRow], str]]:
        """What `field:value` in a filter may name."""
        return {
            "node": lambda r: r.node,
            "gpu": lambda r: r.key,
            "state": lambda r: " ".join([r.health.value, *(finding.title for finding in r.findings)]),
            "job": lambda r: r.job.label if r.job else "",
            "user": lambda r: " ".join(
                [r.job.user if r.job else "", *(process.user for process in r.processes if process.user)]
            ),
            "name": lambda r: r.sample.gpu.name if r.sample else "",
            "uuid": lambda r: r.sample.gpu.uuid if r.sample else "",
        }

    def _old(self, row: GpuRow) -> bool:
        return driver_silent(row) or gpu_freshness(row, self.steady()) is not Freshness.LIVE

    def _state(self, row: GpuRow) -> Cell:
        watch = row.watch
        if watch is None:
            return "not watched", STATE_TOKENS[Health.UNKNOWN]
        if watch.seen_at is None:
            return (f"not read: {watch.fault.why}" if watch.fault else "connecting …"), STATE_TOKENS[Health.UNKNOWN]
        if row.sample is None:
            return driver_words(row) or "the driver does not show it", STATE_TOKENS[Health.UNKNOWN]
        words = " · ".join(finding.title for finding in row.findings)
        if row.sample.taken_at is None:
            return words or driver_words(row) or "not read yet", STATE_TOKENS[row.health]
        if gpu_freshness(row, self.steady()) is not Freshness.LIVE:
            age = f"{gpu_freshness(row, self.steady()).value} {span(gpu_age_s(row, self.steady()))}"
            return " ".join(part for part in (age, driver_words(row), words) if part), "stale"
        if driver_silent(row):
            told = (silent_words(row, self.steady()), words)
            return " · ".join(part for part in told if part), STATE_TOKENS[row.health]
        if not words and driver_words(row):
            return driver_words(row), STATE_TOKENS[Health.UNKNOWN]
        return (words, STATE_TOKENS[row.health]) if words else (_use(row), "")

    def _value(self, name: str, form: str) -> Callable[[GpuRow], Cell]:
        def cell(row: GpuRow) -> Cell:
            value: Value | None = getattr(row.sample, name) if row.sample else None
            return shown(value, form), "stale" if self._old(row) else ""

        return cell

    def _memory(self, row: GpuRow) -> Cell:
        if row.sample is None:
            return MISSING, "dim"
        used, total = known(row.sample.mem_used_mib), known(row.sample.gpu.mem_total_mib)
        words = MISSING if used is None else f"{used / 1024:.0f}"
        return f"{words}/{MISSING if total is None else f'{total / 1024:.0f}'}G", "stale" if self._old(row) else ""

    def _ecc(self, row: GpuRow) -> Cell:
        return _pair(row.sample, "ecc_uncorrected", "ecc_corrected")

    def _links(self, row: GpuRow) -> Cell:
        if row.sample is None:
            return MISSING
        down, links = known(row.sample.nvlinks_down), known(row.sample.nvlinks)
        return MISSING if down is None or links is None else f"{links - down:.0f}/{links:.0f}"

    def _pcie(self, row: GpuRow) -> Cell:
        if row.sample is None:
            return MISSING
        return f"gen{shown(row.sample.pcie_gen, '{:.0f}')} x{shown(row.sample.pcie_width, '{:.0f}')}"


def _use(row: GpuRow) -> str:
    if row.allocated is None:  # Slurm does not tell by index
        return "in use" if row.job or row.processes else "use not known"
    return "in use" if row.allocated else "free"


def driver_words(row: GpuRow) -> str:
    """What is wrong with the driver; empty while it answers."""
    reading = row.watch.reading if row.watch else None
    if reading is None or reading.driver.state in _ANSWERS:
        return ""
    why = f": {reading.driver.why}" if reading.driver.why else ""
    return f"driver {reading.driver.state.value}{why}"


def silent_words(row: GpuRow, steady: float) -> str:
    """`driver silent 4s`."""
    return f"driver silent {span(driver_silent_s(row, steady))}"


def shown(value: Value | None, form: str) -> str:
    """A value in its format; `–` when it is not there."""
    return MISSING if value is None or isinstance(value, Missing) else form.format(value)


def _pair(sample: GpuSample | None, first: str, second: str) -> str:
    if sample is None:
        return MISSING
    return f"{shown(getattr(sample, first), '{:.0f}')}/{shown(getattr(sample, second), '{:.0f}')}"


def _number(name: str) -> Callable[[GpuRow], float | None]:
    return lambda row: known(getattr(row.sample, name)) if row.sample else None


def _job(row: GpuRow) -> Cell:
    if row.job is not None:
        return f"{row.job.label} {row.job.user}"
    users = sorted({process.user or "?" for process in row.processes})
    return (f"no job: {','.join(users)}", STATE_TOKENS[Health.WARN]) if users and row.allocated is False else ""


def _ranks(row: GpuRow) -> Cell:
    ranks = sorted({int(rank) for process in row.processes if (rank := known(process.rank)) is not None})
    return ",".join(map(str, ranks))


def _throttle(row: GpuRow) -> Cell:
    return ", ".join(row.sample.throttle) if row.sample else ""
