"""NCCL's RAS reports, every text form since 2.24 and JSON since 2.28.7 -> RasReport. Columns are split at blanks.

Counts are of launches that the host made; send and receive are not counted, so equal counts prove nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from cockpit.formats.errors import FormatError
from cockpit.text import printable

_MAX_LINES, _MAX_RANKS = 200_000, 65_536
_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
_TOOK = re.compile(r"Communicators\.\.\. \((\d+(?:\.\d+)?)s\)")
_COMM = re.compile(r"#(\d+-\d+) \(([0-9a-f]{1,32})\) ([A-Z, ]+)$")
_PROCESS = re.compile(r"Process (\d+) on node (\S+) managing GPUs? ([\d, ]+|\d+ \(NVML \d+\))")
_RANK_ROW = re.compile(r"Rank (\d+)(.*?) -- GPU (\S+)(?: \(NVML \d+\))? managed by process (\d+) on node (\S+)")
_MISSING = re.compile(r"The missing ranks?: ([\d, ]+)")
_LAUNCHED = re.compile(r"(\d+) ranks? ha(?:ve|s) launched up to operation (\d+)")
_ONE_LAUNCHED = re.compile(r"Rank (\d+) has launched up to operation (\d+)")
_STATUS = re.compile(r"(\d+) ranks? ha(?:ve|s) status (\w+)")
_OPERATION = re.compile(r"different (?:(\w+) )?(?:collective )?operation counts")
_TIMEOUTS = re.compile(r"Encountered (\d+) communication timeouts?")
_EVENT = re.compile(r"\[([^\]]+)\] (PEER_\w+): (?:Process (\d+) on node (\S+) managing GPUs? (.+))?")
# 2.28.7 and 2.28.9 forget a comma in front of "status" of missing ranks.
_COMMA = re.compile(r'("nvml_dev":\s*-?\d+)(\s*")')
_INIT_STATES = {0: "RUNNING", 7: "INIT"}


@dataclass(frozen=True, slots=True)
class RasProcess:
    """A process that RAS names; `rank` where it stands in a communicator's row."""

    pid: int | None
    node: str
    gpus: str = ""
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class RasGroup:
    """A row of the communicators' table: how many, their ranks, status, and OK or what is wrong."""

    group: int
    comms: int
    ranks_per_comm: str
    status: str
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RasCounts:
    """How far ranks of a communicator have launched: `counts` maps an operation's number to how many stand there.

    `rows` are single ranks that are named, as (process, number). `operation` is "" where all are counted together.
    """

    comm: str
    operation: str
    counts: tuple[tuple[int, int], ...]
    rows: tuple[tuple[RasProcess, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RasReport:
    """One answer. `by_rank` is there in JSON only: (communicator, rank) -> counts by operation."""

    version: str = ""
    took_s: float | None = None
    groups: tuple[RasGroup, ...] = ()
    dead: tuple[RasProcess, ...] = ()
    incomplete: tuple[RasProcess, ...] = ()
    missing_ranks: tuple[int, ...] = ()
    counts: tuple[RasCounts, ...] = ()
    statuses: tuple[tuple[str, str, int], ...] = ()  # (communicator, status, ranks)
    timeouts: int = 0
    no_data: bool = False
    by_rank: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    places: dict[tuple[str, int], RasProcess] = field(default_factory=dict)

    @property
    def transitional(self) -> bool:
        """True while communicators are being made or ended: then a mismatch means nothing."""
        words = {group.status for group in self.groups} | {status for _, status, _ in self.statuses}
        return bool(words & {"INIT", "FINALIZE", "ABORT", "NOCOMM", "UNKNOWN"})


@dataclass(frozen=True, slots=True)
class RasEvent:
    """One event of the monitor mode."""

    at: str
    event: str
    process: RasProcess | None = None


def parse_ras(raw: bytes) -> RasReport:
    """A report in either form; raises FormatError for what is none."""
    text = raw.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        return _from_json(text, raw)
    report = _Text(text.splitlines()[:_MAX_LINES]).report
    told = report.groups or report.dead or report.incomplete or report.counts or report.no_data or report.version
    if not told and "Job summary" not in text and not report.statuses:
        raise FormatError("reading NCCL's RAS report", "it is no report", raw)
    return report


class _Text:
    """The sections of a text report, line by line."""

    def __init__(self, lines: list[str]) -> None:
        self.report = RasReport()
        self._section = self._comm = self._operation = ""
        self._status = ""
        self._counts: dict[int, int] = {}
        self._rows: list[tuple[RasProcess, int]] = []
        self._last_count: int | None = None
        for line in lines:
            self._line(printable(line.strip()))
        self._end_counts()

    def _line(self, line: str) -> None:
        if (found := _VERSION.search(line)) and not self.report.version:
            self._set(version=found[1])
        elif found := _TOOK.match(line):
            self._set(took_s=float(found[1]))
        elif line.startswith("No communicator data collected"):
            self._set(no_data=True)
        elif line in ("INCOMPLETE", "DEAD", "TIMEOUT", "ERROR", "Errors", "Warnings"):
            self._end_counts()
            self._section = line
        elif found := _COMM.match(line):
            self._end_counts()
            self._comm, self._section = found[1], ""
        else:
            for read in (self._row, self._count, self._told):
                if read(line):
                    return

    def _row(self, line: str) -> bool:
        words = line.split()
        if len(words) < 8 or not (words[0].isdigit() and words[1].isdigit()) or not words[6].isupper():
            return False
        errors = tuple(word.strip(",") for word in words[7:])
        group = RasGroup(int(words[0]), int(words[1]), words[4], words[6], tuple(e for e in errors if e != "OK"))
        self._set(groups=(*self.report.groups, group))
        return True

    def _count(self, line: str) -> bool:
        if found := _OPERATION.search(line):
            self._operation = found[1] if found[1] and found[1] != "collective" else ""
        elif found := _ONE_LAUNCHED.match(line):
            number = int(found[2])
            self._counts[number] = self._counts.get(number, 0) + 1
            row = _RANK_ROW.match(line)
            if row is not None:
                self._rows.append((_ranked(row), number))
        elif found := _LAUNCHED.match(line):
            self._last_count = int(found[2])
            self._counts[self._last_count] = self._counts.get(self._last_count, 0) + int(found[1])
        elif found := _STATUS.match(line):
            self._status = found[2]
            self._set(statuses=(*self.report.statuses, (self._comm, found[2], int(found[1]))))
        else:
            return False
        return True

    def _told(self, line: str) -> bool:
        if found := _RANK_ROW.match(line):
            process = _ranked(found)
            if self._last_count is not None and self._counts:
                self._rows.append((process, self._last_count))
            elif not self._status:
                self._set(missing_ranks=(*self.report.missing_ranks, int(found[1])))
        elif found := _PROCESS.match(line):
            process = RasProcess(int(found[1]), found[2], found[3].strip())
            if self._section == "DEAD":
                self._set(dead=(*self.report.dead, process))
            else:
                self._set(incomplete=(*self.report.incomplete, process))
        elif found := _MISSING.match(line):
            ranks = tuple(int(word) for word in found[1].replace(",", " ").split())
            self._set(missing_ranks=(*self.report.missing_ranks, *ranks))
        elif found := _TIMEOUTS.match(line):
            self._set(timeouts=int(found[1]))
        return True

    def _end_counts(self) -> None:
        if self._counts:
            counts = RasCounts(self._comm, self._operation, tuple(sorted(self._counts.items())), tuple(self._rows))
            self._set(counts=(*self.report.counts, counts))
        self._counts, self._rows, self._last_count, self._operation, self._status = {}, [], None, "", ""

    def _set(self, **changes: Any) -> None:
        self.report = replace(self.report, **changes)


def _ranked(found: re.Match[str]) -> RasProcess:
    return RasProcess(int(found[4]), found[5], found[3], int(found[1]))


def _from_json(text: str, raw: bytes) -> RasReport:
    try:
        told = json.loads(_COMMA.sub(r"\1,\2", text))
        return _report(told)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError("reading NCCL's RAS report", f"its JSON is not what it should be: {error}", raw) from None


def _report(told: dict[str, Any]) -> RasReport:
    report = RasReport(
        version=printable(str(told.get("nccl_version", ""))),
        took_s=_float(told.get("ras", {}).get("collection_time_sec")),
        timeouts=int(told.get("ras", {}).get("timeouts_count") or 0),
        no_data=not told.get("communicators"),
    )
    for number, comm in enumerate(told.get("communicators") or []):
        report = _with_comm(report, number, comm)
    return report


def _with_comm(report: RasReport, number: int, comm: dict[str, Any]) -> RasReport:
    name = printable(str(comm["hash"]))
    by_rank, places = dict(report.by_rank), dict(report.places)
    statuses: set[str] = set()
    for rank in comm.get("ranks", [])[:_MAX_RANKS]:
        key = (name, int(rank["rank"]))
        by_rank[key] = {printable(str(op)): int(count) for op, count in rank.get("collective_counts", {}).items()}
        places[key] = RasProcess(rank.get("pid"), printable(str(rank.get("host"))), str(rank.get("cuda_dev")), key[1])
        statuses.add(_status_of(rank.get("status", {})))
    missing: list[RasProcess] = []
    dead: list[RasProcess] = []
    for rank in comm.get("missing_ranks", [])[:_MAX_RANKS]:
        process = RasProcess(
            rank.get("pid"), printable(str(rank.get("host"))), str(rank.get("cuda_dev")), int(rank["rank"])
        )
        (dead if rank.get("status", {}).get("considered_dead") else missing).append(process)
    counts = _counts_of(name, {rank: each for (comm_name, rank), each in by_rank.items() if comm_name == name}, places)
    errors = (["INCOMPLETE"] if missing or dead else []) + (["MISMATCH"] if counts else [])
    group = RasGroup(number, 1, str(comm.get("size", "")), ",".join(sorted(statuses)) or "NOCOMM", tuple(errors))
    lacking = tuple(int(process.rank or 0) for process in (*missing, *dead))
    return replace(
        report,
        groups=(*report.groups, group),
        dead=(*report.dead, *dead),
        incomplete=(*report.incomplete, *missing),
        missing_ranks=(*report.missing_ranks, *lacking),
        counts=(*report.counts, *counts),
        by_rank=by_rank,
        places=places,
    )


def _status_of(status: dict[str, Any]) -> str:
    if status.get("abort_flag"):
        return "ABORT"
    if status.get("finalize_called") or status.get("destroy_flag"):
        return "FINALIZE"
    return _INIT_STATES.get(status.get("init_state", 0), "ERROR")


def _counts_of(
    comm: str, ranks: dict[int, dict[str, int]], places: dict[tuple[str, int], RasProcess]
) -> tuple[RasCounts, ...]:
    """Operations of which the ranks have launched different numbers."""
    found = []
    for operation in sorted({name for counts in ranks.values() for name in counts}):
        tally: dict[int, list[int]] = {}
        for rank, counts in ranks.items():
            tally.setdefault(counts.get(operation, 0), []).append(rank)
        if len(tally) > 1:
            few = min(tally.values(), key=len)
            rows = tuple((places[comm, rank], ranks[rank].get(operation, 0)) for rank in few[:64])
            counted = tuple(sorted((number, len(each)) for number, each in tally.items()))
            found.append(RasCounts(comm, operation, counted, rows))
    return tuple(found)


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def parse_event(raw: bytes) -> RasEvent | None:
    """One event of the monitor mode, text or JSON; None for the banner and other lines. Never raises."""
    text = raw.decode("utf-8", "replace").strip()
    if text.startswith("{"):
        try:
            told = json.loads(text)
            peer = told["peer"]
            gpus = ", ".join(str(gpu) for gpu in peer.get("cuda_devs", []))
            process = RasProcess(int(peer["pid"]), printable(str(peer["host"])), gpus)
            return RasEvent(printable(str(told["timestamp"])), printable(str(told["event"])), process)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
    found = _EVENT.match(printable(text))
    if found is None:
        return None
    process = RasProcess(int(found[3]), found[4], found[5]) if found[3] else None  # type: ignore[assignment]
    return RasEvent(found[1], found[2], process)
