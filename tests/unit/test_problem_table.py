"""The column that tells since when a problem is there."""

from __future__ import annotations

import pytest

from cockpit.models import Health, Problem
from screens.problem_table import ProblemTable


@pytest.mark.parametrize(
    ("age_s", "told"), [(0.0, "<1m"), (1.0, "<1m"), (59.9, "<1m"), (60.0, "1m"), (7265.0, "2h01m"), (-3.0, "<1m")]
)
def test_a_new_problem_counts_no_seconds(age_s: float, told: str) -> None:
    since = next(column for column in ProblemTable(lambda: 10_000.0).columns() if column.id == "since")
    problem = Problem("key", Health.WARN, "p5-1", "drained", "", since=10_000.0 - age_s)
    assert since.cell(problem) == told
    assert since.cell(Problem("key", Health.WARN, "p5-1", "drained", "")) == ""
