"""Stopping and starting the EC2 instances under a plain Slurm cluster: drained first, the head last."""

from __future__ import annotations

from collections.abc import Collection

from cockpit.fleet_power import (
    How,
    PowerLook,
    PowerPlan,
    PowerStep,
    cannot_stop,
    instance_steps,
    public_address_warning,
    types_of,
    wait_step,
)
from cockpit.formats.hostlist import fold
from cockpit.words import plural

REASON = "stopped by cockpit"
_UNREAD = "the instances could not be read (ec2:DescribeInstances)"


def stop(look: PowerLook, how: How, *, head: bool) -> PowerPlan:
    """Drain, wait for the jobs when asked to, stop the nodes' instances, and the head at the end."""
    title = "stop the compute instances" + (" and the head node" if head else "")
    if look.reading.instances.data is None or look.reading.instances.fault is not None:
        return PowerPlan(title, refusal=look.reading.scope.hint or _UNREAD)
    owned = {name: i for name, i in look.joined.of_node.items() if i.role != "head" and i.billed}
    able = {name: i for name, i in owned.items() if not cannot_stop(i)}
    left = [(i.id, why) for i in owned.values() if (why := cannot_stop(i))]
    left += [(i.id, "no node of this cluster stands on it") for i in look.joined.orphans if i.role == ""]
    steps: list[PowerStep] = []
    if able:
        steps += _drain(look, able)
        if how is How.AFTER_JOBS:
            steps.append(wait_step("wait until no job runs", "jobs"))
        ids = [i.id for i in able.values()]
        steps += instance_steps("stop", ids, look.region, "compute instances")
        steps.append(wait_step("wait until they are stopped", "instances", "stopped", *ids))
    steps += _head_off(look, blocked=bool(left)) if head else []
    if not steps:
        return PowerPlan(title, done="no instance of a node runs", left_out=tuple(left))
    effects = (f"{plural(len(able), 'instance')} stopped: {types_of(able.values())}",)
    return PowerPlan(title, tuple(steps), effects, _lost(look, how), _warnings(look, left, head=head), tuple(left))


def _drain(look: PowerLook, names: Collection[str]) -> list[PowerStep]:
    """Whatever still takes work: what is drained keeps its reason, by which a start knows that it is not ours."""
    ours = [node.name for node in look.nodes if node.name in names and not node.state.has("drain", "fail")]
    if not ours:
        return []
    hosts = fold(ours)
    argv = ("scontrol", "update", f"NodeName={hosts}", "State=DRAIN", f"Reason={REASON}")
    return [PowerStep(f"drain {hosts}", argv, "head", subjects=tuple(ours))]


def _head_off(look: PowerLook, *, blocked: bool) -> list[PowerStep]:
    machine = look.head
    if machine is None or not machine.billed or blocked:
        return []
    off = wait_step("wait until the head is stopped", "instances", "stopped", machine.id)
    return [*instance_steps("stop", [machine.id], look.region, "head node"), off]


def _lost(look: PowerLook, how: How) -> tuple[str, ...]:
    told = ["everything on the nodes' own disks is gone (instance store, /scratch)"]
    if how is How.NOW and any(job.state == "R" for job in look.jobs):
        told.insert(0, "running jobs die with their nodes; Slurm requeues those that allow it")
    return tuple(told)


def _warnings(look: PowerLook, left: Collection[object], *, head: bool) -> tuple[str, ...]:
    told = ["a stopped GPU instance may not get its capacity back when it is started"]
    told.append("if the cockpit ends before they are stopped, the nodes stay drained: `cockpit resume NODES`")
    machine = look.head
    if head and machine is not None and left:
        told.append("the head stays on, since what is left out goes on running")
    elif head and machine is not None:
        told += public_address_warning(machine)
    if head and machine is None:
        told.append("which instance the head is, is not known: it stays on")
    return tuple(told)


def start(look: PowerLook) -> PowerPlan:
    """The head first, then every stopped instance of a node, which then takes work again."""
    title = "start the compute instances"
    if look.reading.instances.data is None or look.reading.instances.fault is not None:
        return PowerPlan(title, refusal=look.reading.scope.hint or _UNREAD)
    off = {name: i for name, i in look.joined.of_node.items() if i.state == "stopped" and i.role != "head"}
    steps: list[PowerStep] = []
    machine = look.head
    if machine is not None and machine.state == "stopped":
        steps += instance_steps("start", [machine.id], look.region, "head node")
        steps.append(wait_step("wait until EC2 finds the head healthy", "instances", "ok", machine.id))
        steps.append(wait_step("wait until the head answers over SSH", "ssh"))
    if off:
        ids = [i.id for i in off.values()]
        steps += instance_steps("start", ids, look.region, "compute instances")
        steps.append(wait_step("wait until EC2 finds them healthy", "instances", "ok", *ids))
        steps += _resume(look, list(off))
    if not steps:
        return PowerPlan(title, done="no instance of a node is stopped")
    if not off:
        told = "the head alone" + ("" if look.nodes else ": which are its nodes Slurm tells after that")
        return PowerPlan(title, tuple(steps), (told,), (), () if look.nodes else ("start once more when it is up",))
    effects = (f"{plural(len(off), 'instance')} started: {types_of(off.values())}",)
    return PowerPlan(title, tuple(steps), effects, (), ("EC2 may have no capacity for them now",))


def _resume(look: PowerLook, names: list[str]) -> list[PowerStep]:
    """Only what the stop has drained: another reason is somebody else's."""
    ours = [node.name for node in look.nodes if node.name in names and node.reason.startswith(REASON)]
    if not ours:
        return []
    hosts = fold(ours)
    argv = ("scontrol", "update", f"NodeName={hosts}", "State=RESUME")
    return [PowerStep(f"let {hosts} take jobs again", argv, "head", subjects=tuple(ours))]
