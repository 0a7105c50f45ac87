"""Stopping and starting a ParallelCluster: the fleet by its DynamoDB item, the head by EC2 and only when it is safe."""

from __future__ import annotations

from cockpit.fleet_orders import Wish, decide
from cockpit.fleet_power import (
    How,
    PowerLook,
    PowerPlan,
    PowerStep,
    aws_step,
    instance_steps,
    public_address_warning,
    queue_steps,
    types_of,
    wait_step,
)
from cockpit.words import plural

_UNKNOWN_HEAD = (
    "which instance the head is, could not be read (ec2:DescribeInstances): without the head the fleet can be stopped"
)
_UNREAD_FLEET = "the fleet status could not be read, so nothing is ordered (dynamodb:GetItem)"


def stop(look: PowerLook, how: How, *, head: bool) -> PowerPlan:
    """The fleet, and the head with it when asked for."""
    fleet = look.reading.fleet.data
    title = f"stop {look.reading.scope.stack}" + (" and its head node" if head else "")
    if fleet is None or look.reading.fleet.fault is not None:
        return PowerPlan(title, refusal=_UNREAD_FLEET)
    decision = decide(Wish.STOP, fleet, look.reading.stack.data, look.reading.scope)
    if decision.refusal:
        return PowerPlan(title, refusal=decision.refusal)
    if head and look.head is None:
        return PowerPlan(title, refusal=_UNKNOWN_HEAD)
    steps: list[PowerStep] = []
    if decision.order is not None:
        if how is How.AFTER_JOBS:
            steps += queue_steps(look.queues, "DOWN")
            steps.append(wait_step("wait until no job runs", "jobs"))
        steps.append(aws_step("ask ParallelCluster to stop the fleet", decision.order, (look.reading.scope.stack,)))
    if fleet.status != Wish.STOP.end:
        steps.append(wait_step("wait until the fleet is STOPPED", "fleet", "STOPPED"))
        steps.append(wait_step("wait until EC2 has no compute instance left", "gone"))
    if head:
        steps += _head_off(look, already_stopped=fleet.status == Wish.STOP.end)
    if not steps:
        return PowerPlan(title, done=decision.done)
    return PowerPlan(title, tuple(steps), _effects(look), _lost(look, how), _warnings(look, how, head=head))


def _head_off(look: PowerLook, *, already_stopped: bool) -> list[PowerStep]:
    machine = look.head
    if machine is None or not machine.billed:
        return []
    first = [wait_step("make sure that EC2 has no compute instance", "gone")] if already_stopped else []
    return [
        *first,
        *instance_steps("stop", [machine.id], look.region, "head node"),
        wait_step("wait until the head is stopped", "instances", "stopped", machine.id),
    ]


def _effects(look: PowerLook) -> tuple[str, ...]:
    found = look.compute
    if look.reading.instances.data is None:
        return ("every compute instance terminated; which run could not be read (ec2:DescribeInstances)",)
    return (f"{plural(len(found), 'compute instance')} terminated: {types_of(found)}" if found else "no compute runs",)


def _lost(look: PowerLook, how: How) -> tuple[str, ...]:
    told = []
    if how is How.NOW and any(job.state == "R" for job in look.jobs):
        told.append("running jobs are killed, or requeued where they allow it; nothing waits for them")
    if look.compute or look.reading.instances.data is None:
        told.append("everything on the nodes' own disks is gone (instance store, /scratch)")
    return tuple(told)


def _warnings(look: PowerLook, how: How, *, head: bool) -> tuple[str, ...]:
    told = []
    fleet, machine = look.reading.fleet.data, look.head
    if look.reading.stack.data is None:
        told.append("the stack could not be read (cloudformation:DescribeStacks): an update may be running")
    if fleet is not None and fleet.status == "PROTECTED":
        told.append("the fleet is PROTECTED: the cause of the boot failures stays")
    if fleet is not None and fleet.status in Wish.START.under_way:
        told.append(f"the fleet is {fleet.status}: this turns an unfinished start round")
    if how is How.AFTER_JOBS:
        told.append("queues stay closed until the next start; this waits here, and ends when the cockpit ends")
        told.append("if it ends before the fleet is stopped, open each again: `cockpit queue up NAME`")
        told.append("for a stop that needs no open cockpit: `cockpit stop --at`")
    if head and machine is not None:
        told += public_address_warning(machine)
        told.append("login nodes and everything that mounts the head's disks hang while it is off")
        told.append("EBS, FSx, Elastic IPs and NAT go on costing money")
    return tuple(told)


def start(look: PowerLook) -> PowerPlan:
    """The head first when it is off, then the fleet; ends when it runs and its static nodes are up."""
    title = f"start {look.reading.scope.stack}"
    fleet = look.reading.fleet.data
    if fleet is None or look.reading.fleet.fault is not None:
        return PowerPlan(title, refusal=_UNREAD_FLEET)
    decision = decide(Wish.START, fleet, look.reading.stack.data, look.reading.scope)
    if decision.refusal:
        return PowerPlan(title, refusal=decision.refusal)
    steps = _head_on(look)
    if decision.order is not None:
        steps.append(aws_step("ask ParallelCluster to start the fleet", decision.order, (look.reading.scope.stack,)))
    if fleet.status != Wish.START.end:
        steps.append(wait_step("wait until the fleet is RUNNING", "fleet", "RUNNING"))
    if not steps:
        return PowerPlan(title, done=decision.done + _closed(look))
    return PowerPlan(title, tuple(steps), _start_effects(look), (), _start_warnings(look))


def _closed(look: PowerLook) -> str:
    """What an interrupted stop leaves behind in a fleet that runs."""
    closed = look.closed_queues
    return f"; closed are the queues {', '.join(closed)}: `cockpit queue up NAME` opens one" if closed else ""


def _head_on(look: PowerLook) -> list[PowerStep]:
    machine = look.head
    if machine is None or machine.state not in ("stopped", "stopping"):
        return []
    off = [wait_step("wait until the head is stopped", "instances", "stopped", machine.id)]
    return [
        *(off if machine.state == "stopping" else []),
        *instance_steps("start", [machine.id], look.region, "head node"),
        wait_step("wait until EC2 finds the head healthy", "instances", "ok", machine.id),
        wait_step("wait until the head answers over SSH", "ssh"),
    ]


def _start_effects(look: PowerLook) -> tuple[str, ...]:
    static = [node for node in look.nodes if "-st-" in node.name]
    if not static:
        return ()
    return (f"{plural(len(static), 'static node')} start at once and cost money until the next stop",)


def _start_warnings(look: PowerLook) -> tuple[str, ...]:
    told = []
    closed = look.closed_queues
    if closed:
        told.append(f"a start opens every queue again, also {', '.join(closed)}, which somebody has closed")
    fleet, machine = look.reading.fleet.data, look.head
    if fleet is not None and fleet.status == "PROTECTED":
        told.append("the fleet is PROTECTED: unless the cause is mended it falls back")
    if fleet is not None and fleet.status in Wish.STOP.under_way:
        told.append(f"the fleet is {fleet.status}: this turns an unfinished stop round")
    if machine is not None and machine.state in ("stopped", "stopping"):
        told.append("the head may come back with another public address")
    return tuple(told)
