"""What is found in a log: kinds of telling lines, where each rank stood, what launchers say."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.formats.log_lines import LogSign


@dataclass(frozen=True, slots=True)
class Finding:
    """All lines of one kind. `line` counts from 1; `at` is the time that the first one tells, as written there.

    `at_s` orders lines of one log: seconds since the year began, on the clock of whoever wrote. `name` is the
    exception that ends a traceback. `ranks` and `nodes` are those that wrote such lines.
    """

    sign: LogSign
    line: int
    text: str
    count: int = 1
    last_line: int = 0
    at: str = ""
    at_s: float | None = None
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class RankPosition:
    """Where a rank stood in one process group, by its watchdog: numbers of collective operations.

    `timed_out`: it waited for an operation that did not end; `seq`, `op` and `numel` say which.
    """

    rank: int
    group: str = ""
    enqueued: int | None = None
    completed: int | None = None
    timed_out: bool = False
    seq: int | None = None
    op: str = ""
    numel: str = ""
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class RootCause:
    """torchrun's own opinion: the first process to END."""

    rank: int
    exit_code: int | None = None
    host: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class LogDigest:
    """One log, read to its end."""

    findings: tuple[Finding, ...] = ()  # in the order of their first lines
    positions: tuple[RankPosition, ...] = ()
    root_causes: tuple[RootCause, ...] = ()
    lines: int = 0
    size_bytes: int = 0
    last_text: str = ""
    last_at: str = ""
    nccl_version: str = ""
    left_out: int = 0  # kinds of lines beyond what is kept
