"""Starting and stopping whole clusters: the exact write, the legal states, lost races, and what refuses to die."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cockpit.aws_models import AwsScope, FleetItem, Market, Part, Stack
from cockpit.aws_orders import order_of
from cockpit.config import ClusterConfig
from cockpit.fleet_orders import Wish, decide
from cockpit.fleet_power import How, PowerLook, PowerPlan, PowerStep, stopped_outcome
from cockpit.instance_join import join
from cockpit.kinds import kind_named
from cockpit.models import FaultError, FaultKind, Job, NodeState
from cockpit.sources.aws import AwsReads
from cockpit.sources.aws_power import Waits, carry_out, may
from tests.aws.moto_cluster import STAMP, MotoCluster
from tests.aws.test_source import node, nodes_of
from tests.still import StillClock

SCOPE = AwsScope("us-east-1", "prod", "parallelcluster-prod", "parallelcluster-slurm-prod")
HEALTHY = Stack("prod", "UPDATE_COMPLETE")


def look(moto: MotoCluster, **more: Any) -> PowerLook:
    reading = AwsReads(moto.calls(), lambda: moto.scope).read()
    nodes = more.pop("nodes", ())
    return PowerLook(reading, join(nodes, reading), nodes, **more)


def stop_plan(moto: MotoCluster, how: How = How.NOW, *, head: bool = False, **more: Any) -> PowerPlan:
    return kind_named("parallelcluster").stop_plan(look(moto, **more), how, head=head)


def start_plan(moto: MotoCluster, **more: Any) -> PowerPlan:
    return kind_named("parallelcluster").start_plan(look(moto, **more), {})


def orders(plan: PowerPlan) -> list[PowerStep]:
    return [step for step in plan.steps if step.via == "aws"]


def waits(moto: MotoCluster, on_sleep: Callable[[], object] = lambda: None, **more: Any) -> tuple[Waits, Any]:
    clock = StillClock()

    def sleep(seconds: float) -> bool:
        clock.time += seconds
        on_sleep()
        return False

    asked = {"running_jobs": lambda: 0, "head_answers": lambda: True} | more
    return Waits(moto.calls(), moto.scope, clock=clock, **asked), sleep


def test_stop_from_running_writes_exactly_the_item_and_a_second_stop_writes_nothing(moto: MotoCluster) -> None:
    plan = stop_plan(moto)
    (order,) = orders(plan)
    assert moto.fleet_item()["Data"]["M"]["status"] == {"S": "RUNNING"}  # a plan writes nothing
    assert carry_out(moto.calls(), order.argv) == "fleet status is now STOP_REQUESTED"
    item = moto.fleet_item()
    stamp = item["Data"]["M"].pop("lastStatusUpdatedTime")
    assert item == {"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": {"status": {"S": "STOP_REQUESTED"}}}}
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00:00", stamp["S"])
    again = stop_plan(moto)
    assert orders(again) == []
    assert [step.argv for step in again.steps] == [("wait", "fleet", "STOPPED"), ("wait", "gone")]
    assert moto.fleet_item()["Data"]["M"]["lastStatusUpdatedTime"] == stamp


def test_the_step_is_a_command_that_can_be_typed(moto: MotoCluster) -> None:
    (order,) = orders(stop_plan(moto))
    assert order.argv[:5] == ("aws", "dynamodb", "update-item", "--region", "us-east-1")
    assert order_of(order.argv).request["ConditionExpression"] == "#d.#s = :seen"
    with pytest.raises(ValueError, match="no order"):
        order_of(("scontrol", "update", "NodeName=x", "State=DOWN", "a"))


def test_stop_works_from_protected_and_from_an_unfinished_start(moto: MotoCluster) -> None:
    for status in ("PROTECTED", "STARTING"):
        moto.set_fleet(status)
        plan = stop_plan(moto)
        assert status in " ".join(plan.warnings)
        carry_out(moto.calls(), orders(plan)[0].argv)
        assert moto.fleet_item()["Data"]["M"]["status"] == {"S": "STOP_REQUESTED"}


def test_a_lost_race_is_told_and_nothing_is_written(moto: MotoCluster) -> None:
    (order,) = orders(stop_plan(moto))
    moto.set_fleet("PROTECTED")
    with pytest.raises(FaultError) as caught:
        carry_out(moto.calls(), order.argv)
    assert caught.value.fault.kind is FaultKind.CONFLICT
    assert "read it again" in caught.value.fault.next_step
    assert moto.fleet_item()["Data"]["M"] == {"status": {"S": "PROTECTED"}, "lastStatusUpdatedTime": {"S": STAMP}}


def test_the_old_form_is_put_whole_and_conditional(moto: MotoCluster) -> None:
    moto.set_fleet("RUNNING", old_form=True)
    (order,) = orders(stop_plan(moto))
    carry_out(moto.calls(), order.argv)
    item = moto.fleet_item()
    assert set(item) == {"Id", "Status", "LastUpdatedTime"}
    assert item["Status"] == {"S": "STOP_REQUESTED"}
    with pytest.raises(FaultError) as caught:
        carry_out(moto.calls(), order.argv)
    assert caught.value.fault.kind is FaultKind.CONFLICT


@pytest.mark.parametrize(
    ("wish", "status", "writes"),
    [
        (Wish.STOP, "RUNNING", True),
        (Wish.STOP, "PROTECTED", True),
        (Wish.STOP, "START_REQUESTED", True),
        (Wish.STOP, "STOP_REQUESTED", False),
        (Wish.STOP, "STOPPING", False),
        (Wish.STOP, "STOPPED", False),
        (Wish.START, "STOPPED", True),
        (Wish.START, "PROTECTED", True),
        (Wish.START, "STOPPING", True),
        (Wish.START, "STARTING", False),
        (Wish.START, "RUNNING", False),
    ],
)
def test_which_states_are_written_over(wish: Wish, status: str, writes: bool) -> None:
    decision = decide(wish, FleetItem(status), HEALTHY, SCOPE)
    assert (decision.order is not None, bool(decision.done), decision.refusal) == (writes, not writes, "")


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("UPDATE_IN_PROGRESS", "wait until it is done"),
        ("DELETE_FAILED", "takes no orders"),
        ("ROLLBACK_COMPLETE", "CREATE_FAILED"),
    ],
)
def test_a_stack_that_is_busy_or_broken_refuses(status: str, why: str) -> None:
    decision = decide(Wish.STOP, FleetItem("RUNNING"), Stack("prod", status), SCOPE)
    assert decision.order is None
    assert status.split("_")[0] in decision.refusal or "CREATE_FAILED" in decision.refusal
    assert why in decision.refusal
    assert decide(Wish.STOP, FleetItem("RUNNING"), Stack("prod", "UPDATE_ROLLBACK_COMPLETE"), SCOPE).order


def test_a_status_that_nobody_knows_is_not_written_over() -> None:
    assert "ENABLED" in decide(Wish.STOP, FleetItem("ENABLED"), HEALTHY, SCOPE).refusal


def test_waiting_follows_the_fleet_and_then_ec2_until_nothing_is_left(moto: MotoCluster) -> None:
    moto.set_fleet("STOP_REQUESTED")
    stages = iter(["STOP_REQUESTED", "STOPPING", "STOPPED"])
    wait, sleep = waits(moto, lambda: moto.set_fleet(next(stages)))
    told: list[str] = []
    assert wait.wait(("wait", "fleet", "STOPPED"), told.append, sleep) == "fleet STOPPED"
    assert told == ["fleet STOP_REQUESTED", "fleet STOPPING"]
    left = list(moto.nodes)
    wait, sleep = waits(moto, lambda: moto.terminate(left.pop()))
    told.clear()
    assert wait.wait(("wait", "gone"), told.append, sleep) == "0 instances running, 0 $/h compute"
    assert [line.split(":")[0] for line in told] == [f"fleet STOPPED, {n} running" for n in (4, 3, 2, 1)]
    assert moto.nodes["gpu-st-p5-1"] in told[-1]


def test_what_refuses_to_die_is_named(moto: MotoCluster) -> None:
    wait, sleep = waits(moto)
    moto.set_fleet("STOPPED")
    with pytest.raises(FaultError) as caught:
        wait.wait(("wait", "gone"), lambda _: None, lambda seconds: bool(sleep(40 * seconds)))
    assert caught.value.fault.kind is FaultKind.TIMEOUT
    assert f"{moto.nodes['gpu-st-p5-1']} running" in caught.value.fault.why


def test_a_fleet_that_somebody_turns_round_and_a_head_that_does_not_listen_end_the_wait(moto: MotoCluster) -> None:
    wait, sleep = waits(moto)
    with pytest.raises(FaultError) as caught:
        wait.wait(("wait", "fleet", "STOPPED"), lambda _: None, sleep)  # it is RUNNING
    assert caught.value.fault.kind is FaultKind.CONFLICT
    moto.set_fleet("STOP_REQUESTED")
    with pytest.raises(FaultError, match="does not take it up"):
        wait.wait(("wait", "fleet", "STOPPED"), lambda _: None, sleep)


def test_stopped_is_what_both_say() -> None:
    assert not stopped_outcome("STOPPED", None).done
    assert not stopped_outcome("STOPPING", ()).done
    assert stopped_outcome("STOPPED", ()).text == "0 instances running, 0 $/h compute"
    assert stopped_outcome("START_REQUESTED", ()).failed


def test_a_plan_names_what_is_lost_and_closes_queues_when_it_waits(moto: MotoCluster) -> None:
    running = (Job(1, "R"), Job(2, "PD"))
    plan = stop_plan(moto, jobs=running)
    assert plan.effects == ("4 compute instances terminated: 4 × p5.48xlarge",)
    assert "running jobs are killed" in plan.irreversible[0]
    assert any("/scratch" in line for line in plan.irreversible)
    later = stop_plan(moto, How.AFTER_JOBS, jobs=running, queues={"gpu": "up", "cpu": "down"})
    assert [step.argv for step in later.steps[:2]] == [
        ("scontrol", "update", "PartitionName=gpu", "State=DOWN"),
        ("wait", "jobs"),
    ]
    assert not any("INACTIVE" in word for step in later.steps for word in step.argv)
    assert not any("killed" in line for line in later.irreversible)


def test_the_head_goes_last_and_comes_first(moto: MotoCluster) -> None:
    plan = stop_plan(moto, head=True)
    assert [step.argv[:2] if step.via == "wait" else step.argv[2] for step in plan.steps] == [
        "update-item", ("wait", "fleet"), ("wait", "gone"), "stop-instances", ("wait", "instances"),
    ]  # fmt: skip
    moto.set_fleet("STOPPED")
    only = stop_plan(moto, head=True)
    assert only.steps[0].argv == ("wait", "gone")  # never while an instance mounts its disks
    assert carry_out(moto.calls(), only.steps[1].argv) == "1 stopping"
    up = start_plan(moto, queues={"gpu": "inactive", "debug": "down"})
    titles = [step.title for step in up.steps]
    assert titles.index("start 1 head node") < titles.index("ask ParallelCluster to start the fleet")
    assert up.steps[-1].argv == ("wait", "fleet", "RUNNING")
    assert any("debug" in line and "gpu" not in line for line in up.warnings)
    carry_out(moto.calls(), next(step for step in up.steps if "start-instances" in step.argv).argv)
    carry_out(moto.calls(), next(step for step in up.steps if "update-item" in step.argv).argv)
    assert moto.fleet_item()["Data"]["M"]["status"] == {"S": "START_REQUESTED"}


def test_instances_that_could_not_be_read_are_not_called_none(moto: MotoCluster) -> None:
    seen = look(moto)
    blind = replace(seen, reading=replace(seen.reading, instances=Part()))
    plan = kind_named("parallelcluster").stop_plan(blind, How.NOW, head=False)
    assert plan.effects == ("every compute instance terminated; which run could not be read (ec2:DescribeInstances)",)
    assert any("/scratch" in line for line in plan.irreversible)
    both = kind_named("parallelcluster").stop_plan(blind, How.NOW, head=True)
    assert (both.steps, "which instance the head is" in both.refusal) == ((), True)


def test_nothing_is_planned_on_a_status_that_could_not_be_read(moto: MotoCluster) -> None:
    moto.client("dynamodb").delete_table(TableName="parallelcluster-prod")
    plan = stop_plan(moto)
    assert (plan.steps, "dynamodb:GetItem" in plan.refusal) == ((), True)


def test_a_right_is_asked_for_without_using_it(moto: MotoCluster) -> None:
    moto.set_fleet("STOPPED")
    step = stop_plan(moto, head=True).steps[1]
    assert may(moto.calls(), step.argv) is None
    states = moto.client("ec2").describe_instances(InstanceIds=[moto.head])["Reservations"][0]["Instances"][0]["State"]
    assert states["Name"] == "running"


def plain(moto: MotoCluster) -> PowerLook:
    config = ClusterConfig("prod", "slurm", region="us-east-1", instances={"tag:parallelcluster:cluster-name": "prod"})
    scope = kind_named("slurm").aws_scope(config, None)
    nodes = nodes_of(moto)
    reading = AwsReads(moto.calls(), lambda: scope).read()
    return PowerLook(reading, join(nodes, reading), nodes, (Job(1, "R"),))


def test_plain_slurm_drains_stops_what_can_be_stopped_and_starts_it_again(moto: MotoCluster) -> None:
    kind, seen = kind_named("slurm"), plain(moto)
    plan = kind.stop_plan(seen, How.AFTER_JOBS, head=False)
    assert [step.via for step in plan.steps] == ["head", "wait", "aws", "wait"]
    assert plan.steps[0].argv[2] == "NodeName=gpu-st-p5-[1-4]"
    assert carry_out(moto.calls(), plan.steps[2].argv) == "4 stopping"
    wait, sleep = waits(moto)
    assert wait.wait(plan.steps[3].argv, lambda _: None, sleep) == "4 stopped"
    off = plain(moto)
    drained = tuple(replace(one, reason="stopped by cockpit (ops)") for one in off.nodes[:3])
    back = kind.start_plan(replace(off, nodes=(*drained, off.nodes[3])), {})
    assert [step.via for step in back.steps] == ["aws", "wait", "head"]
    assert back.steps[2].argv[2] == "NodeName=gpu-st-p5-[1-3]"  # the fourth was drained by somebody else
    carry_out(moto.calls(), back.steps[0].argv)
    assert wait.wait(back.steps[1].argv, lambda _: None, sleep) == "4 of 4 pass EC2's status checks"
    assert kind.start_plan(plain(moto), {}).done


def test_what_somebody_has_drained_keeps_its_reason_over_a_stop_and_is_not_resumed_by_the_start(
    moto: MotoCluster,
) -> None:
    kind, seen = kind_named("slurm"), plain(moto)
    bad = replace(seen.nodes[1], state=NodeState("idle", frozenset({"drain"})), reason="maria: Xid 79")
    seen = replace(seen, nodes=(seen.nodes[0], bad, *seen.nodes[2:]))
    plan = kind.stop_plan(seen, How.NOW, head=False)
    assert plan.steps[0].argv[2] == "NodeName=gpu-st-p5-[1,3-4]"
    assert len(order_of(plan.steps[1].argv).request["InstanceIds"]) == 4  # stopped all the same
    every = tuple(replace(one, state=NodeState("idle", frozenset({"drain"}))) for one in seen.nodes)
    later = kind.stop_plan(replace(seen, nodes=every), How.NOW, head=False)
    assert [step.via for step in later.steps] == ["aws", "wait"]


def test_a_head_alone_is_started_where_nobody_tells_its_nodes(moto: MotoCluster) -> None:
    moto.client("ec2").stop_instances(InstanceIds=[moto.head, *moto.nodes.values()])
    seen = plain(moto)
    head = replace(next(i for i in seen.reading.instances.data or () if i.id == moto.head), role="head")
    reading = replace(seen.reading, instances=replace(seen.reading.instances, data=(head,)))
    plan = kind_named("slurm").start_plan(PowerLook(reading, join((), reading)), {})
    assert plan.effects == ("the head alone: which are its nodes Slurm tells after that",)
    assert plan.warnings == ("start once more when it is up",)


def test_the_head_stays_on_when_the_fleet_is_started_while_the_last_instances_go(moto: MotoCluster) -> None:
    moto.set_fleet("STOPPED")
    left = list(moto.nodes)

    def somebody_starts_it() -> None:
        moto.terminate(left.pop())
        if not left:
            moto.set_fleet("START_REQUESTED")

    wait, sleep = waits(moto, somebody_starts_it)
    with pytest.raises(FaultError, match="not stopping any more") as caught:
        wait.wait(("wait", "gone"), lambda _: None, sleep)
    assert caught.value.fault.kind is FaultKind.CONFLICT


def test_a_queue_that_protected_mode_has_closed_is_left_inactive(moto: MotoCluster) -> None:
    moto.set_fleet("PROTECTED")
    plan = stop_plan(moto, How.AFTER_JOBS, queues={"gpu": "up", "bad": "inact"})
    assert [step.argv[2] for step in plan.steps if step.via == "head"] == ["PartitionName=gpu"]


def test_a_running_fleet_tells_which_queues_an_interrupted_stop_has_left_closed(moto: MotoCluster) -> None:
    assert "closed are the queues gpu: `cockpit queue up NAME`" in start_plan(moto, queues={"gpu": "down"}).done


def test_plain_slurm_leaves_what_ec2_cannot_stop(moto: MotoCluster) -> None:
    seen = plain(moto)
    spot = {n: replace(i, market=Market.SPOT) if n == "gpu-st-p5-1" else i for n, i in seen.joined.of_node.items()}
    plan = kind_named("slurm").stop_plan(replace(seen, joined=replace(seen.joined, of_node=spot)), How.NOW, head=True)
    assert plan.left_out[0] == (
        moto.nodes["gpu-st-p5-1"],
        "a one-time spot instance cannot be stopped, only terminated",
    )
    assert "gpu-st-p5-1" not in plan.steps[0].subjects
    assert moto.head not in " ".join(word for step in plan.steps for word in step.argv)
    assert "the head stays on, since what is left out goes on running" in plan.warnings


def test_without_named_instances_plain_slurm_says_what_to_write(moto: MotoCluster) -> None:
    scope = kind_named("slurm").aws_scope(ClusterConfig("prod", "slurm", region="us-east-1"), None)
    reading = AwsReads(moto.calls(), lambda: scope).read()
    plan = kind_named("slurm").stop_plan(PowerLook(reading, join([node("a")], reading)), How.NOW, head=False)
    assert "`instances: {tag:KEY: VALUE}`" in plan.refusal
