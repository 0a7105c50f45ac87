"""Stop and start by themselves: times as people write them, and schedules that AWS takes and runs as asked."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cockpit.aws_orders import order_of
from cockpit.models import FaultError, FaultKind, Job
from cockpit.schedule_times import local_zone, read_when
from cockpit.schedules import (
    Owner,
    delete_steps,
    partition_of,
    role_policy,
    start_steps,
    still_running,
    stop_steps,
    trust_policy,
)
from cockpit.sources.aws_power import carry_out
from cockpit.sources.aws_schedules import read_schedules
from tests.aws.moto_cluster import REGION, MotoCluster

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 25, 12, 0, tzinfo=BERLIN)  # a Wednesday
ROLE = "arn:aws:iam::123456789012:role/cockpit"


@pytest.mark.parametrize(
    ("text", "every", "first", "expression"),
    [
        ("Fri 19:00", "", "2026-11-27 19:00", "at(2026-11-27T19:00:00)"),
        ("friday 19:00", "week", "2026-11-27 19:00", "cron(0 19 ? * FRI *)"),
        ("wed 11:59", "", "2026-12-02 11:59", "at(2026-12-02T11:59:00)"),
        ("12:00", "", "2026-11-26 12:00", "at(2026-11-26T12:00:00)"),
        ("7:05", "day", "2026-11-26 07:05", "cron(5 7 ? * * *)"),
        ("Sat 08:00", "", "2026-11-28 08:00", "at(2026-11-28T08:00:00)"),
        ("2026-12-01 20:00", "", "2026-12-01 20:00", "at(2026-12-01T20:00:00)"),
        ("18:30", "weekday", "2026-11-25 18:30", "cron(30 18 ? * MON-FRI *)"),
    ],
)
def test_times_as_people_write_them(text: str, every: str, first: str, expression: str) -> None:
    when = read_when(text, NOW, every)
    assert (f"{when.first:%Y-%m-%d %H:%M}", when.expression, when.zone) == (first, expression, "Europe/Berlin")


@pytest.mark.parametrize("text", ["", "Fri", "25:00", "12:60", "2026-13-01 10:00", "2026-11-01 10:00", "tomorrow 5pm"])
def test_what_is_no_time_to_come_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|date|over"):
        read_when(text, NOW)


def test_a_time_that_the_clocks_leave_out_is_refused_and_no_shift_leads_into_it() -> None:
    friday = datetime(2027, 3, 26, 12, 0, tzinfo=BERLIN)  # on Sunday 02:00 becomes 03:00
    for text in ("Sun 02:30", "2027-03-28 02:00"):
        with pytest.raises(ValueError, match="Sun 28 Mar has no 02:"):
            read_when(text, friday)
    assert read_when("Sun 01:45", friday).shifted(30).expression == "at(2027-03-28T03:15:00)"
    assert read_when("Sun 03:00", friday).expression == "at(2027-03-28T03:00:00)"
    assert read_when("Sun 02:30", friday, "week").expression == "cron(30 2 ? * SUN *)"
    back = datetime(2027, 10, 29, 12, 0, tzinfo=BERLIN)
    assert read_when("Sun 02:30", back).shifted(30).expression == "at(2027-10-31T03:00:00)"


def test_a_shift_over_midnight_takes_the_day_along() -> None:
    when = read_when("Fri 23:45", NOW, "week").shifted(30)
    assert when.expression == "cron(15 0 ? * SAT *)"
    assert read_when("23:45", NOW, "weekday").shifted(30).expression == "cron(15 0 ? * TUE-SAT *)"
    with pytest.raises(ValueError, match="no weekday"):
        read_when("Sat 10:00", NOW, "weekday")


def test_the_zone_has_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere = (tmp_path / "a", tmp_path / "b")
    monkeypatch.setenv("TZ", "America/New_York")
    assert str(local_zone(nowhere)) == "America/New_York"
    monkeypatch.setenv("TZ", "CET-1CEST")
    assert str(local_zone(nowhere)) == "UTC"
    monkeypatch.delenv("TZ")
    nowhere[0].write_text("Asia/Tokyo\n")
    nowhere[1].write_text("")
    assert str(local_zone(nowhere)) == "Asia/Tokyo"


def owner(moto: MotoCluster, **more: Any) -> Owner:
    return replace(Owner("prod", moto.scope, REGION, ROLE, "maria"), **more)


def target(argv: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = order_of(argv).request["Target"]
    return found


def test_a_night_is_made_listed_changed_and_taken_back(moto: MotoCluster) -> None:
    ours = owner(moto, head=moto.head)
    down = stop_steps(ours, read_when("Fri 19:00", NOW, "week"))
    up = start_steps(ours, read_when("Mon 07:00", NOW, "week"))
    for step in (*down, *up):
        carry_out(moto.calls(), step.argv)
    there = read_schedules(moto.calls(), ours)
    assert [(s.name, s.expression, s.action) for s in there] == [
        ("cockpit-prod-start", "cron(5 7 ? * MON *)", "dynamodb:updateItem"),
        ("cockpit-prod-start-head", "cron(0 7 ? * MON *)", "ec2:startInstances"),
        ("cockpit-prod-stop", "cron(0 19 ? * FRI *)", "dynamodb:updateItem"),
        ("cockpit-prod-stop-head", "cron(30 19 ? * FRI *)", "ec2:stopInstances"),
    ]
    assert {(s.zone, s.state) for s in there} == {("Europe/Berlin", "ENABLED")}
    assert there[2].text == "stop of prod, by maria, made by cockpit"
    with pytest.raises(FaultError) as caught:
        carry_out(moto.calls(), down[0].argv)
    assert caught.value.fault.kind is FaultKind.CONFLICT
    for step in stop_steps(owner(moto), read_when("Fri 20:00", NOW, "week"), [s.name for s in there]):
        carry_out(moto.calls(), step.argv)
    there = read_schedules(moto.calls(), ours)
    assert [(s.name, s.expression) for s in there][2:] == [("cockpit-prod-stop", "cron(0 20 ? * FRI *)")]
    for step in delete_steps(ours, [*(s.name for s in there), "somebody-elses"]):
        carry_out(moto.calls(), step.argv)
    assert read_schedules(moto.calls(), ours) == ()


def test_what_a_schedule_will_send_does_what_it_should(moto: MotoCluster) -> None:
    (step,) = stop_steps(owner(moto), read_when("Fri 19:00", NOW))
    order = order_of(step.argv).request
    assert order["ActionAfterCompletion"] == "DELETE"
    sent = json.loads(order["Target"]["Input"])
    ddb = moto.client("dynamodb")
    ddb.update_item(**sent)  # as EventBridge will call it
    data = moto.fleet_item()["Data"]["M"]
    assert data["status"] == {"S": "STOP_REQUESTED"}
    assert data["lastStatusUpdatedTime"]["S"] == "2026-11-27 18:00:00.000001+00:00"
    with pytest.raises(ddb.exceptions.ConditionalCheckFailedException):
        ddb.update_item(**sent)  # only from RUNNING or PROTECTED
    moto.set_fleet("STOPPED")
    (up,) = start_steps(owner(moto), read_when("Mon 07:00", NOW, "week"))
    ddb.update_item(**json.loads(target(up.argv)["Input"]))
    assert moto.fleet_item()["Data"]["M"]["status"] == {"S": "START_REQUESTED"}
    moto.set_fleet("RUNNING", old_form=True)
    (old,) = stop_steps(owner(moto, old_form=True), read_when("Fri 19:00", NOW))
    ddb.put_item(**json.loads(target(old.argv)["Input"]))
    assert moto.fleet_item()["Status"] == {"S": "STOP_REQUESTED"}
    assert target(old.argv)["Arn"] == "arn:aws:scheduler:::aws-sdk:dynamodb:putItem"


def test_plain_slurm_stops_its_instances_and_the_head_half_an_hour_later(moto: MotoCluster) -> None:
    ours = owner(moto, instances=("i-1", "i-2"), head="i-9")
    nodes, head = stop_steps(ours, read_when("Fri 19:00", NOW))
    assert target(nodes.argv)["Arn"].endswith("ec2:stopInstances")
    assert json.loads(target(nodes.argv)["Input"]) == {"InstanceIds": ["i-1", "i-2"]}
    assert order_of(head.argv).request["ScheduleExpression"] == "at(2026-11-27T19:30:00)"


def test_jobs_that_may_still_run_then_are_known() -> None:
    at = 1000.0
    jobs = (Job(1, "R", ends_at=900.0), Job(2, "R", ends_at=1100.0), Job(3, "R"), Job(4, "PD", ends_at=2000.0))
    more = (Job(5, "S"), Job(6, "CF"))  # suspended ones die, too
    assert [job.job_id for job in still_running((*jobs, *more), at)] == [2, 3, 5, 6]


def test_the_role_may_do_just_this(moto: MotoCluster) -> None:
    policy = role_policy(owner(moto, head="i-9"), "123456789012")["Statement"]
    assert policy == [
        {
            "Effect": "Allow",
            "Action": ["dynamodb:UpdateItem"],
            "Resource": ["arn:aws:dynamodb:us-east-1:123456789012:table/parallelcluster-prod"],
        },
        {
            "Effect": "Allow",
            "Action": ["ec2:StartInstances", "ec2:StopInstances"],
            "Resource": ["arn:aws:ec2:us-east-1:123456789012:instance/i-9"],
        },
    ]
    assert trust_policy()["Statement"][0]["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert (partition_of("cn-north-1"), partition_of("us-gov-west-1")) == ("aws-cn", "aws-us-gov")


def test_a_name_with_odd_characters_becomes_one_that_aws_takes(moto: MotoCluster) -> None:
    odd = owner(moto, cluster="my cluster/é" + "x" * 80)
    (step,) = stop_steps(odd, read_when("Fri 19:00", NOW))
    name = order_of(step.argv).request["Name"]
    assert (len(name) <= 64, name.startswith(odd.prefix)) == (True, True)
    carry_out(moto.calls(), step.argv)


def test_the_schedules_of_a_cluster_whose_name_begins_alike_are_left_alone(moto: MotoCluster) -> None:
    other = owner(moto, cluster="prod-stop")
    for step in stop_steps(other, read_when("Fri 19:00", NOW)):
        carry_out(moto.calls(), step.argv)
    assert read_schedules(moto.calls(), owner(moto)) == ()
    assert delete_steps(owner(moto), other.names) == ()
    long = [owner(moto, cluster="x" * 60 + end) for end in "ab"]
    assert long[0].prefix != long[1].prefix
    assert all(len(name) <= 64 for name in long[0].names)
