"""What is no proof: a state that was there before, a part of an array, a refusal beside it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from actions.job_wishes import Requeued
from actions.spec import Look, Plan
from actions.undo import undo_of
from cockpit.formats.job_now import JobNow
from cockpit.hosts.base import Completed
from tests.unit.action_kit import Kit, is_write

pytestmark = pytest.mark.usefixtures("own_state")

DEAD = "gpu-st-p5-8"  # down, not responding


def answer_writes(kit: Kit, errors: bytes) -> None:
    real = kit.head.run

    def run(argv: Sequence[str], **options: Any) -> Completed:
        return Completed(1, b"", errors, 0.1) if is_write(argv) else real(argv, **options)

    kit.head.run = run  # type: ignore[method-assign]


def test_a_refused_drain_of_a_node_that_is_down_is_no_drain(kit: Kit) -> None:
    plan = kit.plan("drain", DEAD, reason="x")
    answer_writes(kit, b"slurm_update error: Invalid user id\n")
    result = kit.run(plan)
    assert result.outcome == "failed"
    assert result.findings[DEAD].look is Look.WAIT  # it is down as before, and comes back by itself


def test_a_drain_without_an_answer_is_not_proved_by_a_node_that_was_down_before(kit: Kit) -> None:
    plan = kit.plan("drain", DEAD, reason="x")
    answer_writes(kit, b"slurm_update error: Socket timed out on send/recv operation\n")
    assert kit.run(plan).outcome == "unverified"


def test_what_slurm_did_before_its_error_can_be_undone(kit: Kit) -> None:
    """Seen on 22.05: of a list every node that can be is drained, then `Invalid node name specified` and exit 1."""
    plan = kit.plan("drain", "gpu-st-p5-[4-5]", reason="x")
    real = kit.head.run

    def run(argv: Sequence[str], **options: Any) -> Completed:
        done = real(argv, **options)
        error = b"slurm_update error: Invalid node name specified\n"
        return Completed(1, b"", error, 0.1) if is_write(argv) and "state=drain" in argv else done

    kit.head.run = run  # type: ignore[method-assign]
    kit.run(plan)
    kit.read()
    assert kit.run(undo_of(kit.log.entries()[-1], kit.cluster)).outcome == "ok"
    assert not any(kit.head.sim.nodes[f"gpu-st-p5-{number}"].drain for number in (4, 5))


def test_a_denied_command_is_a_failure_whatever_the_cluster_shows(kit: Kit) -> None:
    plan = kit.plan("queue", "gpu", state="DOWN")
    answer_writes(kit, b"slurm_update error: Invalid user id\n")
    kit.head.sim.queue_states["gpu"] = "DOWN"  # by somebody else, in the same second
    result = kit.runner._carried_out(plan, lambda _: None, threading.Event())
    assert (result.outcome, result.text) == ("failed", "set queue gpu down: it looks so, but not by this")


def test_a_look_that_breaks_before_anything_is_sent_is_a_refusal(kit: Kit) -> None:
    def broken() -> Plan:
        raise KeyError("InstanceGroupName")

    running = kit.runner.start(replace(kit.plan("drain", "gpu-st-p5-5", reason="x"), again=broken), "1", lambda _: None)
    result = running.wait(10)
    assert result is not None
    assert (result.outcome, "KeyError" in result.text, kit.writes) == ("refused", True, [])


def test_a_node_without_a_machine_is_down_only_when_slurm_says_so(kit: Kit) -> None:
    node = kit.head.sim.nodes["gpu-dy-p5-4"]
    node.power = type(node.power).DOWN
    kit.read()
    plan = kit.plan("down", "gpu-dy-p5-4", reason="x")
    answer_writes(kit, b"slurm_update error: Socket timed out on send/recv operation\n")
    assert kit.run(plan).outcome == "unverified"


def test_of_a_requeued_array_every_task_has_to_wait_again() -> None:
    def record(job_id: int, state: str, restarts: int) -> JobNow:
        return JobNow(job_id, 100, str(job_id), None, state, restarts, 1, 0, "None")

    wish = Requeued(("100",), ((101, 0), (102, 3)))

    def look(*jobs: JobNow) -> Look:
        return wish._see("100", jobs).look

    assert look(record(101, "R", 1), record(102, "R", 3)) is Look.WAIT  # the second goes on as before
    assert look(record(101, "R", 1), record(102, "PD", 4)) is Look.DONE
    assert look(record(101, "R", 1), record(102, "R", 4), record(103, "R", 0)) is Look.DONE


def test_an_array_whose_tasks_start_all_the_time_can_be_cancelled(kit: Kit) -> None:
    sim = kit.head.sim
    task = kit.job(lambda job: job.state == "R" and job.array_job_id is not None)
    plan = kit.plan("cancel", str(task.array_job_id))
    with sim.current():
        sim.finish(sim.jobs[task.job_id], "COMPLETED")
    kit.nap(60)
    kit.read()
    running = {job.job_id for job in kit.queued if job.array_job_id == task.array_job_id and job.state == "R"}
    assert running - {job.job_id for job in plan.losing}  # others run by now
    assert kit.run(plan).outcome == "ok"
