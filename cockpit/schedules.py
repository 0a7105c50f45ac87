"""Stop and start by themselves, by EventBridge Scheduler: no laptop has to stay open. Pure requests and readings.

Each schedule calls one API of AWS directly (a universal target). Between the fleet's stop and the head's nothing
checks that the fleet really is stopped, which is why the head goes half an hour later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timezone
from typing import Any

from cockpit.aws_models import AwsScope
from cockpit.aws_orders import AwsOrder
from cockpit.fleet_power import PowerStep, aws_step
from cockpit.formats.job_states import HOLDING
from cockpit.models import Job
from cockpit.schedule_times import When
from cockpit.text import printable

HEAD_AFTER_MIN = 30  # the fleet is down by then; terminating takes EC2 some minutes
FLEET_AFTER_MIN = 5  # a request written before the head is up is kept until it is
LONGEST_CLUSTER = 44  # so that with the rest a name has at most the 64 characters that AWS takes
VERBS = ("start", "start-head", "stop", "stop-head")
_RETRY = {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 3600}
_STOP_FROM = ("RUNNING", "PROTECTED")
_START_FROM = ("STOPPED",)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """One schedule of ours, as EventBridge tells it."""

    name: str
    expression: str = ""
    zone: str = ""
    state: str = ""
    text: str = ""  # its description
    action: str = ""  # dynamodb:updateItem, ec2:stopInstances, ...
    target: str = ""  # the table that it writes, or the instances, separated by commas

    def does_like(self, other: Scheduled) -> bool:
        """Whether both do the same at the same time, whatever their descriptions say."""
        return replace(self, text="") == replace(other, text="")


@dataclass(frozen=True, slots=True)
class Owner:
    """For whom schedules are made: the cluster, its parts in AWS, the role they take, and who asks."""

    cluster: str
    scope: AwsScope
    region: str
    role: str
    who: str = ""
    head: str = ""  # the head's instance; "" leaves it alone
    instances: tuple[str, ...] = ()  # kind slurm: what is stopped and started
    old_form: bool = False  # ParallelCluster before 3.2.0
    left_out: tuple[tuple[str, str], ...] = ()  # (instance, why it cannot be stopped): one would fail the whole call

    @property
    def prefix(self) -> str:
        """How the names of this cluster's schedules begin; no other cluster's begin so."""
        clean = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in self.cluster)
        if clean == self.cluster and len(clean) <= LONGEST_CLUSTER:
            return f"cockpit-{clean}-"
        mark = hashlib.sha256(self.cluster.encode()).hexdigest()[:8]
        return f"cockpit-{clean[: LONGEST_CLUSTER - 9]}-{mark}-"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that this cluster's schedules have; `prod-` also begins those of a cluster `prod-2`."""
        return tuple(self.prefix + verb for verb in VERBS)


def stop_steps(owner: Owner, when: When, there: Iterable[str] = ()) -> tuple[PowerStep, ...]:
    """Schedules that stop the cluster; those already `there` by name are replaced, or deleted when not asked for.

    An older one of the head, left alone, would stop the head at its own time: before the fleet, under its jobs.
    """
    known = frozenset(there)
    fleet = _fleet_step(owner, "stop", when, known)
    if not owner.head:
        return (*_no_more(owner, "stop-head", known), fleet)
    later = when.shifted(HEAD_AFTER_MIN)
    return fleet, _ec2_step(owner, "stop-head", "stopInstances", (owner.head,), later, known)


def start_steps(owner: Owner, when: When, there: Iterable[str] = ()) -> tuple[PowerStep, ...]:
    """Schedules that start it again, the head first; one of the head that is there and not asked for is deleted."""
    known = frozenset(there)
    if not owner.head:
        return (*_no_more(owner, "start-head", known), _fleet_step(owner, "start", when, known))
    head = _ec2_step(owner, "start-head", "startInstances", (owner.head,), when, known)
    return head, _fleet_step(owner, "start", when.shifted(FLEET_AFTER_MIN), known)


def _no_more(owner: Owner, verb: str, known: frozenset[str]) -> tuple[PowerStep, ...]:
    return delete_steps(owner, [name for name in (owner.prefix + verb,) if name in known])


def delete_steps(owner: Owner, names: Iterable[str]) -> tuple[PowerStep, ...]:
    """Take schedules back; only ours, by their names."""
    return tuple(_delete(owner, name) for name in names if name in owner.names)


def _delete(owner: Owner, name: str) -> PowerStep:
    order = AwsOrder("scheduler", "delete_schedule", {"Name": name}, owner.region)
    return aws_step(f"delete schedule {name}", order, (name,))


def _fleet_step(owner: Owner, verb: str, when: When, known: frozenset[str]) -> PowerStep:
    if owner.instances:
        return _ec2_step(owner, verb, f"{verb}Instances", owner.instances, when, known)
    action = "dynamodb:putItem" if owner.old_form else "dynamodb:updateItem"
    return _step(owner, verb, action, _fleet_request(owner, verb, when), when, known)


def _ec2_step(owner: Owner, verb: str, action: str, ids: Sequence[str], when: When, known: frozenset[str]) -> PowerStep:
    return _step(owner, verb, f"ec2:{action}", {"InstanceIds": list(ids)}, when, known)


