"""Stop and start of a whole cluster through the runner: plan, dry run, confirmation, proof, audit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from actions import fleet
from actions.audit import AuditLog
from actions.errors import ActionError
from actions.fleet import cluster_target
from actions.outcome import Progress, Result
from actions.plan_lines import plan_lines, plan_record, result_lines
from actions.runner import Runner
from actions.spec import Context, Options, Plan
from actions.table import action
from cockpit.aws_models import Instance, Joined, Market, Part
from cockpit.aws_orders import order_of
from cockpit.config import ClusterConfig
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.power_looks import power_look, started
from cockpit.schedule_times import local_zone
from tests.aws.moto_cluster import KEYS, MotoCluster
from tests.still import still_cluster

STOP, START, SCHEDULE, UNSCHEDULE = map(action, ("stop", "start", "schedule", "unschedule"))


class Desk:
    """One operator at one cluster in moto; every nap plays the next thing that happens on the head."""

    def __init__(self, moto: MotoCluster, folder: Path, config: ClusterConfig | None = None) -> None:
        self.moto, self.log = moto, AuditLog("prod", folder)
        self.cluster, self.head, self.clock = still_cluster(config or moto.config)
        self.cluster.read_once()
        self.happens: list[Callable[[], Any]] = []
        self.told: list[Progress] = []

    def nap(self, seconds: float) -> bool:
        self.clock.time += seconds
        if self.happens:
            self.happens.pop(0)()
        return False

    def plan(self, what: Any, **options: Any) -> Plan:
        plan: Plan = what.plan(self.cluster, cluster_target(self.cluster), Options(**options))
        return plan

    def run(self, plan: Plan, typed: str = "prod") -> Result:
        self.cluster.read_once()
        return Runner(self.cluster, audit=self.log, sleep=self.nap).run(plan, typed, self.told.append)

    @property
    def status(self) -> str:
        return str(self.moto.fleet_item()["Data"]["M"]["status"]["S"])


@pytest.fixture(name="desk")
def a_desk(moto: MotoCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Desk(moto, tmp_path / "audit")


def test_a_plan_lists_jobs_money_and_steps_and_writes_nothing(desk: Desk) -> None:
    plan = desk.plan(STOP)
    text = "\n".join(plan_lines(plan))
    assert "stop prod on prod" in text
    assert "saves $220.16/h" in text
    assert "1 machine without a known price not counted" in text
    assert "killed and requeued" in text
    assert "waits until the next start" in text
    assert "aws dynamodb update-item --region us-east-1 --cli-input-json" in text
    assert "type the cluster's name, prod" in text
    record = json.loads(json.dumps(plan_record(plan)))
    assert (record["tier"], len(record["commands"]), len(record["jobs"]) > 5) == (3, 1, True)
    assert desk.status == "RUNNING"


def test_jobs_whose_nodes_still_boot_are_in_the_plan(desk: Desk) -> None:
    assert desk.cluster.view.queue is not None
    booting = {job.job_id for job in desk.cluster.view.queue.jobs if job.state == "CF"}
    assert booting
    hit = {job.job_id: job for job in desk.plan(STOP).jobs}
    assert booting <= hit.keys()
    assert not any(hit[job].loses for job in booting)  # nothing of theirs was done yet


def test_a_plan_names_the_account_and_a_guessed_stack(desk: Desk, moto: MotoCluster, tmp_path: Path) -> None:
    assert desk.plan(STOP).effects[-1].startswith("in AWS account 123456789012, us-east-1, as arn:aws:")
    moto.set_fleet("STOPPED")
    blind = Desk(moto, tmp_path / "b")
    blind.cluster.slurm._facts = None  # the head is off and was never asked
    blind.head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "no route", "is it on?"))
    told = "stack prod is meant by the name of the config's entry alone"
    assert any(line.startswith(told) for line in blind.plan(START).warnings)
    sure = Desk(moto, tmp_path / "c", replace(moto.config, stack="prod"))
    assert not any(line.startswith(told) for line in sure.plan(START).warnings)


def test_stop_is_proved_by_dynamodb_and_ec2(desk: Desk) -> None:
    plan = desk.plan(STOP)
    desk.happens = [lambda: desk.moto.set_fleet("STOPPING"), *[
        (lambda node=node: desk.moto.terminate(node)) for node in desk.moto.nodes
    ], lambda: desk.moto.set_fleet("STOPPED")]  # fmt: skip
    result = desk.run(plan)
    assert (result.outcome, result.text) == ("ok", "stop prod: 0 instances running, 0 $/h compute")
    seen = [progress.text for progress in desk.told if progress.kind == "watch"]
    assert seen[0].startswith("fleet STOP_REQUESTED, 4 running: i-")
    assert seen[-2:] == ["fleet STOPPING, 0 compute instances", "0 instances running, 0 $/h compute"]
    begin, end = (json.loads(line) for line in next((desk.log.path).parent.glob("*.jsonl")).read_text().splitlines())
    assert (begin["phase"], end["outcome"]) == ("begin", "ok")
    assert begin["commands"][0][:3] == ["aws", "dynamodb", "update-item"]


def test_what_does_not_die_is_named_and_the_outcome_is_not_ok(desk: Desk) -> None:
    result = desk.run(desk.plan(STOP))
    assert result.outcome == "unverified"
    assert f"{desk.moto.nodes['gpu-st-p5-1']} running" in "\n".join(result_lines(result))


def test_a_plan_is_refused_when_somebody_else_was_faster(desk: Desk) -> None:
    plan = desk.plan(STOP)
    desk.moto.set_fleet("PROTECTED")
    result = desk.run(plan)
    assert (result.outcome, "changed since the plan was shown" in result.text) == ("refused", True)
    assert desk.status == "PROTECTED"
    fresh = replace(desk.plan(STOP), again=None)
    desk.moto.set_fleet("RUNNING")  # between the last look and the write
    lost = desk.run(fresh)
    assert lost.outcome == "failed"
    assert "no longer as it was shown" in "\n".join(lost.notes)
    assert desk.status == "RUNNING"


def test_it_is_confirmed_by_the_clusters_name_and_read_only_forbids_it(desk: Desk, tmp_path: Path) -> None:
    plan = desk.plan(STOP)
    assert desk.run(plan, "yes").outcome == "refused"
    locked = Desk(desk.moto, tmp_path / "b", replace(desk.moto.config, read_only=True))
    assert locked.run(locked.plan(STOP)).outcome == "refused"
    desk.moto.set_fleet("STOPPED")
    assert locked.run(locked.plan(START)).outcome == "refused"
    assert desk.status == "STOPPED"


def test_after_the_jobs_queues_are_closed_first_and_the_head_goes_last(desk: Desk) -> None:
    plan = desk.plan(STOP, after_jobs=True, head=True)
    site = desk.cluster.view.site
    assert site is not None
    closing = [step for step in plan.steps if step.via == "head"]
    assert plan.steps[: len(closing)] == tuple(closing)
    assert [step.argv[-1] for step in closing] == ["State=DOWN"] * len(site.partitions)
    assert plan.steps[len(closing)].argv == ("wait", "jobs")
    assert plan.losing == ()
    assert [step.argv[2] for step in plan.steps if step.via == "aws"] == ["update-item", "stop-instances"]
    assert "# wait until the fleet is STOPPED" in "\n".join(plan_lines(plan))


def test_a_stop_that_is_cancelled_while_it_waits_for_jobs_tells_nothing_of_the_fleet(desk: Desk) -> None:
    plan = desk.plan(STOP, after_jobs=True)
    assert any("open each again: `cockpit queue up NAME`" in line for line in plan.warnings)
    cancelled = threading.Event()
    desk.happens = [cancelled.set]
    desk.cluster.read_once()
    run = Runner(desk.cluster, audit=desk.log, sleep=desk.nap)
    result = run.run(plan, "prod", desk.told.append, cancelled=cancelled)
    assert (result.outcome, result.findings, desk.status) == ("cancelled", {}, "RUNNING")
    assert "somebody started it" not in result.text
    assert desk.log.entries()[-1].end["changed"] == "gpu,interactive,prio"  # type: ignore[index]


def test_static_nodes_that_are_still_powered_down_are_no_started_cluster(desk: Desk) -> None:
    for name, node in desk.head.sim.nodes.items():
        if "-st-" in name:
            node.power = type(node.power).DOWN
    outcome = started(desk.cluster)
    assert (outcome.done, outcome.text.split(",")[0][:4]) == (False, "0 of")


def test_a_whole_cluster_that_is_off_is_started_head_first(desk: Desk) -> None:
    moto = desk.moto
    moto.set_fleet("STOPPED")
    moto.client("ec2").stop_instances(InstanceIds=[moto.head])
    for node in moto.nodes:
        moto.terminate(node)
    down = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "no route", "is it on?"))
    off = Desk(moto, desk.log.path.parent / "c")
    off.head.fault = down
    plan = off.plan(START)
    assert [step.argv[2] for step in plan.steps if step.via == "aws"] == ["start-instances", "update-item"]
    assert [line for line in plan.effects if line.startswith("adds $") and "/h for gpu-st-p5-" in line]

    def ssh_is_up() -> None:
        off.head.fault = None
        off.head.answers["true"] = lambda argv: Completed(0, b"", b"", 0.1)

    off.happens = [ssh_is_up, lambda: moto.set_fleet("STARTING"), lambda: moto.set_fleet("RUNNING")]
    result = off.run(plan)
    told = [progress.text for progress in off.told]
    assert "the head does not answer yet" in told
    assert off.status == "RUNNING"
    assert result.steps[0].said == "1 pending"
    assert "static nodes up" in result.text


def test_nothing_to_do_and_a_busy_stack_are_refused_in_words(desk: Desk) -> None:
    with pytest.raises(ActionError, match="RUNNING already"):
        desk.plan(START)
    with pytest.raises(ActionError, match="NAME=COUNT"):
        desk.plan(START, groups="workers")


def test_without_a_region_the_action_says_why_not() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    assert "names no region" in str(STOP.disabled_reason(Context(cluster)))


ROLE = "arn:aws:iam::123456789012:role/cockpit"


def test_a_weekend_is_scheduled_shown_and_taken_back(moto: MotoCluster, tmp_path: Path) -> None:
    desk = Desk(moto, tmp_path, replace(moto.config, schedule_role=ROLE))
    plan = desk.plan(SCHEDULE, at="Fri 19:00", start_at="Mon 07:00", every="week", head=True)
    text = "\n".join(plan_lines(plan))
    assert "whatever runs at that time is killed" in text
    soon = datetime.fromtimestamp(desk.clock.now() + 600, local_zone())
    hit = desk.plan(SCHEDULE, at=f"{soon:%Y-%m-%d %H:%M}")
    assert len(hit.jobs) > 1
    assert "may still run then: is killed" in "\n".join(plan_lines(hit))
    assert "make schedule cockpit-prod-stop: Fri" in text
    assert len(plan.steps) == 4
    result = desk.run(plan)
    assert result.outcome == "ok"
    assert "cockpit-prod-stop-head cron(30 19 ? * FRI *)" in result.text
    assert desk.status == "RUNNING"
    again = desk.plan(SCHEDULE, at="Fri 20:00", every="week")
    assert "change schedule cockpit-prod-stop" in again.effects[1]
    gone = desk.plan(UNSCHEDULE)
    assert (gone.confirm.kind, gone.count) == ("count", 4)
    result = desk.run(gone, "4")
    assert (result.outcome, result.text) == ("ok", "unschedule prod: no schedule")
    with pytest.raises(ActionError, match="there is no schedule"):
        desk.plan(UNSCHEDULE)


def test_a_schedule_needs_a_role_and_a_time(desk: Desk, moto: MotoCluster, tmp_path: Path) -> None:
    with pytest.raises(ActionError, match="schedule_role"):
        desk.plan(SCHEDULE, at="Fri 19:00")
    able = Desk(moto, tmp_path / "b", replace(moto.config, schedule_role=ROLE))
    with pytest.raises(ActionError, match="say when"):
        able.plan(SCHEDULE)
    with pytest.raises(ActionError, match="is no time"):
        able.plan(SCHEDULE, at="soon")


def cockpit(moto: MotoCluster, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    config = home / "config.yaml"
    config.write_text(
        f"clusters:\n  prod: {{kind: parallelcluster, head: 'nobody@127.0.0.1:1', region: us-east-1, "
        f"endpoint_url: '{moto.endpoint}', schedule_role: '{ROLE}'}}\n"
    )
    env = {**os.environ, **KEYS, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    argv = [sys.executable, "-m", "cockpit", "--config", str(config), *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60, check=False)


def test_the_command_line_knows_schedules_and_a_stop_needs_slurm_to_be_read(moto: MotoCluster, tmp_path: Path) -> None:
    none = cockpit(moto, tmp_path, "schedules")
    assert (none.returncode, none.stdout) == (0, "no schedule stops or starts prod\n")
    made = cockpit(moto, tmp_path, "stop", "--at", "Fri 19:00", "--yes", "--confirm", "prod")
    assert (made.returncode, "cockpit-prod-stop" in made.stdout) == (0, True), made.stderr
    listed = json.loads(cockpit(moto, tmp_path, "schedules", "--json").stdout)["schedules"]
    assert [one["name"] for one in listed] == ["cockpit-prod-stop"]
    blind = cockpit(moto, tmp_path, "stop", "--yes", "--confirm", "prod")
    assert (blind.returncode, "nodes could not be read" in blind.stderr) == (4, True)
    assert moto.fleet_item()["Data"]["M"]["status"]["S"] == "RUNNING"
    dry = json.loads(cockpit(moto, tmp_path, "stop", "--dry-run", "--json").stdout)
    assert (dry["plan"]["action"], dry["result"]) == ("stop", None)


def test_a_change_that_scheduler_refuses_is_no_success_because_the_old_one_is_there(
    moto: MotoCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(moto, tmp_path, replace(moto.config, schedule_role=ROLE))
    assert desk.run(desk.plan(SCHEDULE, at="Fri 19:00", every="week")).outcome == "ok"
    later = desk.plan(SCHEDULE, at="Fri 20:00", every="week")
    denied = FaultError(Fault(FaultKind.DENIED, "changing it", "scheduler:UpdateSchedule is missing"))

    def refuse(*_: Any) -> str:
        raise denied

    monkeypatch.setattr("cockpit.sources.aws_power.carry_out", refuse)
    result = desk.run(later)
    assert result.outcome == "failed"
    assert "cron(0 19 ? * FRI *)" in result.text


def test_a_head_that_is_no_longer_to_be_stopped_loses_its_schedule(moto: MotoCluster, tmp_path: Path) -> None:
    desk = Desk(moto, tmp_path, replace(moto.config, schedule_role=ROLE))
    desk.run(desk.plan(SCHEDULE, at="Fri 19:00", start_at="Mon 07:00", every="week", head=True))
    plan = desk.plan(SCHEDULE, at="Fri 22:00", every="week")  # the old one would stop the head at 19:30
    assert plan.effects[0] == "delete schedule cockpit-prod-stop-head"
    assert "cockpit-prod-start-head stays: cron(0 7 ? * MON *)" in plan.effects[3]
    result = desk.run(plan)
    assert (result.outcome, "cockpit-prod-stop-head" in result.text) == ("ok", False)
    assert "cockpit-prod-stop cron(0 22 ? * FRI *)" in result.text


def test_schedules_of_another_cluster_of_the_same_name_are_not_touched(moto: MotoCluster, tmp_path: Path) -> None:
    desk = Desk(moto, tmp_path / "a", replace(moto.config, schedule_role=ROLE))
    desk.run(desk.plan(SCHEDULE, at="Fri 19:00"))
    moto.client("dynamodb").create_table(
        TableName="parallelcluster-other", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
    )  # fmt: skip
    other = Desk(moto, tmp_path / "b", replace(moto.config, schedule_role=ROLE, stack="other"))
    for what, options in ((SCHEDULE, {"at": "Sat 19:00"}), (UNSCHEDULE, {})):
        with pytest.raises(ActionError, match="is about parallelcluster-prod, not parallelcluster-other"):
            other.plan(what, **options)


def test_half_a_time_is_no_stop(moto: MotoCluster, desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(ActionError, match="every day: say at what time"):
        desk.plan(STOP, every="day")
    able = Desk(moto, tmp_path / "b", replace(moto.config, schedule_role=ROLE))
    with pytest.raises(ActionError, match="waits for no jobs"):
        able.plan(SCHEDULE, at="Fri 19:00", after_jobs=True)
    half = cockpit(moto, tmp_path, "stop", "--start", "Mon 07:00", "--yes", "--confirm", "prod")
    assert (half.returncode, "needs --at TIME" in half.stderr) == (2, True)


def test_what_a_stop_saves_leaves_out_what_is_paid_for_all_the_same(desk: Desk) -> None:
    view = desk.cluster.view
    reading = view.aws
    assert reading is not None
    instances = reading.instances.data or ()

    def saved(change: Callable[[int, Instance], Instance], left_out: tuple[str, ...] = ()) -> str:
        compute = [one for one in instances if one.role == "compute"]
        rest = [one for one in instances if one.role != "compute"]
        changed = (*rest, *(change(n, one) for n, one in enumerate(compute)))
        desk.cluster.view = replace(view, aws=replace(reading, instances=Part(changed, 1.0)), prices=None)
        (line,) = fleet._saved(desk.cluster, left_out)
        return line

    assert saved(lambda n, one: one).startswith("saves $220.16/h")
    some = saved(lambda n, one: replace(one, reservation="cr-1" if n < 3 else ""))
    assert (some.startswith("saves $55.04/h"), "3 in capacity reservations not counted" in some) == (True, True)
    blocks = saved(lambda n, one: replace(one, market=Market.CAPACITY_BLOCK, reservation="cr-1"))
    assert "4 in capacity blocks not counted: they are paid in advance" in blocks
    stays = saved(lambda n, one: one, (desk.moto.nodes["gpu-st-p5-1"],))
    assert stays.startswith("saves $165.12/h")


def test_a_schedule_of_plain_instances_leaves_out_what_would_fail_all_of_it(
    moto: MotoCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ClusterConfig("prod", "slurm", region="us-east-1", endpoint_url=moto.endpoint, schedule_role=ROLE,
                           instances={"tag:parallelcluster:cluster-name": "prod"})  # fmt: skip
    desk = Desk(moto, tmp_path, config)
    seen = power_look(desk.cluster)
    of_node = {
        "gpu-st-p5-1": Instance("i-1", state="running"),
        "gpu-st-p5-2": Instance("i-2", state="running", market=Market.SPOT),
    }
    monkeypatch.setattr("cockpit.power_looks.power_look", lambda _: replace(seen, joined=Joined(of_node)))
    desk.cluster.view = replace(desk.cluster.view, joined=Joined(of_node))
    plan = desk.plan(SCHEDULE, at="Fri 19:00")
    assert json.loads(order_of(plan.steps[0].argv).request["Target"]["Input"]) == {"InstanceIds": ["i-1"]}
    assert plan.left_out == (("i-2", "a one-time spot instance cannot be stopped, only terminated"),)
    assert "it names the 1 instance of today: later ones are not in it" in plan.warnings
    assert any("gpu-st-p5-1 may get another instance before" in line for line in plan.warnings)
