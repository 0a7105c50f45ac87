"""Check runs kept in the state directory, one JSON line each, so that "since when" has an answer."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cockpit.checks.models import CheckRun, NodeResult, Verdict
from cockpit.config import state_dir
from cockpit.export import private_dir
from cockpit.text import printable

SCHEMA = 1
_READ_BYTES = 32 * 2**20  # the newest part of a longer file
_MAX_LINE = 4 * 2**20
_SAYS = 160
_WORDS = {verdict.value: verdict for verdict in Verdict}


@dataclass(frozen=True, slots=True)
class KeptNode:
    """One node of a kept run. `checks`: check -> (verdict, what it said; "" where it passed)."""

    verdict: Verdict
    checks: dict[str, tuple[Verdict, str]] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One run as it is kept."""

    id: str
    kind: str
    at: float
    nodes: dict[str, KeptNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Since:
    """How long a check has said the same of a node: first seen so at `at`, in `runs` runs without a change.

    `before` is what it said the run before, None when no earlier run asked it.
    """

    at: float
    runs: int
    before: Verdict | None = None


def history_path(cluster: str) -> Path:
    """Where a cluster's check runs are kept."""
    return state_dir() / "checks" / f"{quote(cluster, safe='')}.jsonl"


class CheckHistory:
    """The runs of one file. Several cockpits may append at once; a line that broke off spoils no other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped = 0  # lines of the last load() that could not be read

    def append(self, run: CheckRun) -> None:
        """Add one run; raises OSError (no room, no right)."""
        line = json.dumps(_record(run), ensure_ascii=False, separators=(",", ":")).encode()
        private_dir(self.path.parent)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self.path, flags, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            broken = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            data = (b"\n" if broken else b"") + line + b"\n"
            while data:
                data = data[file.write(data) or 0 :]

    def load(self) -> tuple[KeptRun, ...]:
        """Every run, oldest first; () when nothing was ever kept. Raises OSError when the file cannot be read."""
        self.skipped = 0
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                start = max(0, size - _READ_BYTES)
                file.seek(start)
                lines = file.read(_READ_BYTES).split(b"\n")[1 if start else 0 :]
        except FileNotFoundError:
            return ()
        found = [_parse(line) for line in lines if line.strip()]
        self.skipped = sum(each is None for each in found)
        return tuple(each for each in found if each is not None)


def _record(run: CheckRun) -> dict[str, Any]:
    nodes = {node.node: _node(node) for node in run.nodes}
    for pair in run.pairs:
        # A pair is kept at both of its nodes, under a name that says with whom.
        for one, other in ((pair.server, pair.client), (pair.client, pair.server)):
            kept = nodes.setdefault(one, {"verdict": pair.result.verdict.value, "checks": {}})
            kept["checks"][f"{pair.result.check}:{other}"] = [pair.result.verdict.value, pair.result.says[:_SAYS]]
    return {"schema": SCHEMA, "id": run.id, "kind": run.kind, "at": run.at, "nodes": nodes}


def _node(node: NodeResult) -> dict[str, Any]:
    if node.fault is not None:
        return {"verdict": node.verdict.value, "fault": node.fault.line()[:_SAYS], "checks": {}}
    said = {
        result.check: [result.verdict.value]
        if result.verdict in (Verdict.PASS, Verdict.NA)
        else [result.verdict.value, result.says[:_SAYS]]
        for result in node.results
    }
    return {"verdict": node.verdict.value, "checks": said}


def _parse(line: bytes) -> KeptRun | None:
    """One line; None for what is none of ours."""
    if len(line) > _MAX_LINE:
        return None
    try:
        raw = json.loads(line)
        nodes = {printable(str(name)): _kept(node) for name, node in raw["nodes"].items()}
        return KeptRun(printable(str(raw["id"])), printable(str(raw["kind"])), float(raw["at"]), nodes)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        return None


def _kept(raw: dict[str, Any]) -> KeptNode:
    checks = {
        printable(str(check)): (_WORDS[told[0]], printable(str(told[1])) if len(told) > 1 else "")
        for check, told in raw["checks"].items()
    }
    return KeptNode(_WORDS[raw["verdict"]], checks, printable(str(raw.get("fault", ""))))


def since(runs: Sequence[KeptRun], node: str, check: str) -> Since | None:
    """Since when this check says what it said last; None when no kept run has asked it on that node.

    Runs that could not ask it (the node did not answer) neither end nor prolong it.
    """
    first: tuple[float, Verdict] | None = None
    count, before = 0, None
    for run in reversed(runs):
        kept = run.nodes.get(node)
        if kept is None or check not in kept.checks:
            continue
        verdict = kept.checks[check][0]
        if first is not None and verdict is not first[1]:
            before = verdict
            break
        first, count = (run.at, verdict), count + 1
    return None if first is None else Since(first[0], count, before)


def last_run(runs: Sequence[KeptRun], kind: str) -> KeptRun | None:
    """The newest run of that kind."""
    return next((run for run in reversed(runs) if run.kind == kind), None)
