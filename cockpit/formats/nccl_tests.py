"""The output of nccl-tests, old and new, line by line: rows come as they are printed.

Every layout from 2017 to 2.20 is read, with the labels of mpirun and srun, rows that NCCL's log lines split,
tables of copies that ran without MPI, and text that breaks off. Memory is bounded whatever is fed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from cockpit.formats import nccl_rows as rows
from cockpit.formats.nccl_failures import FailureReader
from cockpit.formats.nccl_lines import take_apart
from cockpit.formats.nccl_log import LogReader
from cockpit.nccl.models import NcclFooter, NcclRank, NcclRow, NcclRun
from cockpit.text import printable

MAX_ROWS = 20_000
MAX_RANKS = 16_384
MAX_RUNS = 64
_MAX_PENDING = 64  # tasks whose row is half printed
_MAX_READINGS = 4
_MAX_ROW = 1024
_MAX_COMMENT = 2048

_VERSION = re.compile(r"#\s*nccl-tests version (\S+)(?: \((\w+)\))?.*?(?:nccl-library=(\d+))?\s*$")
_STARTING = re.compile(r"#\s*Collective test (starting|concluded): (\S+)")
_PARAMETERS = re.compile(r"#\s*nThread \d")
_PARAMETER = re.compile(r"(\w+(?: iters)?):? (\d{1,18})(?:\((factor|bytes)\))?")
_RANK = re.compile(
    r"#\s*Rank\s+(\d{1,7})\s+(?:Group\s+(\d{1,7})\s+)?Pid\s+(\d{1,9}) on\s+(\S{1,255}) device\s+(\d{1,4})"
    r" \[([0-9a-fA-Fx:.]{2,16})\] (.*)"
)
_OUT_OF_BOUNDS = re.compile(r"#?\s*Out of bounds values\s*:\s*(\d{1,18})\s*(OK|FAILED)?")
_AVERAGE = re.compile(r"#?\s*Avg bus bandwidth\s*:\s*(\S+)\s*(OK|FAILED)?")
_REDUCED = re.compile(r"Reducing maxBytes to (\d{1,18})")
_BINARY = re.compile(r"(?:^|[\s/])([a-z_]+)_perf(?:_[A-Za-z0-9]+)?(?=\s|$)")


class NcclReader:
    """Feed it lines (bytes or str, with or without newline); take rows at once and the runs when asked."""

    def __init__(self) -> None:
        self._done: list[NcclRun] = []
        self._new_run()

    def _new_run(self) -> None:
        self._run = NcclRun()
        self._rows: list[NcclRow] = []
        self._ranks: list[NcclRank] = []
        self._log = LogReader()
        self._failures = FailureReader()
        self._layouts: dict[str, rows.Layout] = {}
        self._pending: dict[str, tuple[str, ...]] = {}  # ways to read a row that is half printed
        self._headers = 0
        self._tables: set[str] = set()
        self._first_ranks: set[tuple[str, int]] = set()
        self._begun = False

    # -- feeding

    def feed(self, raw: str | bytes) -> tuple[NcclRow, ...]:
        """Read one line; the rows that it completed (at most two)."""
        line = take_apart(raw)
        before = len(self._rows) + self._run.rows_dropped
        self._text(line.task, line.text)
        if line.log:
            self._begun = True
            self._log.feed(line.log)
        new = len(self._rows) + self._run.rows_dropped - before
        return tuple(self._rows[-new:]) if new > 0 else ()

    def feed_all(self, lines: Iterable[str | bytes]) -> NcclReader:
        """Read all these lines and the end of the text."""
        for line in lines:
            self.feed(line)
        self.close()
        return self

    def close(self) -> tuple[NcclRow, ...]:
        """The text has ended: rows of which only the first half was printed."""
        before = len(self._rows)
        for task in list(self._pending):
            self._flush(task)
        return tuple(self._rows[before:])

    def _text(self, task: str, text: str) -> None:
        stripped = text.strip()
        if not stripped:
            return
        if parts := self._continued(task, text):
            self._grow(task, parts)
        elif rows.part_of_row(text):
            self._flush(task)
            self._grow(task, (text,))
        elif stripped.startswith("#") or "bus bandwidth" in text or "Out of bounds" in text or "busbw" in text:
            self._comment(task, stripped[:_MAX_COMMENT])
        elif stripped in ("...", "…"):
            self._run = replace(self._run, elided=True)
        elif not self._log.version_line(text) and self._failures.feed(text, task):
            self._begun = True

    # -- rows

    def _continued(self, task: str, text: str) -> tuple[str, ...]:
        """What this and the row that was begun may be together; () when it is no continuation.

        `srun --unbuffered` cuts every 1,024 bytes, also in the middle of a number: the pieces are one word then.
        Elsewhere the blanks between two pieces may have been lost.
        """
        if text[:1].isspace() and rows.starts_row(text):
            return ()
        wholes = (f"{begun}{blank}{text}" for begun in self._pending.get(task, ()) for blank in ("", " "))
        return tuple(whole for whole in wholes if rows.part_of_row(whole))[:_MAX_READINGS]

    def _grow(self, task: str, readings: tuple[str, ...]) -> None:
        """Keep the row if one of the readings is whole; else they wait for more."""
        found = (rows.read_row(text, self._layouts.get(task)) for text in readings)
        if (row := next((row for row in found if row is not None), None)) is not None:
            self._pending.pop(task, None)
            self._keep(task, row)
        elif len(readings[0]) <= _MAX_ROW and (task in self._pending or len(self._pending) < _MAX_PENDING):
            self._pending[task] = readings

    def _flush(self, task: str) -> None:
        found = (rows.read_row(text, self._layouts.get(task), final=True) for text in self._pending.pop(task, ()))
        if (row := next((row for row in found if row is not None), None)) is not None:
            self._keep(task, row)

    def _keep(self, task: str, row: NcclRow) -> None:
        self._begun = True
        self._add_table(task)
        if len(self._rows) < MAX_ROWS:
            self._rows.append(replace(row, task=printable(task)))
        else:
            self._run = replace(self._run, rows_dropped=self._run.rows_dropped + 1)

    def _add_table(self, task: str) -> None:
        if len(self._tables) < MAX_RANKS:
            self._tables.add(task)

    # -- comments

    def _comment(self, task: str, text: str) -> None:
        if found := _VERSION.match(text):
            self._header(task)
            self._version(found)
        elif found := _STARTING.match(text):
            if found[1] == "starting":
                self._header(task)
            self._named(found[2])
        elif _PARAMETERS.match(text):
            self._header(task, counts=True)
            self._parameters(text)
        elif found := _RANK.match(text):
            self._rank(found)
        elif layout := rows.read_head(text):
            if self._run.complete:
                self._end_run()
            self._begun = True
            if len(self._layouts) < MAX_RANKS:
                self._layouts[task] = layout
        else:
            self._footer(task, text)

    def _header(self, task: str, *, counts: bool = False) -> None:
        """A header begins a new run when the present one has ended or has rows; else it is a copy's."""
        failed = self._headers > 0 and bool(self._failures.errors())
        if failed or self._run.complete or (self._rows and task in self._tables):
            self._end_run()
        self._begun = True
        self._add_table(task)
        if counts:
            self._headers += 1

    def _version(self, found: re.Match[str]) -> None:
        name = found[1] + (f" ({found[2]})" if found[2] else "")
        library = int(found[3]) if found[3] and len(found[3]) <= 6 else 0
        versions = replace(self._log.versions, nccl_tests=printable(name))
        if library and not versions.nccl:
            versions = replace(versions, nccl=f"{library // 10000}.{library // 100 % 100}.{library % 100}")
        self._log.versions = versions

    def _named(self, program: str) -> None:
        found = _BINARY.search(program)
        if found is not None:
            self._run = replace(self._run, collective=printable(found[1]))

    def _parameters(self, text: str) -> None:
        found = {
            f"{key} {unit}" if unit else key: int(value)
            for key, value, unit in _PARAMETER.findall(text.lstrip("# "))[:30]
        }
        self._run = replace(self._run, parameters=found)

    def _rank(self, found: re.Match[str]) -> None:
        rank, group, pid, host, device, pci, gpu = found.groups()
        self._begun = True
        if rank == "0" and len(self._first_ranks) < MAX_RANKS:
            self._first_ranks.add((host, int(pid)))
        if len(self._ranks) < MAX_RANKS:
            number = None if group is None else int(group)
            gpu = printable(gpu.strip()[:80])
            self._ranks.append(NcclRank(int(rank), number, int(pid), printable(host), int(device), pci, gpu))

    def _footer(self, task: str, text: str) -> None:
        footer = self._run.footer or NcclFooter()
        if found := _OUT_OF_BOUNDS.match(text):
            self._flush(task)
            ok = None if found[2] is None else found[2] == "OK"
            footer = replace(footer, out_of_bounds=int(found[1]), out_of_bounds_ok=ok)
        elif found := _AVERAGE.match(text):
            ok = None if found[2] is None else found[2] == "OK"
            footer = replace(footer, average_gbs=_float(found[1]), average_ok=ok)
        else:
            if found := _REDUCED.search(text):
                self._run = replace(self._run, reduced_to_bytes=int(found[1]))
            elif text.endswith("...") and text.startswith("#  Rank"):
                self._run = replace(self._run, ranks_cut=True)
            elif self._failures.feed(text, task):
                self._begun = True
            return
        self._begun = True
        self._run = replace(self._run, footer=footer)

    # -- results

    def _end_run(self) -> None:
        self.close()
        if len(self._done) < MAX_RUNS:
            self._done.append(self._current())
        self._new_run()

    @property
    def rows(self) -> tuple[NcclRow, ...]:
        """The rows of the run that is being printed."""
        return tuple(self._rows)

    def runs(self) -> tuple[NcclRun, ...]:
        """Every run so far, the one that is being printed last; none when nothing of nccl-tests was seen."""
        return (*self._done, self._current()) if self._begun else tuple(self._done)

    def _current(self) -> NcclRun:
        evidence = self._log.evidence
        return replace(
            self._run,
            rows=tuple(self._rows),
            ranks=tuple(self._ranks),
            versions=self._log.versions,
            evidence=evidence,
            errors=self._failures.errors(evidence.warnings),
            exit_code=self._failures.exit_code,
            copies=self._copies(),
        )

    def _copies(self) -> int:
        tasks_with_rows = len({row.task for row in self._rows})
        copies = max(1, self._headers, len(self._first_ranks), tasks_with_rows)
        return max(copies, 2) if any(interleaved(group) for group in sequences(self._rows)) else copies


def sequences(found: Iterable[NcclRow]) -> Iterator[list[NcclRow]]:
    """Rows that one table printed for one type and operation, in their order."""
    groups: dict[tuple[object, ...], list[NcclRow]] = {}
    for row in found:
        groups.setdefault((row.task, row.label, row.dtype, row.redop, row.root), []).append(row)
    yield from groups.values()


def interleaved(found: list[NcclRow]) -> bool:
    """True when sizes go back in a way that repeated cycles (-N) do not: two tables mixed."""
    sizes = [row.size_bytes for row in found]
    first = next((at for at in range(1, len(sizes)) if sizes[at] < sizes[at - 1]), None)
    if first is None:
        return False
    cycle = sizes[:first]
    return any(size != cycle[at % first] for at, size in enumerate(sizes))


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None
