"""Which checks failed when they were last asked, and since when, from the newest kept runs backwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cockpit.checks.history import CheckHistory, KeptNode, KeptRun
from cockpit.checks.models import Verdict

MOST_RUNS = 500  # looked at, to learn since when


@dataclass(slots=True)
class Failing:
    """One check that failed on one node when it was last asked, at `at`; it says so since `since` (epoch seconds).

    `partner` is the other node of a pair.
    """

    kind: str  # of the run: efa, health, pair, deep
    check: str
    node: str
    says: str
    at: float
    since: float
    partner: str = ""


def newest_failing(path: Path, oldest_at: float) -> tuple[Failing, ...]:
    """What fails by the newest run that asked each node, no run before `oldest_at`; raises OSError."""
    seen: set[tuple[str, ...]] = set()
    found: list[Failing] = []
    lasting: dict[tuple[str, str, str], Failing] = {}  # (kind, node, check as kept) -> still open: since when?
    for number, run in enumerate(CheckHistory(path).newest_first()):
        if number >= MOST_RUNS or (run.at < oldest_at and not lasting):
            break
        for name, node in run.nodes.items():
            _prolong(lasting, run, name, node)
            if run.at >= oldest_at and not node.fault:
                new = list(_new(seen, run, name, node))
                found += new
                lasting.update({(run.kind, name, _kept_name(each)): each for each in new})
    return tuple(found)


def _new(seen: set[tuple[str, ...]], run: KeptRun, name: str, node: KeptNode) -> Iterator[Failing]:
    """What fails there and was not told by a newer run; each pair of nodes is asked for itself."""
    for check, (verdict, says) in node.checks.items():
        which = (run.kind, name, check) if run.kind == "pair" else (run.kind, name)
        if which in seen or verdict is not Verdict.FAIL:
            continue
        check, _, partner = check.partition(":") if run.kind == "pair" else (check, "", "")
        yield Failing(run.kind, check, name, says, run.at, run.at, partner)
    seen |= {(run.kind, name, check) for check in node.checks} if run.kind == "pair" else {(run.kind, name)}


def _prolong(lasting: dict[tuple[str, str, str], Failing], run: KeptRun, name: str, node: KeptNode) -> None:
    """An older run: what failed then as well lasts for longer, what did not began after it."""
    for check, (verdict, _) in node.checks.items():
        one = lasting.get((run.kind, name, check))
        if one is not None and verdict is Verdict.FAIL:
            one.since = run.at
        elif one is not None:
            del lasting[run.kind, name, check]


def _kept_name(one: Failing) -> str:
    return f"{one.check}:{one.partner}" if one.partner else one.check
