"""Plans as the operator reads them: exact commands, whom they touch, what each kind of cluster makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from actions.errors import ActionError, Refusal
from actions.plan_lines import plan_lines, plan_record, sections
from actions.spec import NAMED
from cockpit.aws_models import Checks, Instance, Joined, ScheduledEvent
from tests.unit.action_kit import Kit

SCONTROL = "sudo -n /opt/slurm/bin/scontrol"


@pytest.fixture(autouse=True)
def _maria(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUDO_USER", "maria")
    monkeypatch.setenv("LOGNAME", "maria")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def commands(kit: Kit, action_id: str, what: str, **options: object) -> list[str]:
    plan = kit.plan(action_id, what, **options)
    return [line for section in sections(plan) if section.kind == "commands" for line in section.lines]


def test_a_drain_shows_command_jobs_and_count(tmp_path: Path) -> None:
    plan = Kit(tmp_path).plan("drain", "gpu-st-p5-[4-5]", reason="NCCL slow on rail 5")
    assert plan_lines(plan) == [
        "drain gpu-st-p5-[4-5] on still",
        "Whom it touches: 2 jobs of 2 users, 32 GPUs",
        "  48219  maria  llama3-405b-pretrain  running 1d07h  24 GPUs  runs on to its end",
        "  48220  wei  训练[ckpt=3]-lr{1e-4}  running 4h06m  8 GPUs  runs on to its end",
        "What happens",
        "  no new job starts there; running ones go on",
        "Commands, on the head of still",
        f"  {SCONTROL} update 'nodename=gpu-st-p5-[4-5]' state=drain 'reason=maria: NCCL slow on rail 5'",
        "Tier 2: type how many it changes, 2, to go on",
    ]


def test_on_parallelcluster_a_drain_says_that_the_instance_goes_and_offers_quarantine(tmp_path: Path) -> None:
    kit = Kit(tmp_path, "parallelcluster")
    plan = kit.plan("drain", "gpu-st-p5-5,gpu-dy-p5-1", reason="x")
    text = "\n".join(plan_lines(plan))
    assert "gpu-st-p5-5: within about a minute of its last job ParallelCluster terminates the instance and " in text
    assert "overwrites the reason" in text
    assert "gpu-dy-p5-1: within about a minute of its last job ParallelCluster terminates the instance; " in text
    assert [offer.action_id for offer in plan.offers] == ["quarantine"]
    assert not Kit(tmp_path).plan("drain", "gpu-st-p5-5", reason="x").offers


def test_replace_is_what_each_kind_does(tmp_path: Path) -> None:
    cluster = Kit(tmp_path, "parallelcluster")
    assert commands(cluster, "replace", "gpu-st-p5-5,gpu-dy-p5-1", reason="bad") == [
        f"{SCONTROL} update nodename=gpu-st-p5-5 state=drain 'reason=maria: bad'",
        f"{SCONTROL} update nodename=gpu-dy-p5-1 state=power_down_asap",
    ]
    assert commands(cluster, "replace", "gpu-st-p5-5", reason="bad", now=True) == [
        f"{SCONTROL} update nodename=gpu-st-p5-5 state=power_down_force 'reason=maria: bad'"
    ]
    assert cluster.plan("replace", "gpu-st-p5-5", reason="bad").tier == NAMED
    pod = Kit(tmp_path, "hyperpod")
    assert commands(pod, "replace", "gpu-st-p5-5", reason="bad") == [
        f"{SCONTROL} update nodename=gpu-st-p5-5 state=fail reason=Action:Replace"
    ]
    assert commands(pod, "reboot", "gpu-st-p5-5", reason="bad") == [
        f"{SCONTROL} update nodename=gpu-st-p5-5 state=fail reason=Action:Reboot"
    ]
    assert commands(cluster, "reboot", "gpu-st-p5-5", reason="bad") == [
        f"{SCONTROL} reboot asap nextstate=resume 'reason=maria: bad' gpu-st-p5-5"
    ]


def test_a_replacement_now_tells_the_work_that_is_lost(tmp_path: Path) -> None:
    plan = Kit(tmp_path).plan("replace", "gpu-st-p5-5", reason="bad", now=True)
    assert [(job.label, job.fate, job.loses) for job in plan.jobs] == [("48220", "killed and requeued", True)]
    assert plan.gpu_hours_lost == pytest.approx(8 * 4.1, abs=0.1)
    assert "32.8 GPU-hours of work are lost, but for what was checkpointed" in "\n".join(plan_lines(plan))
    record = plan_record(plan)
    assert record["jobs"][0]["gpu_hours"] == plan.gpu_hours_lost
    assert record["commands"][0][:3] == ["sudo", "-n", "/opt/slurm/bin/scontrol"]


def test_quarantine_reserves_and_keeps_up_and_on_parallelcluster_never_uses_maint(tmp_path: Path) -> None:
    made = (
        "scontrol create reservation reservationname=cockpit-{0} starttime=now duration=infinite nodes={0} "
        "users=root,ops"
    )
    cluster = Kit(tmp_path, "parallelcluster")
    assert commands(cluster, "quarantine", "gpu-dy-p5-1", reason="look") == [
        f"{SCONTROL} update SuspendExcNodes+=gpu-dy-p5-1",
        f"sudo -n /opt/slurm/bin/{made.format('gpu-dy-p5-1')} flags=ignore_jobs",
        f"{SCONTROL} update nodename=gpu-dy-p5-1 'reason=maria: look'",
    ]
    drained = "gpu-st-p5-6"  # it must not stay drained, or it is replaced all the same
    assert f"{SCONTROL} update nodename={drained} state=undrain" in commands(cluster, "quarantine", drained, reason="x")
    plain = commands(Kit(tmp_path), "quarantine", "gpu-st-p5-5", reason="look")
    assert plain[0].endswith("flags=maint,ignore_jobs")


def test_what_parallelcluster_replaces_all_the_same_is_no_quarantine(tmp_path: Path) -> None:
    kit = Kit(tmp_path, "parallelcluster")
    with pytest.raises(ActionError, match="gpu-st-p5-8 is down: ParallelCluster replaces it within about a minute"):
        kit.plan("quarantine", "gpu-st-p5-8", reason="look")
    checks = Checks("impaired", "ok", events=(ScheduledEvent("instance-retirement"),))
    sick = Instance("i-1", "p5.48xlarge", "running", checks=checks)
    kit.cluster.view = replace(kit.cluster.view, joined=Joined({"gpu-st-p5-5": sick}))
    plan = kit.plan("quarantine", "gpu-st-p5-[5,7]", reason="look")
    assert plan.warnings == (
        "gpu-st-p5-5: EC2's system status check fails and EC2 has planned instance-retirement: ParallelCluster drains "
        "and replaces it for that, reserved or not",
    )
    assert not Kit(tmp_path).plan("quarantine", "gpu-st-p5-8", reason="look").warnings


def test_the_end_of_a_quarantine_promises_no_service_to_what_is_drained(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    kit.do("quarantine", "gpu-st-p5-6", reason="look")
    plan = kit.plan("unquarantine", "gpu-st-p5-6")
    assert plan.effects == ("gpu-st-p5-6 stays drained: `resume` puts it back into service",)


def test_resume_tells_by_whom_when_and_why_it_was_drained(tmp_path: Path) -> None:
    plan = Kit(tmp_path).plan("resume", "gpu-st-p5-[5-6]")
    assert plan.effects == (
        "gpu-st-p5-6 is drained (by root 1d02h ago: INC-4821 NCCL slow on rail 5, ticket with AWS (maria))",
    )
    assert plan.left_out == (("gpu-st-p5-5", "is allocated: it needs no resume"),)
    assert (plan.tier, plan.count) == (1, 1)


def test_scaling_up_starts_powered_down_nodes_and_says_how_long_they_live(tmp_path: Path) -> None:
    kit = Kit(tmp_path, "parallelcluster", scenario="calm")
    plan = kit.plan("scale", "gpu", count=9)  # 8 static of which one is drained or down in `calm` or not
    up = [node for node in kit.cluster.view.nodes or () if not node.state.has("powered_down")]
    started = [name for step in plan.steps for name in step.subjects]
    assert started == ["gpu-dy-p5-1", "gpu-dy-p5-2"][: 9 - len(up)]
    assert "without a job they power down again after 10m (SuspendTime)" in plan.effects
    assert "given up after 30m (ResumeTimeout)" in plan.effects
    assert "          MinCount: 9    # is 8: so many are always up" in plan.for_good
    assert plan.wishes[-1].deadline_s == 1800 + 60  # read from this cluster
    kept = kit.plan("scale", "gpu", count=9, keep=True)
    assert kept.steps[0].argv[-1].startswith("SuspendExcNodes+=gpu-dy-p5-")


def test_scaling_never_starts_what_is_drained_or_reserved(tmp_path: Path) -> None:
    kit = Kit(tmp_path, scenario="calm")
    kit.do("drain", "gpu-dy-p5-1", reason="ICE")
    sim = kit.head.sim
    sim.nodes["gpu-dy-p5-2"].reservations["pcluster-cr-1"] = True
    kit.read()
    plan = kit.plan("scale", "gpu", count=12)
    started = [name for step in plan.steps for name in step.subjects]
    assert started == ["gpu-dy-p5-3", "gpu-dy-p5-4"]
    assert "gpu-dy-p5-1 is drained: maria: ICE" in plan.warnings[0]
    assert "gpu-dy-p5-2 is reserved (pcluster-cr-1)" in plan.warnings[0]


def test_scaling_down_takes_only_idle_nodes_that_nobody_keeps(tmp_path: Path) -> None:
    kit = Kit(tmp_path, scenario="idle")
    plan = kit.plan("scale", "gpu", count=0)
    stopped = {name for step in plan.steps for name in step.subjects}
    assert stopped
    for node in kit.cluster.view.nodes or ():
        if node.name in stopped:
            assert node.word == "idle"
            assert not kit.cluster.view.jobs_of_node.get(node.name)
            assert node.name not in kit.head.sim.kept_up
    assert all("state=power_down_asap" in step.argv for step in plan.steps)
    assert "this kills no job" in plan.warnings[0]


def test_more_than_the_queue_has_is_a_config_change_with_the_exact_edit(tmp_path: Path) -> None:
    kit = Kit(tmp_path, "parallelcluster")
    with pytest.raises(ActionError) as refused:
        kit.plan("scale", "gpu", count=16)
    assert refused.value.kind is Refusal.REFUSED
    text = str(refused.value)
    assert text.splitlines() == [
        "queue gpu has 12 nodes, not 16: that is a change of its configuration",
        "in the cluster's YAML, which the cockpit does not edit:",
        "  Scheduling: SlurmQueues:",
        "    - Name: gpu",
        "      ComputeResources:",
        "        - Name: p5",
        "          MinCount: 16    # is 8: so many are always up",
        "          MaxCount: 20    # is 12",
        "  MinCount goes up without a stop only when MaxCount rises by at least as much, as here.",
        "  pcluster update-cluster --cluster-name still-stack --region us-east-1 --cluster-configuration FILE.yaml "
        "--dryrun true",
        "  and the same without --dryrun once it says that the request would have succeeded",
    ]


def test_a_queue_is_never_inactive_on_parallelcluster(tmp_path: Path) -> None:
    with pytest.raises(ActionError, match="clustermgtd terminates every instance") as refused:
        Kit(tmp_path, "parallelcluster").plan("queue", "gpu", state="INACTIVE")
    assert refused.value.kind is Refusal.REFUSED
    plan = Kit(tmp_path).plan("queue", "gpu", state="inactive")
    assert plan.tier == NAMED
    assert plan.steps[0].argv[-2:] == ("partitionname=gpu", "state=INACTIVE")


def test_old_slurm_cannot_pin_and_says_so(tmp_path: Path) -> None:
    kit = Kit(tmp_path, scenario="calm")
    from cockpit.hosts.base import Completed

    real = kit.head.run

    def old(argv: list[str], **options: object) -> Completed:
        done = real(argv, **options)  # type: ignore[arg-type]
        if list(argv[1:]) == ["show", "config"]:
            return Completed(0, done.stdout.replace(b"23.11.10", b"22.05.8"), b"", 0.01)
        return done

    kit.head.run = old  # type: ignore[method-assign, assignment]
    kit.read()
    with pytest.raises(ActionError, match=r"Slurm 22\.05\.8 cannot change SuspendExcNodes"):
        kit.plan("scale", "gpu", count=10, keep=True)
    pc = kit.plan("quarantine", "gpu-st-p5-1", reason="x")
    assert not any("SuspendExcNodes" in word for step in pc.steps for word in step.argv)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ('says "slow" $(id) `x`', 'maria: says "slow" $(id) `x`'),
        ("two\nlines\tand\r more", "maria: two lines and more"),
        ("\x1b[31mred", "maria: ␛[31mred"),
        ("maria: once is enough", "maria: once is enough"),
        ('ends in "', 'maria: ends in "'),
        ("comma, eq=1 [a@b]; it's", "maria: comma, eq=1 [a@b]; it's"),
    ],
)
def test_a_reason_reaches_slurm_as_one_harmless_line(tmp_path: Path, words: str, kept: str) -> None:
    kit = Kit(tmp_path)
    result = kit.do("drain", "gpu-st-p5-5", reason=words)
    assert result.outcome == "ok"
    assert kit.head.sim.nodes["gpu-st-p5-5"].reason == kept
    assert sum("reason=" in word for word in kit.writes[-1]) == 1


def test_a_reason_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ActionError, match="240 at most"):
        Kit(tmp_path).plan("drain", "gpu-st-p5-5", reason="x" * 300)


def test_a_plan_gets_its_reason_later(tmp_path: Path) -> None:
    plan = Kit(tmp_path).plan("drain", "gpu-st-p5-5")
    assert plan.steps[0].argv[-1] == "reason=<reason>"
    assert plan.with_reason("why not").steps[0].argv[-1] == "reason=maria: why not"
