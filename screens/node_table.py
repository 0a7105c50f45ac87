"""The columns of the nodes pane: pure functions from a node to a cell. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cockpit.cluster import View
from cockpit.joins import awaited, reason_applies
from cockpit.models import Health, Job, Node
from cockpit.words import MISSING, count, mib, span
from screens.grid_model import Cell, Column
from themes import state_token

_RANK = {health: rank for rank, health in enumerate(Health)}


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Columns and filter fields over nodes. `view` and `now` are asked when a cell is drawn, never kept."""

    view: Callable[[], View]
    now: Callable[[], float]
    origin: Callable[[str], str]
    trusts_queue: Callable[[], bool]

    def columns(self) -> tuple[Column[Node], ...]:
        """Every column, in order; the narrowest screen keeps name, state and reason."""
        return (
            Column("node", "node", lambda n: n.name, _by_name, 8, 40),
            Column("state", "state", _state, lambda n: -_RANK[n.health], 10, 24, note="sorts worst first"),
            Column("queue", "queue", _queues, lambda n: sorted(n.partitions), 9, 30, drop=8, cut=True),
            Column("gpus", "gpus", _gpus, lambda n: n.gpus_used, 4, 7, "right", 2, down_first=True,
                   note="in use, of all"),
            Column("jobs", "jobs", self._jobs, self._job_order, 6, 22, drop=3, live=True, note="what runs on it"),
            Column("cpus", "cpus", _cpus, lambda n: n.cpus_used, 5, 9, "right", 7, down_first=True,
                   note="in use, of all"),
            Column("load", "load", _load, lambda n: n.cpu_load, 5, 7, "right", 9, down_first=True,
                   note="processes that want to run"),
            Column("mem", "mem used", _memory, lambda n: n.mem_used_mib, 6, 11, "right", 8, down_first=True,
                   note="in use, of all"),
            Column("since", "since", self._since, lambda n: n.reason_at, 5, 7, "right", 5, live=True,
                   note="when the reason was set"),
            Column("reason", "reason", self._reason, lambda n: n.reason or None, 22, 90, drop=1, cut=True,
                   note="why it is out of service, or was"),
            Column("by", "by", lambda n: n.reason_by or MISSING, lambda n: n.reason_by or None, 4, 16, wide=True,
                   note="who set the reason"),
            Column("type", "gpu type", lambda n: n.gpu_type or MISSING, lambda n: n.gpu_type, 6, 20, wide=True),
            Column("origin", "origin", lambda n: self.origin(n.name) or MISSING, None, 6, 8, wide=True,
                   note="static, or made when needed"),
            Column("address", "address", lambda n: n.address or MISSING, lambda n: n.address, 8, 28, wide=True),
            Column("version", "slurm", lambda n: n.version or MISSING, lambda n: n.version, 7, 12, wide=True,
                   note="of its slurmd"),
            Column("reservation", "reservation", lambda n: n.reservation or MISSING, None, 8, 24, wide=True, cut=True),
            Column("features", "features", lambda n: ",".join(n.features) or MISSING, None, 8, 40, wide=True, cut=True),
            Column("comment", "comment", lambda n: n.comment or MISSING, None, 8, 60, wide=True, cut=True),
        )  # fmt: skip

    def fields(self) -> Mapping[str, Callable[[Node], str]]:
        """What `field:value` in a filter may name."""
        return {
            "node": lambda n: n.name,
            "state": lambda n: f"{n.word} {n.state.base} {' '.join(sorted(n.state.flags))}",
            "queue": lambda n: " ".join(n.partitions),
            "gpu": lambda n: n.gpu_type,
            "reason": lambda n: n.reason,
            "by": lambda n: n.reason_by,
            "job": lambda n: " ".join(job.label for job in self._held(n)),
            "user": lambda n: " ".join(job.user for job in self._held(n)),
            "reservation": lambda n: n.reservation,
            "feature": lambda n: " ".join(n.features),
            "address": lambda n: n.address,
        }

    def _held(self, node: Node) -> tuple[Job, ...]:
        return self.view().jobs_of_node.get(node.name, ())

    def _jobs(self, node: Node) -> Cell:
        if self.view().queue is None:
            return MISSING, "dim"
        held = self._held(node)
        token = "" if self.trusts_queue() else "stale"
        if len(held) > 1:
            return f"{len(held)} jobs", token
        return (f"{held[0].label} {held[0].user}" if held else ""), token

    def _job_order(self, node: Node) -> int | None:
        held = self._held(node)
        return held[0].job_id if held else None

    def _reason(self, node: Node) -> Cell:
        """Who is between two states has no reason of its own: what ends that stands there."""
        name, limit_s = awaited(node, self.view().site)
        if node.reason or not name:
            return _reason_set(node)
        return f"{span(limit_s)} at most ({name})" if limit_s else f"until {name} is over", "dim"

    def _since(self, node: Node) -> Cell:
        return span(self.now() - node.reason_at) if node.reason_at and reason_applies(node) else ""


def _by_name(node: Node) -> tuple[str, int]:
    head = node.name.rstrip("0123456789")
    digits = node.name[len(head) :]
    return head, int(digits) if digits else -1


def _state(node: Node) -> Cell:
    return node.word, state_token(node.health)


def _queues(node: Node) -> Cell:
    return ",".join(sorted(node.partitions))  # Slurm's own order changes from answer to answer


def _gpus(node: Node) -> Cell:
    if node.gpus_total is None:
        return "", "dim"
    return f"{count(node.gpus_used)}/{node.gpus_total}"


def _cpus(node: Node) -> Cell:
    return f"{count(node.cpus_used)}/{count(node.cpus_total)}"


def _load(node: Node) -> Cell:
    return MISSING if node.cpu_load is None else f"{node.cpu_load:.1f}"


def _memory(node: Node) -> Cell:
    return f"{mib(node.mem_used_mib)}/{mib(node.mem_mib)}"


def _reason_set(node: Node) -> Cell:
    # From Slurm 23.11 on a healthy node keeps the text of an old drain: shown, but not as trouble.
    return node.reason, "" if reason_applies(node) else "dim"
