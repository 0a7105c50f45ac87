"""python -m tests.faults: run what tests/faults/table.py names, and write docs/RELIABILITY.md from what came of it.

With words behind it only the faults whose name has one of them are tried, and only their lines are written anew.
"""

from __future__ import annotations

import platform
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.faults.table import CASES, Case

TARGET = Path(__file__).parents[2] / "docs" / "RELIABILITY.md"
HEAD = """# Reliability: what was broken on purpose, and what came of it

Made by `make reliability`, from `tests/faults/table.py` and from what its tests saw in that run; they are part of
`make test`. Real parts: Slurm, munge and sshd in namespaces of their own, the cockpit in a real terminal (tmux). In
every look at the screen during an outage a node that was there must still have its row, and neither a traceback nor
an escape code of somebody else may be there; after each fault the same cockpit must be live again without a restart.
"""
FOOT = """
Not tried, with the reason: a real controller that limits requests (`rl_enable`), which needs Slurm 23.02 or later,
while Debian 12 ships 22.05; packets that are lost in the kernel (`tc netem`), which the test machines' kernel lacks.
"""


class Outcomes:
    """A plugin of pytest: how each test ended, and what it noted as seen."""

    def __init__(self) -> None:
        self.ended: dict[str, str] = {}
        self.seen: dict[str, list[str]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.ended[report.nodeid] = report.outcome
        if report.when == "call":
            self.seen[report.nodeid] += [str(value) for name, value in report.user_properties if name == "seen"]


def line_of(case: Case, outcomes: Outcomes) -> str:
    """One row of the table."""
    ids = [nodeid for nodeid in outcomes.ended if nodeid.startswith(case.tests)]
    ended = [outcomes.ended[nodeid] for nodeid in ids]
    failed, skipped = ended.count("failed"), ended.count("skipped")
    held = f"**{failed} of {len(ids)} failed**" if failed else f"held ({len(ids) - skipped})" if ids else "not run"
    if skipped:
        held += f", {skipped} left out here"
    notes = [(_of(nodeid), words) for nodeid in ids for words in dict.fromkeys(outcomes.seen.get(nodeid, ()))]
    same = len({words for _, words in notes}) == 1
    seen = notes[0][1] if same else "; ".join(variant + words for variant, words in notes)
    return f"| {case.fault} | {case.how} | {case.holds} | {held} | {seen} |"


def _of(nodeid: str) -> str:
    """Which of several variants a note belongs to."""
    found = re.search(r"\[(.+?)(-\d)?\]$", nodeid)
    return f"{found[1]}: " if found else ""


def main() -> int:
    """Run, write, and end as pytest did."""
    outcomes, words = Outcomes(), sys.argv[1:]
    cases = [case for case in CASES if not words or any(word in case.fault for word in words)]
    wanted = tuple(dict.fromkeys(test for case in cases for test in case.tests))
    files = sorted({test.partition("::")[0] for test in wanted})
    # Some are given by the beginning of their name, so the files are collected and the rest left out.
    status = pytest.main(["-p", "no:cacheprovider", *files], plugins=[outcomes, _Only(wanted)])
    ran = len(outcomes.ended)
    rows = [line_of(case, outcomes) for case in cases]
    if words:
        return _patch(rows) or int(status)
    facts = f"\nRun on {time.strftime('%Y-%m-%d', time.gmtime())}, Python {platform.python_version()}: {ran} tests.\n"
    table = [
        "",
        "| fault | how | what must come of it | held (tests) | what was seen |",
        "|---|---|---|---|---|",
        *rows,
    ]
    TARGET.write_text(HEAD + facts + "\n".join([*table, ""]) + FOOT, encoding="utf-8")
    return int(status)


def _patch(rows: list[str]) -> int:
    """Put these lines in the place of those of the same faults; 1 when the document lacks one."""
    fresh = {row.split(" | ")[0]: row for row in rows}
    lines = TARGET.read_text(encoding="utf-8").split("\n")
    TARGET.write_text("\n".join(fresh.pop(line.split(" | ")[0], line) for line in lines), encoding="utf-8")
    return 1 if fresh else 0


class _Only:
    """A plugin of pytest that keeps tests whose ids begin with one of these."""

    def __init__(self, wanted: tuple[str, ...]) -> None:
        self._wanted = wanted

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid.startswith(self._wanted)]


if __name__ == "__main__":
    sys.exit(main())
