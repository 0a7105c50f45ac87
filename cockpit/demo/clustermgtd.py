"""What ParallelCluster's daemons on the head do with the fleet's item in DynamoDB, done to the simulated Slurm."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.demo import changes
from cockpit.demo.machines import Power
from cockpit.demo.sim import Simulation

_HELD = (Power.UP, Power.STARTING)


def instances(sim: Simulation) -> Mapping[str, str]:
    """Nodes that have an instance now, with its private address; one that powers down has lost it already."""
    return {node.name: node.own_address for node in sim.nodes.values() if node.power in _HELD}


def follow(sim: Simulation, status: str) -> str:
    """Do what this status asks for; returns the status that is written next, the same when there is none."""
    with sim.current():
        if status == "STOP_REQUESTED":
            _stop(sim)
            return "STOPPING"
        if status == "STOPPING":
            return status if instances(sim) else "STOPPED"
        if status == "START_REQUESTED":
            _start(sim)
            return "STARTING"
        return "RUNNING" if status == "STARTING" else status


def _queues(sim: Simulation) -> list[str]:
    return sorted({name for node in sim.nodes.values() for name in node.partitions})


def _stop(sim: Simulation) -> None:
    """Queues INACTIVE, then every instance given back, whatever runs on it."""
    for name in _queues(sim):
        changes.set_queue(sim, name, "INACTIVE")
    for node in sim.nodes.values():
        if node.power in _HELD:
            changes.power_down_force(sim, node)


def _start(sim: Simulation) -> None:
    """Queues UP, also those that somebody had closed, and new instances for the static nodes."""
    for name in _queues(sim):
        changes.set_queue(sim, name, "UP")
    for node in sim.nodes.values():
        if node.static and node.power not in _HELD:
            node.down = node.drain = node.failing = False
            sim.power_up(node)
