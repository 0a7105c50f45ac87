"""Check runs kept in the state directory, one JSON line each, so that "since when" has an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cockpit.checks.models import CheckRun, NodeResult, Verdict
from cockpit.kept_lines import KeptLines
from cockpit.text import printable

SCHEMA = 1
_MAX_LINE = 4 * 2**20
_SAYS = 160
_WORDS = {verdict.value: verdict for verdict in Verdict}


@dataclass(frozen=True, slots=True)
class KeptNode:
    """One node of a kept run. `checks`: check -> (verdict, what it said; "" where it passed)."""

    verdict: Verdict
    checks: dict[str, tuple[Verdict, str]] = field(default_factory=dict)
    fault: str = ""
    versions: dict[str, str] = field(default_factory=dict)


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


class CheckHistory(KeptLines[KeptRun]):
    """The check runs of one file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _run, _MAX_LINE)

    def append(self, run: CheckRun) -> None:
        """Add one run; raises OSError (no room, no right)."""
        self._add(_record(run))


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
    versions = {"versions": dict(node.versions)} if node.versions else {}
    return {"verdict": node.verdict.value, "checks": said, **versions}


def _run(raw: dict[str, Any]) -> KeptRun:
    nodes = {printable(str(name)): _kept(node) for name, node in raw["nodes"].items()}
    return KeptRun(printable(str(raw["id"])), printable(str(raw["kind"])), float(raw["at"]), nodes)


def _kept(raw: dict[str, Any]) -> KeptNode:
    checks = {
        printable(str(check)): (_WORDS[told[0]], printable(str(told[1])) if len(told) > 1 else "")
        for check, told in raw["checks"].items()
    }
    versions = {printable(str(name)): printable(str(word)) for name, word in raw.get("versions", {}).items()}
    return KeptNode(_WORDS[raw["verdict"]], checks, printable(str(raw.get("fault", ""))), versions)


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
