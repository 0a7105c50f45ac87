"""Jobs: as whom, in which chunks, which of them, and what Slurm shows afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from actions import blast
from actions.errors import ActionError
from actions.jobs import _not_to_requeue
from actions.rights import Rights
from cockpit.demo.jobs import Ask
from tests.unit.action_kit import Kit, running, waiting

pytestmark = pytest.mark.usefixtures("own_state")


def test_several_hundred_marked_jobs_go_in_chunks(kit: Kit) -> None:
    sim = kit.head.sim
    ids = [str(sim.submit(Ask("sweep", "kenji", held="user")).job_id) for _ in range(450)]
    kit.read()
    result = kit.do("cancel", kit.jobs(*ids))
    assert result.outcome == "ok"
    assert [len(argv) - 3 for argv in kit.writes] == [200, 200, 50]
    assert all(sim.jobs[int(job)].state == "CANCELLED" for job in ids)


def test_ones_own_jobs_need_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cockpit.demo.jobs import USERS

    monkeypatch.setitem(USERS, "ops", 1099)
    kit = Kit(tmp_path)
    mine = kit.head.sim.submit(Ask("mine", "ops", held="user")).job_id
    other = kit.job(waiting).job_id
    kit.nap(5)  # until the scheduler has looked at it
    kit.read()
    plan = kit.plan("hold", kit.jobs(str(other)))
    assert plan.steps[0].argv[0] == "sudo"
    plan = kit.plan("release", kit.jobs(str(mine)))
    assert plan.steps[0].argv == ("/opt/slurm/bin/scontrol", "release", str(mine))


def test_who_may_what() -> None:
    plain = Rights("ops", 1000, "slurm")
    assert (plain.admin, plain.operator) == (False, False)
    assert plain.as_root_for_job("maria")
    assert not plain.as_root_for_job("ops")
    assert Rights("root", 0, "slurm").admin
    assert Rights("slurm", 401, "slurm").admin
    operator = Rights("ops", 1000, "slurm", "operator")
    assert (operator.admin, operator.as_root_for_job("maria")) == (False, False)
    assert Rights("ops", 1000, "slurm", "administrator").admin
    assert not Rights("", None, "").admin


def test_all_jobs_of_the_cluster_at_once_are_tier_3(kit: Kit) -> None:
    assert kit.cluster.view.queue is not None
    every = kit.jobs(*(row.key for row in kit.cluster.view.queue.rows))
    plan = kit.plan("cancel", every)
    assert plan.tier == 3
    assert "these are all jobs of the cluster" in plan.effects


def test_a_part_of_an_array_is_held_alone(kit: Kit) -> None:
    array = kit.job(lambda job: job.state == "PD" and job.array_job_id is not None)
    label = f"{array.array_job_id}_[10-12]"
    result = kit.do("hold", label)
    assert result.outcome == "ok"
    assert result.findings[label].text == "held (JobHeldAdmin)"
    held = [job for job in kit.head.sim.jobs.values() if job.array_job_id == array.array_job_id and job.ask.held]
    assert [job.rest for job in held] == [[10, 11, 12]]


def test_a_folded_array_stands_for_all_of_it(kit: Kit) -> None:
    array = kit.job(lambda job: job.array_job_id is not None)
    result = kit.do("cancel", f"{array.array_job_id}_")
    assert result.outcome == "ok"
    assert {job.state for job in kit.head.sim.jobs.values() if job.array_job_id == array.array_job_id} <= {
        "CANCELLED",
        "COMPLETING",
    }


def test_only_what_can_be_is_held_released_or_requeued(kit: Kit) -> None:
    run, wait = kit.job(running).label, kit.job(waiting).label
    with pytest.raises(ActionError, match=f"{run} is running: a hold does not stop it"):
        kit.plan("hold", run)
    with pytest.raises(ActionError, match=f"{wait} is pending, not held"):
        kit.plan("release", wait)
    with pytest.raises(ActionError, match=f"{wait} is pending: there is nothing to stop"):
        kit.plan("requeue", wait)
    with pytest.raises(ActionError, match="it waits no longer"):
        kit.plan("top", run)


def test_an_interactive_job_is_never_said_to_be_requeued(kit: Kit) -> None:
    batch = replace(kit.job(running), requeueable=True)
    typed = replace(batch, batch_host="head")  # squeue: the machine on which salloc was typed
    assert not blast.interactive(batch)
    assert not blast.interactive(replace(batch, batch_host="", hostlist=""))
    assert not blast.interactive(replace(typed, het_job_id=1))  # the script runs in the first component alone
    fates = [job.fate for job in blast.killed(kit.cluster, (batch, typed))]
    assert fates == ["killed and requeued", "killed for good (interactive: Slurm requeues batch jobs only)"]
    assert "is interactive" in _not_to_requeue((typed,))


def test_a_requeue_tells_the_work_that_is_lost_and_is_seen_to_wait_again(kit: Kit) -> None:
    job = kit.job(running)
    plan = kit.plan("requeue", job.label)
    assert [each.loses for each in plan.jobs] == [True]
    result = kit.run(plan)
    assert result.outcome == "ok"
    assert result.findings[job.label].text == "waits again"
    assert kit.head.sim.jobs[job.job_id].restarts == 1


def test_a_signal_goes_to_what_runs_and_promises_nothing(kit: Kit) -> None:
    array = kit.job(lambda job: job.state == "R" and job.array_job_id is not None)
    plan = kit.plan("cancel", f"{array.array_job_id}_", signal="usr1", batch=True)
    ids = [job.job_id for job in kit.queued if job.array_job_id == array.array_job_id and job.state == "R"]
    assert plan.steps[0].argv[2:] == ("/opt/slurm/bin/scancel", "--signal=USR1", "--batch", *map(str, ids))
    result = kit.run(plan)
    assert (result.outcome, result.text) == ("ok", f"send USR1 to {array.array_job_id}: sent")
    with pytest.raises(ActionError, match="is no signal"):
        kit.plan("cancel", kit.job(running).label, signal="; rm")


def test_first_in_line_and_nice_are_seen(kit: Kit) -> None:
    jobs = [job for job in kit.queued if waiting(job) and job.user == "maria"]
    last = min(jobs, key=lambda job: job.priority or 0)
    assert kit.do("top", last.label).outcome == "ok"
    assert kit.do("nice", last.label, count=300).findings[last.label].text == "nice 300"


def test_a_hold_that_others_cannot_release_says_so(kit: Kit) -> None:
    label = kit.job(waiting).label
    assert "only an operator can release them" in kit.plan("hold", label).effects[0]
    soft = kit.plan("hold", label, user_hold=True)
    assert soft.steps[0].argv[-2] == "uhold"
    assert "their owners may release them" in soft.effects[0]
