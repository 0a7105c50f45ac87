"""What an operator's commands do to the simulated cluster; each raises Denied with Slurm's own words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from cockpit.demo.jobs import SimJob
from cockpit.demo.machines import Power, SimNode

if TYPE_CHECKING:
    from cockpit.demo.sim import Simulation

REGISTER_S = 1.0  # until a resumed node's slurmd has registered
REBOOT_S = (60.0, 110.0)
REQUEUE_WAIT_S = 120.0
NO_STATE = "Invalid node state specified"


class Denied(Exception):  # noqa: N818 - Slurm's words, no fault of ours
    """Slurm refuses; str() is the text behind its `error:`."""


# -- nodes


def note(sim: Simulation, node: SimNode, reason: str) -> None:
    """Write a reason with its stamp; root's, since every change goes through sudo."""
    node.reason, node.reason_by, node.reason_at = reason, "root", sim.now


def drain(sim: Simulation, node: SimNode) -> None:
    node.drain = True
    sim.poke()


def undrain(sim: Simulation, node: SimNode) -> None:
    node.drain = False
    sim.poke()


def resume(sim: Simulation, node: SimNode) -> None:
    """Back into service; a node whose slurmd answered registers in a moment."""
    if not (node.drain or node.down or node.failing or node.leaving or node.reboot):
        raise Denied(NO_STATE)
    node.drain = node.down = node.failing = node.leaving = False
    node.reboot = node.reason = node.reason_by = ""
    node.reason_at = None
    if node.power is Power.UP and node.responding:
        node.responding = False
        sim.at(sim.now + REGISTER_S, lambda: _registered(sim, node))


def _registered(sim: Simulation, node: SimNode) -> None:
    node.responding = node.power is not Power.STARTING
    if not node.shares:
        sim.rest(node)
    sim.poke()


def down(sim: Simulation, node: SimNode) -> None:
    clear(sim, node)
    node.down = True


def fail(sim: Simulation, node: SimNode) -> None:
    node.failing = True


def clear(sim: Simulation, node: SimNode) -> None:
    """Its jobs are killed on all of their nodes and wait again."""
    for job_id in list(node.shares):
        requeue(sim, sim.jobs[job_id])


def power_up(sim: Simulation, node: SimNode) -> None:
    """Accepted again and again; only a node without an instance gets one."""
    if node.power is Power.DOWN:
        sim.power_up(node)


def power_down(sim: Simulation, node: SimNode, *, asap: bool = False) -> None:
    """At once when idle; a busy one runs its jobs to the end, with `asap` it gets no new ones."""
    if node.power is not Power.UP:
        return
    if asap:
        node.reason, node.reason_by, node.reason_at = "POWER_DOWN_ASAP", "4294967294", sim.now
    if not (node.shares or node.completing):
        sim.power_down(node)
        return
    node.leaving, node.drain = True, node.drain or asap


def power_down_force(sim: Simulation, node: SimNode) -> None:
    clear(sim, node)
    if node.power in (Power.UP, Power.STARTING):
        sim.power_down(node)


def reboot(sim: Simulation, node: SimNode) -> None:
    """When its jobs have ended; nothing happens to a node without an instance, as in Slurm."""
    if node.power is not Power.UP:
        return
    node.reboot = "requested"
    at_rest(sim, node)


def cancel_reboot(sim: Simulation, node: SimNode) -> None:
    if node.reboot != "requested":
        raise Denied(NO_STATE)
    node.reboot = node.reason = ""
    sim.poke()


def at_rest(sim: Simulation, node: SimNode) -> bool:
    """A node has no job left: what was asked for and waited for that begins now; False when nothing was."""
    if node.shares or node.completing or node.power is not Power.UP:
        return False
    if node.leaving:
        sim.power_down(node)
        return True
    if node.reboot == "requested":
        node.reboot, node.responding = "issued", False
        node.reason = f"{node.reason or 'Reboot ASAP'} : reboot issued"
        sim.at(sim.now + sim.rng.uniform(*REBOOT_S), lambda: _rebooted(sim, node))
        return True
    return bool(node.reboot)


