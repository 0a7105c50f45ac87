"""Wished states of nodes, as Slurm itself must tell them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actions.looks import kept_up, nodes_now, reservations
from actions.spec import Finding, Look
from cockpit.formats.node_state import judge
from cockpit.formats.scontrol_show import NodeDetail
from cockpit.formats.times import instant
from cockpit.joins import serves
from cockpit.models import NodeState
from cockpit.words import span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

QUICK_S = 30.0  # for what the controller does at once
REGISTER_S = 90.0  # a resumed node waits for its slurmd to register
_CLOCK_SLACK_S = 5.0
_WORKING = ("allocated", "mixed")


def _each(cluster: Cluster, names: Collection[str], see: Callable[[NodeDetail], Finding]) -> dict[str, Finding]:
    now = nodes_now(cluster, names)
    gone = Finding(Look.FAILED, "Slurm does not know this node any more")
    return {name: see(now[name]) if name in now else gone for name in names}


def _word(node: NodeDetail) -> str:
    return judge(node.state, node.reason)[0]


def _busy(node: NodeDetail) -> bool:
    return node.state.base in _WORKING or node.state.has("completing")


def _booted_after(node: NodeDetail, since: float) -> bool:
    at = instant(node.get("BootTime"))
    return at is not None and at >= since - _CLOCK_SLACK_S


def _going(state: NodeState) -> bool:
    return state.base == "down" or state.has("powering_down", "power_down")


@dataclass(frozen=True, slots=True)
class Drained:
    """The nodes take no new work; of those that were `out` before, down or on their way, only a drain proves it."""

    names: tuple[str, ...]
    out: tuple[str, ...] = ()
    deadline_s: float = QUICK_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return _each(cluster, self.names, self._see)

    def _see(self, node: NodeDetail) -> Finding:
        if node.state.has("drain", "fail"):
            return Finding(Look.DONE, "draining: its jobs run on" if _busy(node) else _word(node))
        if node.name not in self.out and _going(node.state):
            return Finding(Look.DONE, f"{_word(node)}: its instance is already on the way out")
        return Finding(Look.WAIT, _word(node))


@dataclass(frozen=True, slots=True)
class InService:
    """The nodes take work again."""

    names: tuple[str, ...]
    deadline_s: float = REGISTER_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return _each(cluster, self.names, self._see)

    def _see(self, node: NodeDetail) -> Finding:
        if serves(node.state):
            return Finding(Look.DONE, f"in service: {_word(node)}")
        if node.state.has("invalid_reg"):
            return Finding(Look.FAILED, f"slurmd registered less than is configured: {node.reason}")
        waits = node.state.has("not_responding") and not node.state.has("drain")
        return Finding(Look.WAIT, "waits for its slurmd to register" if waits else _word(node))


@dataclass(frozen=True, slots=True)
class Down:
    """The nodes are down; that one which was `off` before has no machine proves nothing."""

    names: tuple[str, ...]
    off: tuple[str, ...] = ()
    deadline_s: float = QUICK_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return _each(cluster, self.names, self._see)

    def _see(self, node: NodeDetail) -> Finding:
        gone = node.name not in self.off and node.state.has("powering_down", "powered_down")
        if node.state.base == "down" or gone:
            return Finding(Look.DONE, _word(node))
        return Finding(Look.WAIT, f"{_word(node)}: its slurmd may have brought it back (ReturnToService)")


@dataclass(frozen=True, slots=True)
class Up:
    """The nodes have an instance and their slurmd has registered."""

    names: tuple[str, ...]
    deadline_s: float

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        age = span(cluster.head_now() - since)
        return _each(cluster, self.names, lambda node: self._see(node, age))

    def _see(self, node: NodeDetail, age: str) -> Finding:
        if node.state.base == "down" or node.state.has("drain", "fail", "invalid_reg"):
            return Finding(Look.FAILED, f"{_word(node)}: {node.reason or 'Slurm tells no reason'}")
        if node.state.has("powering_up"):
            return Finding(Look.WAIT, "powering up")
        if node.state.has("power_up", "powered_down", "powering_down"):
            return Finding(Look.WAIT, "power-up asked for" if node.state.has("power_up") else _word(node))
        if node.state.has("not_responding"):
            return Finding(Look.WAIT, "waits for its slurmd to register")
        return Finding(Look.DONE, f"registered after {age}")


@dataclass(frozen=True, slots=True)
class PoweredDown:
    """The nodes' instances are given back."""

    names: tuple[str, ...]
    deadline_s: float

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return _each(cluster, self.names, self._see)

    def _see(self, node: NodeDetail) -> Finding:
        if node.state.has("powered_down"):
            return Finding(Look.DONE, "powered down")
        if _busy(node) and node.state.has("drain", "power_down"):
            return Finding(Look.UNDERWAY, "powers down when its jobs have ended")
        return Finding(Look.WAIT, _word(node))


