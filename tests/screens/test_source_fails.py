"""What the details of a source that fails give to look further."""

from __future__ import annotations

from cockpit.models import Fault, FaultError, FaultKind, Health, Problem
from screens.details.problem import problem_lines
from tests.screens.test_app import cockpit
from tests.still import still_cluster


async def test_a_head_that_cannot_be_reached_is_tested_from_here_not_only_on_that_head() -> None:
    async with cockpit(pane="1") as pilot:
        pilot.head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "connection refused"))
        await pilot.read()
        await pilot.press("enter")
        text = " ".join(pilot.text().split())
        assert "from here cockpit doctor --cluster still" in text
        assert "on the head scontrol ping" in text  # it is Slurm that is not read


def test_what_slurm_cannot_tell_is_not_asked_of_its_controller() -> None:
    cluster, _, _ = still_cluster()
    for names, asks_slurm in (("aws", False), ("gpus", False), ("nodes, queue, slurm", True), ("aws, queue", True)):
        problem = Problem(f"source:{names}", Health.CRITICAL, names, "it fails", "", "")
        words = str(problem_lines(cluster, problem))
        assert "cockpit doctor --cluster still" in words
        assert ("scontrol ping" in words) is asks_slurm
