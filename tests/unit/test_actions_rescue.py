"""Drain and requeue as one plan, and the evidence that is kept before a plan ends a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cockpit.diagnosing
from actions import capture
from actions.errors import ActionError
from actions.spec import COUNTED, Look
from actions.undo import undo_of
from cockpit.hosts.base import Completed
from cockpit.joins import nodes_of
from cockpit.models import Fault, FaultError, FaultKind, Job
from tests.unit.action_kit import Kit, running


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SUDO_USER", "maria")


def big(kit: Kit) -> tuple[Job, str]:
    """A job on several nodes, and one of them."""
    job = kit.job(lambda job: running(job) and len(nodes_of(job.hostlist)) > 1)
    return job, nodes_of(job.hostlist)[1]


def test_both_are_one_plan_of_the_worse_tier_and_both_are_seen(kit: Kit) -> None:
    job, bad = big(kit)
    plan = kit.plan("drain-requeue", job.label, nodes=bad, reason="job hung: rank 5")
    assert plan.title == f"drain {bad} and requeue {job.label}"
    assert (plan.tier, plan.count, plan.confirm.word) == (COUNTED, 2, "2")
    assert [step.argv[-1] for step in plan.steps] == ["reason=maria: job hung: rank 5", job.label]
    assert [(each.label, each.loses) for each in plan.jobs] == [(job.label, True)]
    result = kit.run(plan)
    assert result.outcome == "ok", result
    assert {name: finding.look for name, finding in result.findings.items()} == {
        bad: Look.DONE,
        job.label: Look.DONE,
    }
    assert kit.head.sim.nodes[bad].drain
    assert kit.head.sim.jobs[job.job_id].restarts == 1
    assert not kit.head.sim.jobs[job.job_id].reason.startswith("JobHeld")


def test_the_way_back_puts_the_node_into_service(kit: Kit) -> None:
    job, bad = big(kit)
    kit.do("drain-requeue", job.label, nodes=bad, reason="x")
    entry = next(iter(kit.log.entries()))
    result = kit.run(undo_of(entry, kit.cluster))
    assert result.outcome == "ok", result
    assert not kit.head.sim.nodes[bad].drain


def test_a_node_that_cannot_be_drained_leaves_the_job_alone(kit: Kit) -> None:
    job, bad = big(kit)
    plan = kit.plan("drain-requeue", job.label, nodes=bad, reason="x")

    def refuses(argv: Any) -> Completed:
        return Completed(1, b"", b"slurm_update error: Invalid node name specified", 0.01)

    kit.head.answers["scontrol"] = refuses
    plan = type(plan)(**{name: getattr(plan, name) for name in plan.__dataclass_fields__ if name != "again"})
    result = kit.run(plan)
    assert result.outcome == "failed"
    assert len(result.steps) == 1
    assert kit.head.sim.jobs[job.job_id].restarts == 0


def test_only_nodes_of_the_job(kit: Kit) -> None:
    job, bad = big(kit)
    other = next(name for name in kit.head.sim.nodes if name not in nodes_of(job.hostlist))
    with pytest.raises(ActionError, match=f"{other}: not among the nodes of job {job.label}"):
        kit.plan("drain-requeue", job.label, nodes=f"{bad},{other}", reason="x")
    with pytest.raises(ActionError, match=f"say which of the nodes of job {job.label}"):
        kit.plan("drain-requeue", job.label, reason="x")


def test_a_node_that_is_drained_already_is_left_out_and_the_job_is_requeued(kit: Kit) -> None:
    job, bad = big(kit)
    kit.do("drain", bad, reason="seen before")
    plan = kit.plan("drain-requeue", job.label, nodes=bad, reason="x")
    assert [step.argv[-1] for step in plan.steps] == [job.label]
    assert plan.left_out == ((bad, "is draining already"),)


def test_a_capture_is_a_step_of_the_plan_before_all_others(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    job, _ = big(kit)
    order: list[str] = []

    def kept(_: Any, label: str, *, between_s: float) -> Path:
        assert not kit.writes
        order.append(label)
        return Path("/state/bundles/x.tar.gz")

    monkeypatch.setattr(cockpit.diagnosing, "capture", kept)
    plain, plan = kit.plan("cancel", job.label), kit.plan("cancel", job.label, capture=True)
    assert (plan.tier, plan.count, plan.steps[1:]) == (plain.tier, plain.count, plain.steps)
    assert plan.steps[0].argv == ("cockpit", "bundle", job.label)
    result = kit.run(plan)
    assert result.outcome == "ok", result
    assert order == [job.label]
    assert "evidence kept: /state/bundles/x.tar.gz" in result.notes


@pytest.mark.parametrize(
    "error",
    [
        FaultError(Fault(FaultKind.MISSING, "job 1", "Slurm knows no such job")),
        OSError(28, "No space left on device"),
    ],
)
def test_nothing_is_ended_when_the_evidence_cannot_be_kept(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    job, _ = big(kit)

    def fails(*_: Any, **__: Any) -> Path:
        raise error

    monkeypatch.setattr(cockpit.diagnosing, "capture", fails)
    result = kit.run(kit.plan("cancel", job.label, capture=True))
    assert result.outcome == "failed", result
    assert not kit.writes
    assert any("stopped after an error" in note for note in result.notes)


def test_a_drain_captures_the_jobs_of_the_node_and_a_requeue_only_those_that_it_ends(kit: Kit) -> None:
    job, bad = big(kit)
    drained = kit.plan("drain", bad, reason="x", capture=True)
    assert [step.argv[-1] for step in drained.steps if step.via == capture.CAPTURE] == [job.label]
    both = kit.plan("drain-requeue", job.label, nodes=bad, reason="x", capture=True)
    assert [step.argv[:2] for step in both.steps[:1]] == [("cockpit", "bundle")]
    assert [step.via for step in both.steps] == ["capture", "head", "head"]


def test_too_many_jobs_are_no_capture(kit: Kit) -> None:
    labels = [job.label for job in kit.queued if job.state == "R"]
    assert len(labels) > capture.MOST
    with pytest.raises(ActionError, match=f"{capture.MOST} at most"):
        kit.plan("cancel", kit.jobs(*labels), capture=True)


def test_a_waiting_job_has_no_evidence_to_keep(kit: Kit) -> None:
    job = kit.job(lambda job: job.state == "PD" and job.array_job_id is None and job.het_job_id is None)
    plan = kit.plan("cancel", job.label, capture=True)
    assert [step.via for step in plan.steps] == ["head"]


def test_a_capture_writes_two_looks(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when no node can be reached: Slurm's side is evidence, too."""
    from cockpit.diagnosis.bundle import read_bundle

    job, _ = big(kit)
    path = cockpit.diagnosing.capture(kit.cluster, job.label, between_s=0.0)
    assert path.stat().st_mode & 0o077 == 0
    assert read_bundle(path).job == job.label