@dataclass(frozen=True, slots=True)
class Rebooted:
    """The nodes have booted since, and take work again."""

    names: tuple[str, ...]
    deadline_s: float

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return _each(cluster, self.names, lambda node: self._see(node, since))

    def _see(self, node: NodeDetail, since: float) -> Finding:
        if "reboot timed out" in node.reason.casefold():
            return Finding(Look.FAILED, node.reason)
        rebooting = node.state.has("reboot_requested", "reboot_issued")
        if not rebooting and serves(node.state) and _booted_after(node, since):
            return Finding(Look.DONE, f"rebooted, {_word(node)}")
        if node.state.has("reboot_requested") and _busy(node):
            return Finding(Look.UNDERWAY, "reboots when its jobs have ended")
        return Finding(Look.WAIT, _word(node))


@dataclass(frozen=True, slots=True)
class Renewed:
    """The nodes' instances are replaced: powered down, or (`back`) up again with a new one."""

    names: tuple[str, ...]
    deadline_s: float
    back: bool

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return _each(cluster, self.names, lambda node: self._see(node, since))

    def _see(self, node: NodeDetail, since: float) -> Finding:
        leaving = node.state.has("powering_down", "powered_down")
        if leaving and not self.back:
            return Finding(Look.DONE, f"{_word(node)}: the next power-up brings a fresh instance")
        out = node.state.has("drain", "fail", "power_down")
        if _busy(node) and out:
            return Finding(Look.UNDERWAY, "replaced when its jobs have ended")
        if self.back and not out and not leaving and serves(node.state) and _booted_after(node, since):
            return Finding(Look.DONE, f"back with a new boot, {_word(node)}")
        return Finding(Look.WAIT, f"{_word(node)}{f': {node.reason}' if node.reason else ''}")


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The nodes carry the reason that the kind's own agent watches for; what it does takes its own time."""

    names: tuple[str, ...]
    reason: str
    deadline_s: float = QUICK_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return _each(cluster, self.names, lambda node: self._see(node, since))

    def _see(self, node: NodeDetail, since: float) -> Finding:
        if serves(node.state) and _booted_after(node, since):
            return Finding(Look.DONE, f"back with a new boot, {_word(node)}")
        if (node.state.has("fail") or node.state.base == "down") and node.reason == self.reason:
            return Finding(Look.UNDERWAY, f"marked {self.reason}; the agent takes over once its jobs have ended")
        return Finding(Look.WAIT, _word(node))


@dataclass(frozen=True, slots=True)
class Reserved:
    """Each node is (`there`) or is not held by the reservation of that name."""

    names: tuple[str, ...]
    held_by: tuple[tuple[str, str], ...]  # (node, reservation)
    there: bool = True
    deadline_s: float = QUICK_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        known, found = reservations(cluster), {}
        for node, name in self.held_by:
            active = name in known and (known[name].active or not self.there)
            text = f"held by reservation {name}" if name in known else f"no reservation {name}"
            found[node] = Finding(Look.DONE if active == self.there else Look.WAIT, text)
        return found


@dataclass(frozen=True, slots=True)
class KeptUp:
    """The nodes are (`there`) or are not in SuspendExcNodes."""

    names: tuple[str, ...]
    there: bool = True
    deadline_s: float = QUICK_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        kept = kept_up(cluster)
        return {
            name: Finding(
                Look.DONE if (name in kept) == self.there else Look.WAIT,
                "stays up when idle" if name in kept else "powers down when idle",
            )
            for name in self.names
        }
