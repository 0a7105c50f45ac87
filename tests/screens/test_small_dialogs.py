"""The small questions: arming a read-only cluster, leaving while something runs; with hostile words too."""

from __future__ import annotations

import pytest

from actions.runner import Running
from actions.spec import Options, Plan, Scope, Step, Targets
from cockpit.config import ClusterConfig
from screens.arm import arm_dialog
from screens.leaving import LeaveDialog
from screens.runs import Run
from tests.screens.golden import assert_golden
from tests.screens.menu_app import opened
from tests.screens.test_app import HOSTILE, SIZES
from tests.still import StillClock

sizes = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


def half_done(title: str) -> Run:
    """A drain of three nodes that has sent the first of its two commands."""
    steps = tuple(Step("drain", ("scontrol", "update", str(number))) for number in range(2))
    plan = Plan("drain", title, "prod", Targets(Scope.NODE, ("a", "b", "c")), Options(), steps, 2, count=3)
    return Run(plan, StillClock(), said={0: "done"}, running=Running())


@sizes
async def test_golden_of_arming(size: tuple[int, int]) -> None:
    config = ClusterConfig("prod", production=True, read_only=True)
    async with opened(lambda: arm_dialog(config, 900), size) as (app, _):
        assert_golden(f"arm-{size[0]}x{size[1]}", app.text())


@sizes
async def test_golden_of_leaving(size: tuple[int, int]) -> None:
    async with opened(lambda: LeaveDialog([half_done("drain a, b and c")]), size) as (app, _):
        assert_golden(f"leave-{size[0]}x{size[1]}", app.text())


@pytest.mark.parametrize("words", HOSTILE)
async def test_a_hostile_title_is_only_words(words: str) -> None:
    async with opened(lambda: LeaveDialog([half_done(words)])) as (app, _):
        assert "1 of 2 commands sent" in app.text()
        assert "\x1b" not in app.text()
