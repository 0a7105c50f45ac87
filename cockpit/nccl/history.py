"""What was measured on a cluster before: one JSON a run, appended to a file that only its owner can read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import Any

from cockpit.config import Rules
from cockpit.kept_lines import KeptLines, run_id
from cockpit.nccl.models import Expectation, NcclRun, NcclVersions, Shape, Verdict
from cockpit.nccl.verdict import DEFAULT_RULES, from_history
from cockpit.text import printable

SCHEMA = 1
BASELINE_RUNS = 5
_MAX_LINE = 256 * 1024
_MAX_ROWS = 100
_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class HistoryRun:
    """One run as it is kept. `curve` holds (size in bytes, busbw in GB/s), `nodes` the names Slurm uses."""

    id: str
    at: float
    verdict: str
    shape: Shape = field(default_factory=Shape)
    nodes: tuple[str, ...] = ()
    busbw_large_gbs: float | None = None
    size_large_bytes: int | None = None
    pct: float | None = None
    latency_us: float | None = None
    reasons: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    curve: tuple[tuple[int, float], ...] = ()
    versions: NcclVersions = field(default_factory=NcclVersions)
    transport: str = ""
    kind: str = "run"  # run, sweep or read
    job_id: int | None = None
    origin: str = ""  # the file it was read from
    proof: tuple[str, ...] = ()  # NCCL's own lines that show the way the data went
    settings: tuple[tuple[str, str], ...] = ()  # what the environment set, by NCCL's own words
    pairs: tuple[tuple[str, str, float | None], ...] = ()  # of a sweep: the best GB/s of each pair, None: none

    @property
    def good(self) -> bool:
        """True for what a later run may be measured by: it passed, or only lacked a figure to compare with."""
        learned = self.verdict == "unjudged" and set(self.flags) <= {"no_expectation", "efa", "check_off"}
        return self.busbw_large_gbs is not None and (self.verdict == "pass" or learned)


def history_record(
    run: NcclRun,
    verdict: Verdict,
    *,
    at: float,
    nodes: Sequence[str] = (),
    versions: NcclVersions | None = None,
    kind: str = "run",
    job_id: int | None = None,
    origin: str = "",
) -> HistoryRun:
    """What is kept of a run. `versions` adds what only the nodes know (driver, EFA); the log's own win."""
    curve = [(row.size_bytes, value) for row in run.rows if (value := row.busbw_gbs) is not None]
    return HistoryRun(
        id=run_id(at),
        at=at,
        verdict=verdict.word.value,
        shape=verdict.shape,
        nodes=tuple(nodes) or run.hosts,
        busbw_large_gbs=verdict.busbw_large_gbs,
        size_large_bytes=verdict.size_large_bytes,
        pct=verdict.pct,
        latency_us=verdict.latency_us,
        reasons=verdict.reasons,
        flags=verdict.flags,
        curve=tuple(curve[-_MAX_ROWS:]),
        versions=_merged(run.versions, versions),
        transport=run.evidence.transport,
        proof=tuple(line[:_MAX_TEXT] for line in (run.evidence.transport_line, run.evidence.fallback_line) if line),
        settings=tuple((name, value[:_MAX_TEXT]) for name, value in list(run.evidence.settings.items())[:_MAX_ROWS]),
        kind=kind,
        job_id=job_id,
        origin=printable(origin),
    )


def _merged(told: NcclVersions, known: NcclVersions | None) -> NcclVersions:
    base = asdict(known) if known is not None else {}
    return NcclVersions(**{**base, **{key: value for key, value in asdict(told).items() if value}})


# -- the file


class History(KeptLines[HistoryRun]):
    """The runs of one file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _run, _MAX_LINE)

    def append(self, run: HistoryRun) -> None:
        """Add one run; raises OSError (no room, no right)."""
        self._add({"schema": SCHEMA, **asdict(run)})


def _run(raw: dict[str, Any]) -> HistoryRun:
    known = {each.name for each in fields(HistoryRun)}
    values = {key: value for key, value in raw.items() if key in known}
    values |= {
        key: tuple(printable(str(word)) for word in values.get(key, ()))
        for key in ("nodes", "reasons", "flags", "proof")
    }
    values |= {
        key: printable(str(values[key])) for key in ("id", "verdict", "kind", "transport", "origin") if key in values
    }
    values["at"] = float(raw["at"])
    values["curve"] = tuple((int(size), float(busbw)) for size, busbw in raw.get("curve", ()))
    values["pairs"] = tuple(
        (printable(str(one)), printable(str(other)), None if busbw is None else float(busbw))
        for one, other, busbw in raw.get("pairs", ())
    )
    values["settings"] = tuple((printable(str(key)), printable(str(text))) for key, text in raw.get("settings", ()))
    values["shape"] = _part(Shape, raw.get("shape", {}))
    values["versions"] = _part(NcclVersions, raw.get("versions", {}))
    return HistoryRun(**values)


def _part(kind: type[Any], raw: dict[str, Any]) -> Any:
    names = {each.name for each in fields(kind)}
    items = ((key, printable(value) if isinstance(value, str) else value) for key, value in raw.items())
    return kind(**{key: value for key, value in items if key in names})


# -- comparing


def comparable(one: Shape, other: Shape) -> bool:
    """Equal in all that decides a bandwidth; how the instance type became known does not count."""
    return shape_key(one) == shape_key(other)


def shape_key(shape: Shape) -> tuple[object, ...]:
    """What decides a bandwidth, to group runs by."""
    return shape.instance_type, shape.nodes, shape.gpus_per_node, shape.collective, shape.algorithm


def busbw_at(run: HistoryRun, size_bytes: int) -> float | None:
    """What that run reached at this size; the median when it was measured several times."""
    values = [busbw for size, busbw in run.curve if size == size_bytes]
    return median(values) if values else None


def baseline(
    runs: Iterable[HistoryRun],
    shape: Shape,
    size_bytes: int,
    rules: Rules = DEFAULT_RULES,
    *,
    before: float | None = None,
) -> Expectation | None:
    """The median of the last good runs of the same shape at that size; None without any.

    Give `before` (a moment) to leave out what came later, for a run that is in the history itself.
    """
    fitting = [
        value
        for run in runs
        if run.good and comparable(run.shape, shape) and (before is None or run.at < before)
        if (value := busbw_at(run, size_bytes)) is not None
    ]
    return from_history(fitting[-BASELINE_RUNS:], rules)


def changes(runs: Sequence[HistoryRun], run: HistoryRun) -> tuple[str, ...]:
    """What is other than at the last good run of this shape: `NCCL 2.27.3 -> 2.29.2`. So a fall can be laid at it."""
    earlier = [each for each in runs if each.good and each.at < run.at and comparable(each.shape, run.shape)]
    if not earlier:
        return ()
    names = {
        "nccl": "NCCL", "plugin": "OFI plugin", "libfabric": "libfabric", "driver": "driver", "efa": "EFA",
        "cuda": "CUDA", "nccl_tests": "nccl-tests",
    }  # fmt: skip
    pairs = ((names[name], getattr(earlier[-1].versions, name), getattr(run.versions, name)) for name in names)
    found = [f"{name} {old} -> {new}" for name, old, new in pairs if old and new and old != new]
    if earlier[-1].nodes and run.nodes and set(earlier[-1].nodes) != set(run.nodes):
        found.append("other nodes")
    return tuple(found)
