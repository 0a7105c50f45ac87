"""python -m tests.faults: run what tests/faults/table.py names, and write docs/RELIABILITY.md from what came of it."""

from __future__ import annotations

import platform
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.faults.table import CASES, FAULT_TESTS, Case

TARGET = Path(__file__).parents[2] / "docs" / "RELIABILITY.md"
HEAD = """# Reliability: what was broken on purpose, and what came of it

Made by `make reliability`, from `tests/faults/table.py` and from what its tests saw in that run; they are part of
`make test`. Real parts: Slurm, munge and sshd in namespaces of their own, the cockpit in a real terminal (tmux). In
every look at the screen during an outage a node that was there must still have its row, and neither a traceback nor
an escape code of somebody else may be there; after each fault the same cockpit must be live again without a restart.
"""
FOOT = """
Not tried, with the reason: a controller that limits requests (`rl_enable`) needs Slurm 23.02 or later, and the rig has
what Debian 12 ships (22.05); a head that answers with packet loss needs `tc`, which test machines do not allow.
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
    outcomes = Outcomes()
    files = sorted({test.partition("::")[0] for test in FAULT_TESTS})
    # Some are given by the beginning of their name, so the files are collected and the rest left out.
    status = pytest.main(["-p", "no:cacheprovider", *files], plugins=[outcomes, _Only(FAULT_TESTS)])
    ran = len(outcomes.ended)
    rows = [line_of(case, outcomes) for case in CASES]
    facts = f"\nRun on {time.strftime('%Y-%m-%d', time.gmtime())}, Python {platform.python_version()}: {ran} tests.\n"
    table = [
        "",
        "| fault | how | what must come of it | held (tests) | what was seen |",
        "|---|---|---|---|---|",
        *rows,
    ]
    TARGET.write_text(HEAD + facts + "\n".join([*table, ""]) + FOOT, encoding="utf-8")
    return int(status)


class _Only:
    """A plugin of pytest that keeps tests whose ids begin with one of these."""

    def __init__(self, wanted: tuple[str, ...]) -> None:
        self._wanted = wanted

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid.startswith(self._wanted)]


if __name__ == "__main__":
    sys.exit(main())