def _fleet_request(owner: Owner, verb: str, when: When) -> dict[str, Any]:
    """The conditional write of the fleet item, with every state from which it is meant to happen."""
    stop = verb == "stop"
    new = {"S": "STOP_REQUESTED" if stop else "START_REQUESTED"}
    seen = {f":s{n}": {"S": state} for n, state in enumerate(_STOP_FROM if stop else _START_FROM)}
    among, key = f"IN ({', '.join(seen)})", {"Id": {"S": "COMPUTE_FLEET"}}
    if owner.old_form:
        item = {**key, "Status": new, "LastUpdatedTime": {"S": _stamp(when)}}
        return {"TableName": owner.scope.fleet_table, "Item": item, "ConditionExpression": f"#s {among}",
                "ExpressionAttributeNames": {"#s": "Status"}, "ExpressionAttributeValues": seen}  # fmt: skip
    names = {"#d": "Data", "#s": "status"}
    values, expression = {":new": new, **seen}, "SET #d.#s = :new"
    if not when.every:
        # A schedule that comes again cannot tell its time in the form that ParallelCluster reads; it leaves it.
        names, values = names | {"#t": "lastStatusUpdatedTime"}, values | {":now": {"S": _stamp(when)}}
        expression += ", #d.#t = :now"
    return {"TableName": owner.scope.fleet_table, "Key": key, "UpdateExpression": expression,
            "ConditionExpression": f"#d.#s {among}", "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values}  # fmt: skip


def _stamp(when: When) -> str:
    """The time as ParallelCluster writes it: UTC, with a space and an offset."""
    return str(when.first.astimezone(timezone.utc).replace(microsecond=1))


def _step(
    owner: Owner, verb: str, action: str, request: Mapping[str, Any], when: When, known: frozenset[str]
) -> PowerStep:
    name = owner.prefix + verb
    service, _, call = action.partition(":")
    wanted: dict[str, Any] = {
        "Name": name,
        "ScheduleExpression": when.expression,
        "ScheduleExpressionTimezone": when.zone,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "State": "ENABLED",
        "Description": f"{verb} of {owner.cluster}" + (f", by {owner.who}" if owner.who else "") + ", made by cockpit",
        "ActionAfterCompletion": "NONE" if when.every else "DELETE",
        "Target": {
            "Arn": f"arn:{partition_of(owner.region)}:scheduler:::aws-sdk:{service}:{call}",
            "RoleArn": owner.role,
            "Input": json.dumps(request),
            "RetryPolicy": _RETRY,
        },
    }
    method = "update_schedule" if name in known else "create_schedule"
    title = f"{'change' if name in known else 'make'} schedule {name}: {when.words}"
    return aws_step(title, AwsOrder("scheduler", method, wanted, owner.region), (name,))


def partition_of(region: str) -> str:
    """The part of AWS a region belongs to, as ARNs name it."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def parse_schedule(answer: Mapping[str, Any]) -> Scheduled:
    """One schedule of GetSchedule."""
    arn = str((answer.get("Target") or {}).get("Arn", ""))
    return Scheduled(
        printable(str(answer.get("Name", ""))),
        printable(str(answer.get("ScheduleExpression", ""))),
        printable(str(answer.get("ScheduleExpressionTimezone", ""))),
        printable(str(answer.get("State", ""))),
        printable(str(answer.get("Description", ""))),
        printable(arn.rpartition("aws-sdk:")[2]),
        target_of(answer),
    )


def target_of(schedule: Mapping[str, Any]) -> str:
    """What a schedule, made or to be made, is about: its table or its instances; "" when it does not tell."""
    try:
        sent = json.loads(str((schedule.get("Target") or {}).get("Input", "")))
    except ValueError:
        return ""
    if not isinstance(sent, dict):
        return ""
    return printable(str(sent.get("TableName") or ",".join(map(str, sent.get("InstanceIds") or ()))))


def still_running(jobs: Iterable[Job], at: float) -> tuple[Job, ...]:
    """Jobs that hold nodes now and may still then: whatever does is killed, since a schedule asks nobody."""
    return tuple(job for job in jobs if job.state in HOLDING and (job.ends_at is None or job.ends_at > at))


def role_policy(owner: Owner, account: str) -> dict[str, Any]:
    """What the schedules' role must allow, and nothing more."""
    part = partition_of(owner.region)
    statements = []
    if owner.scope.fleet_table and not owner.instances:
        table = f"arn:{part}:dynamodb:{owner.region}:{account}:table/{owner.scope.fleet_table}"
        action = "dynamodb:PutItem" if owner.old_form else "dynamodb:UpdateItem"
        statements.append({"Effect": "Allow", "Action": [action], "Resource": [table]})
    machines = [name for name in (owner.head, *owner.instances) if name]
    if machines:
        arns = [f"arn:{part}:ec2:{owner.region}:{account}:instance/{name}" for name in machines]
        actions = ["ec2:StartInstances", "ec2:StopInstances"]
        statements.append({"Effect": "Allow", "Action": actions, "Resource": arns})
    return {"Version": "2012-10-17", "Statement": statements}


def trust_policy() -> dict[str, Any]:
    """Who may take that role: EventBridge Scheduler alone."""
    who = {"Service": "scheduler.amazonaws.com"}
    statement = {"Effect": "Allow", "Principal": who, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}
