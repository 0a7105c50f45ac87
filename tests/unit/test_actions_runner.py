"""The runner: it refuses for every reason there is, stops where it must, and says only what Slurm shows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from actions.outcome import Progress
from actions.spec import Context, Look, Scope
from actions.table import ACTIONS, action
from actions.undo import undo_of
from cockpit.hosts.base import Completed
from cockpit.joins import nodes_of
from cockpit.models import Fault, FaultError, FaultKind
from tests.unit.action_kit import Kit, is_write, running, waiting

pytestmark = pytest.mark.usefixtures("own_state")


def on_write(kit: Kit, answer: Callable[[Sequence[str], Callable[[], Completed]], Completed]) -> None:
    """Have every write answered by `answer(argv, really)`; `really()` is what the simulation does."""
    real = kit.head.run

    def run(argv: Sequence[str], **options: Any) -> Completed:
        if is_write(argv):
            return answer(argv, lambda: real(argv, **options))
        return real(argv, **options)

    kit.head.run = run  # type: ignore[method-assign]


# -- it refuses


def every_plan(kit: Kit) -> list[Any]:
    """A plan of every action in the table that the cluster offers a target for, and an undo."""
    kit.do("drain", "gpu-st-p5-4", reason="for undo")
    entry = kit.log.entries()[-1]
    sim = kit.head.sim
    sim.nodes["gpu-st-p5-2"].reboot = "requested"
    sim.kept_up.add("gpu-dy-p5-1")
    kit.do("quarantine", "gpu-st-p5-5", reason="for its end")
    held = kit.job(lambda job: job.reason.startswith("JobHeld"))
    what: dict[str, tuple[str, dict[str, Any]]] = {
        "drain": ("gpu-st-p5-1", {"reason": "x"}),
        "resume": ("gpu-st-p5-6", {}),
        "reboot": ("gpu-st-p5-1", {"reason": "x"}),
        "replace": ("gpu-st-p5-1", {"reason": "x"}),
        "quarantine": ("gpu-st-p5-1", {"reason": "x"}),
        "unquarantine": ("gpu-st-p5-5", {}),
        "down": ("gpu-st-p5-1", {"reason": "x"}),
        "cancel-reboot": ("gpu-st-p5-2", {}),
        "pin": ("gpu-dy-p5-2", {}),
        "unpin": ("gpu-dy-p5-1", {}),
        "queue": ("gpu", {"state": "DOWN"}),
        "cancel": (kit.job(running).label, {}),
        "requeue": (kit.job(running).label, {}),
        "requeue-hold": (kit.job(running).label, {}),
        "drain-requeue": (
            kit.job(running).label,
            {"nodes": nodes_of(kit.job(running).hostlist)[0], "reason": "x"},
        ),
        "hold": (kit.job(waiting).label, {}),
        "release": (held.label, {}),
        "top": (kit.job(waiting).label, {}),
        "nice": (kit.job(waiting).label, {"count": 5}),
    }
    plans = [kit.plan(name, target, **options) for name, (target, options) in what.items()]
    # Those of a whole cluster need AWS: tests/aws/test_fleet_actions.py.
    assert {each.id for each in ACTIONS if each.scope is not Scope.CLUSTER} - what.keys() == {"scale"}
    sim.nodes["gpu-dy-p5-4"].power = type(sim.nodes["gpu-dy-p5-4"].power).DOWN
    kit.read()
    plans.append(kit.plan("scale", "gpu", count=10))
    return [*plans, undo_of(entry, kit.cluster)]


def test_read_only_holds_for_every_action_and_for_undo(kit: Kit) -> None:
    plans = every_plan(kit)
    sent = len(kit.writes)
    kit.cluster.lock.forced = True
    for plan in plans:
        result = kit.run(plan)
        assert result.outcome == "refused", plan.title
        assert "--read-only" in result.text
    assert len(kit.writes) == sent
    assert [entry.outcome for entry in kit.log.entries()[-len(plans) :]] == ["refused"] * len(plans)
    for each in ACTIONS:
        assert each.disabled_reason(Context(kit.cluster)) == kit.cluster.lock.why()


def test_only_the_runner_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    senders = [
        path.relative_to(root).as_posix()
        for folder in ("actions", "cockpit", "screens")
        for path in (root / folder).rglob("*.py")
        if "slurm.send(" in path.read_text(encoding="utf-8")
    ]
    callers = [
        path.relative_to(root).as_posix()
        for folder in ("actions", "cockpit", "screens")
        for path in (root / folder).rglob("*.py")
        if "executors" in path.read_text(encoding="utf-8")
    ]
    assert senders == ["actions/executors.py"]
    assert set(callers) <= {"actions/runner.py", "actions/executors.py", "actions/spec.py"}


def test_a_cluster_that_is_read_only_by_config_can_be_armed_for_a_while(tmp_path: Path) -> None:
    kit = Kit(tmp_path, read_only=True)
    plan = kit.plan("drain", "gpu-st-p5-5", reason="x")
    assert kit.run(plan).outcome == "refused"
    kit.cluster.lock.arm(900)
    assert kit.cluster.lock.armed_for_s == pytest.approx(900)
    assert kit.run(plan).outcome == "ok"
    kit.clock.time += 901
    kit.read()
    assert kit.cluster.read_only
    assert kit.run(kit.plan("resume", "gpu-st-p5-5")).outcome == "refused"


def test_read_only_from_the_command_line_cannot_be_armed(kit: Kit) -> None:
    kit.cluster.lock.forced = True
    with pytest.raises(PermissionError, match="--read-only"):
        kit.cluster.lock.arm(60)


@pytest.mark.parametrize(
    ("name", "typed", "fits"),
    [
        ("drain", "2", True),
        ("drain", "y", False),
        ("drain", "y\ny\n", False),
        ("drain", "", False),
        ("drain", "02", False),
        ("reboot", "still", True),
        ("reboot", "Still", False),
        ("reboot", "2", False),
        ("reboot", "y", False),
    ],
)
def test_each_tier_wants_its_own_word(kit: Kit, name: str, typed: str, fits: bool) -> None:
    result = kit.run(kit.plan(name, "gpu-st-p5-[4-5]", reason="x"), typed)
    assert (result.outcome == "ok") is fits
    if not fits:
        assert "not confirmed" in result.text
        assert kit.writes == []


def test_nothing_runs_on_old_data(kit: Kit) -> None:
    plan = kit.plan("drain", "gpu-st-p5-5", reason="x")
    kit.clock.time += 60
    result = kit.run(plan)
    assert result.outcome == "refused"
    assert result.text == "the nodes were last read 1m ago: too old to act on"
    assert kit.writes == []
    assert action("drain").disabled_reason(Context(kit.cluster)) == result.text


def test_a_drain_without_a_reason_is_refused(kit: Kit) -> None:
    result = kit.run(kit.plan("drain", "gpu-st-p5-5"))
    assert (result.outcome, kit.writes) == ("refused", [])
    assert "say why" in result.text


def test_a_job_that_started_under_an_open_dialog_stops_what_would_kill_it(kit: Kit) -> None:
    kit.do("resume", "gpu-st-p5-6")
    plan = kit.plan("replace", "gpu-st-p5-6", reason="x", now=True)
    assert plan.jobs == ()
    sim = kit.head.sim
    job = next(job for job in sim.jobs.values() if job.state == "PENDING" and not job.rest and job.ask.nodes == 1)
    with sim.current():
        sim.start(job, ["gpu-st-p5-6"])
    kit.read()
    sent = len(kit.writes)
    result = kit.run(plan)
    assert result.outcome == "refused"
    assert f"it would now also hit job {job.job_id}" in result.text
    assert len(kit.writes) == sent


def test_tier_3_looks_again_just_before_each_step(kit: Kit) -> None:
    """The last moment, after planning anew: squeue then shows a job that the plan did not."""
    plan = kit.plan("reboot", "gpu-st-p5-5", reason="x")
    real = kit.head.run

    def run(argv: Sequence[str], **options: Any) -> Completed:
        done = real(argv, **options)
        if "-w" in argv:  # one more record behind the ones that are there
            first = done.stdout.split(b"\n")[0] + b"\n"
            return Completed(0, done.stdout + first.replace(b"48220\x1f48220", b"77777\x1f77777"), b"", 0.01)
        return done

    kit.head.run = run  # type: ignore[method-assign]
    result = kit.run(plan)
    assert result.outcome == "failed"
    assert "job 77777 started there after the plan was shown; 1 step not run" in result.notes[0]
    assert kit.writes == []


def test_a_job_that_ended_meanwhile_is_left_out_or_refused(kit: Kit) -> None:
    job, other = kit.job(running), kit.job(waiting)
    plan = kit.plan("cancel", kit.jobs(job.label, other.label, "999"))
    assert plan.left_out == (("999", "is not in the queue (any more)"),)
    sim = kit.head.sim
    with sim.current():
        sim.finish(sim.jobs[job.job_id], "COMPLETED")
    kit.nap(30)
    kit.read()
    result = kit.run(plan)
    assert result.outcome == "ok"
    assert result.findings[str(job.job_id)].text == "completed"


def test_nothing_is_left_to_cancel(kit: Kit) -> None:
    plan = kit.plan("cancel", kit.job(waiting).label)
    assert kit.run(plan).outcome == "ok"
    kit.read()
    again = kit.run(plan)
    assert again.outcome == "refused"
    assert "is not in the queue (any more)" in again.text


# -- it stops where it must


def test_tier_3_stops_on_the_first_error_and_tells_what_was_not_run(tmp_path: Path) -> None:
    kit = Kit(tmp_path, "parallelcluster")
    plan = kit.plan("replace", "gpu-st-p5-5,gpu-dy-p5-1", reason="x")
    assert len(plan.steps) == 2
    on_write(kit, lambda argv, really: Completed(1, b"", b"slurm_update error: Invalid node state specified\n", 0.01))
    result = kit.run(plan)
    assert result.outcome == "failed"
    assert len(result.steps) == 1
    assert "1 step not run" in result.notes[-1]


def test_lower_tiers_go_on_after_an_error_and_tell_it(kit: Kit) -> None:
    ids = [str(job.job_id) for job in kit.queued if waiting(job)]
    plan = kit.plan("hold", kit.jobs(*ids))
    # As seen on 22.05: one id is bad, the others are held all the same, exit 1.
    said = f"Invalid job id specified for job {ids[0]}\nslurm_suspend error: No error\n".encode()

    def answer(argv: Sequence[str], really: Callable[[], Completed]) -> Completed:
        sim = kit.head.sim
        sim.jobs.pop(int(ids[0]))
        really()
        return Completed(1, b"", said, 0.01)

    on_write(kit, answer)
    result = kit.run(plan)
    assert result.outcome == "failed"
    assert result.findings[ids[0]].look is Look.FAILED
    assert {result.findings[name].look for name in ids[1:]} == {Look.DONE}


def test_a_write_that_got_no_answer_is_not_sent_again_and_what_is_seen_counts(kit: Kit) -> None:
    def answer(argv: Sequence[str], really: Callable[[], Completed]) -> Completed:
        really()
        raise FaultError(Fault(FaultKind.TIMEOUT, "head", "no answer within 20 s", "it is tried again"))

    on_write(kit, answer)
    plan = kit.plan("drain", "gpu-st-p5-5", reason="x")
    result = kit.run(plan)
    assert result.outcome == "ok"
    assert len(kit.writes) == 1
    assert "tried again" not in " ".join(result.notes)
    assert kit.head.sim.nodes["gpu-st-p5-5"].drain


def test_a_controller_that_goes_away_in_the_middle_leaves_the_outcome_open(kit: Kit) -> None:
    def answer(argv: Sequence[str], really: Callable[[], Completed]) -> Completed:
        kit.head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "SSH to head", "connection reset"))
        raise kit.head.fault

    on_write(kit, answer)
    result = kit.run(kit.plan("drain", "gpu-st-p5-5", reason="x"))
    assert result.outcome == "unverified"
    assert "connection reset" in result.text
    assert kit.log.entries()[-1].outcome == "unverified"


def test_a_refused_right_is_shown_as_it_is(kit: Kit) -> None:
    sudo = b"sudo: a password is required\n"
    on_write(kit, lambda argv, really: Completed(1, b"", sudo, 0.01))
    result = kit.run(kit.plan("drain", "gpu-st-p5-5", reason="x"))
    assert result.outcome == "failed"
    assert "this login may not use sudo for it" in result.notes[0]


def test_the_plan_says_beforehand_that_sudo_will_refuse(kit: Kit) -> None:
    real = kit.head.run

    def run(argv: Sequence[str], **options: Any) -> Completed:
        if argv[0] == "sudo" and "-l" in argv:
            return Completed(1, b"", b"sudo: a password is required\n", 0.01)
        return real(argv, **options)

    kit.head.run = run  # type: ignore[method-assign]
    plan = kit.plan("drain", "gpu-st-p5-5", reason="x")
    assert "sudo -n says: this login may not use sudo for it" in plan.warnings[0]


def test_a_command_that_returns_0_is_no_success(kit: Kit) -> None:
    on_write(kit, lambda argv, really: Completed(0, b"", b"", 0.01))
    result = kit.run(kit.plan("drain", "gpu-st-p5-5", reason="x"))
    assert result.outcome == "unverified"
    assert result.findings["gpu-st-p5-5"].text == "allocated"
    assert "not true for gpu-st-p5-5 (allocated)" in result.text


def test_ctrl_c_between_steps_tells_what_was_done(tmp_path: Path) -> None:
    kit = Kit(tmp_path, "parallelcluster")
    plan = kit.plan("quarantine", "gpu-st-p5-[1-3]", reason="x")
    stop = threading.Event()

    def tell(progress: Progress) -> None:
        if progress.kind == "done" and progress.step == 1:
            stop.set()

    result = kit.runner.run(plan, plan.confirm.word, tell, cancelled=stop)
    assert result.outcome == "cancelled"
    assert len(result.steps) == 2
    assert len(kit.writes) == 2
    assert "cancelled; 2 steps not run" in result.notes[0]
    record = kit.log.entries()[-1]
    assert record.outcome == "cancelled"
    assert record.end is not None
    assert record.end["changed"] == "gpu-st-p5-[1-2]"


def test_a_scale_up_shows_each_node_and_gives_up_at_resume_timeout(tmp_path: Path) -> None:
    kit = Kit(tmp_path, scenario="calm")
    plan = kit.plan("scale", "gpu", count=10)
    names = [name for step in plan.steps for name in step.subjects]
    sim = kit.head.sim
    on_write(kit, lambda argv, really: really())
    boot, sim.power_up = sim.power_up, lambda node: boot(node) if node.name != names[0] else None  # type: ignore[method-assign]
    result = kit.run(plan)
    told = {(each.target, each.text) for each in kit.told if each.kind == "watch"}
    assert (names[1], "powering up") in told
    assert any(target == names[1] and text.startswith("registered after") for target, text in told)
    assert result.outcome == "unverified"
    assert result.findings[names[0]].text == "powered down"
    assert result.took_s >= 1800  # this cluster's ResumeTimeout


def test_a_launch_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    kit = Kit(tmp_path, scenario="calm")
    plan = kit.plan("scale", "gpu", count=9)
    name = plan.steps[0].subjects[0]

    def answer(argv: Sequence[str], really: Callable[[], Completed]) -> Completed:
        node = kit.head.sim.nodes[name]
        node.down, node.reason = True, "(Code:InsufficientInstanceCapacity)Failure when resuming nodes"
        return Completed(0, b"", b"", 0.01)

    on_write(kit, answer)
    result = kit.run(plan)
    assert result.outcome == "failed"
    assert "InsufficientInstanceCapacity" in result.findings[name].text


def test_a_listener_that_breaks_does_not_break_the_run(kit: Kit) -> None:
    def broken(_: Progress) -> None:
        raise RuntimeError("a widget is gone")

    plan = kit.plan("drain", "gpu-st-p5-5", reason="x")
    assert kit.runner.run(plan, "1", broken).outcome == "ok"


def test_a_run_on_its_own_thread_ends_with_a_result(kit: Kit) -> None:
    plan = kit.plan("drain", "gpu-st-p5-5", reason="x")
    running_ = kit.runner.start(plan, "1", lambda _: None)
    result = running_.wait(10)
    assert result is not None
    assert result.ok
    assert kit.runner.active == []