def _rebooted(sim: Simulation, node: SimNode) -> None:
    if node.reboot != "issued":
        return
    node.reboot = node.reason = ""
    node.responding, node.boot_at = True, sim.now
    sim.rest(node)
    sim.poke()


def let_power_down(sim: Simulation, node: SimNode) -> None:
    """It is no longer kept up: one that idles begins to count."""
    if node.idle_since is not None and not node.static:
        sim.rest(node)


# -- jobs


def part_of(sim: Simulation, job: SimJob, tasks: Iterable[int]) -> SimJob:
    """Waiting array tasks split off into a record of their own; the whole record when these are all."""
    chosen = [task for task in job.rest if task in set(tasks)]
    if len(chosen) == len(job.rest):
        return job
    job.rest = [task for task in job.rest if task not in chosen]
    own = SimJob(sim.new_id(), job.ask, job.submitted_at, priority=job.priority)
    own.array_job_id, own.reason = job.array_job_id, job.reason
    own.rest = chosen if len(chosen) > 1 else []
    own.task = None if own.rest else chosen[0]
    sim.jobs[own.job_id] = own
    return own


def cancel(sim: Simulation, job: SimJob) -> None:
    """A waiting job is gone at once, a running one ends through its epilog."""
    if job.state == "RUNNING":
        sim.finish(job, "CANCELLED")
    elif job.state == "PENDING":
        job.ended_at = sim.now
        sim.record_end(job, "CANCELLED")
        sim.poke()


def hold(sim: Simulation, job: SimJob, by: str) -> None:
    """`by` is admin or user; a running job is accepted and runs on."""
    if job.state != "PENDING":
        return
    job.ask, job.priority = replace(job.ask, held=by), 0
    job.reason = "JobHeldAdmin" if by == "admin" else "JobHeldUser"


def release(sim: Simulation, job: SimJob) -> None:
    if job.state != "PENDING":
        return
    job.ask, job.priority, job.reason = replace(job.ask, held=""), job.ask.priority - job.nice, "None"
    sim.poke()


def requeue(sim: Simulation, job: SimJob, *, held: bool = False) -> None:
    """Stop a run; the job waits again, for two minutes at least."""
    if job.state == "PENDING":
        raise Denied("Job is pending execution")
    if job.state != "RUNNING":
        raise Denied("Job/step already completing or completed")
    sim.stop_run(job, lambda: _waits_again(sim, job, held))


def _waits_again(sim: Simulation, job: SimJob, held: bool) -> None:
    job.state, job.hosts, job.gpus, job.configuring = "PENDING", (), {}, False
    job.started_at = job.ended_at = job.eligible_at = None
    job.restarts += 1
    job.not_before = sim.now + REQUEUE_WAIT_S
    job.reason = "BeginTime"
    sim.at(job.not_before, sim.poke)
    if held:
        hold(sim, job, "user")


def top(sim: Simulation, job: SimJob) -> None:
    waiting = [other for other in sim.jobs.values() if other.state == "PENDING" and other.ask.user == job.ask.user]
    if job.state == "PENDING" and not job.ask.held:
        job.priority = max(other.priority for other in waiting) + 1


def set_nice(sim: Simulation, job: SimJob, nice: int) -> None:
    job.nice = nice
    if not job.ask.held:
        job.priority = max(1, job.ask.priority - nice)
    sim.poke()


# -- queues and reservations


def set_queue(sim: Simulation, name: str, state: str) -> None:
    if state == "UP":
        sim.queue_states.pop(name, None)
    else:
        sim.queue_states[name] = state
    sim.poke()


def end_reservation(sim: Simulation, name: str) -> None:
    for node in sim.reservations.pop(name).nodes:
        sim.nodes[node].reservations.pop(name, None)
    sim.poke()
