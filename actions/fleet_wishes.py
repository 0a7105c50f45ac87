"""Wished states of a whole cluster, as DynamoDB, EC2 and Slurm tell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from actions.spec import Finding, Look
from cockpit.fleet_power import GONE_S, IN_PROGRESS_S, PICKED_UP_S, Outcome
from cockpit.power_looks import started, stopped

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

STOP_S = PICKED_UP_S + IN_PROGRESS_S + GONE_S
BOOT_S = 1800.0  # a GPU node's first boot; ParallelCluster's own limit is not shorter


def _finding(outcome: Outcome) -> Finding:
    left = f": {', '.join(outcome.left[:5])}" if outcome.left else ""
    if outcome.done:
        return Finding(Look.DONE, outcome.text)
    return Finding(Look.FAILED if outcome.failed else Look.WAIT, outcome.text + left)


@dataclass(frozen=True, slots=True)
class Stopped:
    """STOPPED by DynamoDB and no compute instance by EC2."""

    names: tuple[str, ...]
    deadline_s: float = STOP_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return dict.fromkeys(self.names, _finding(stopped(cluster)))


@dataclass(frozen=True, slots=True)
class Started:
    """RUNNING, with every static node answering Slurm."""

    names: tuple[str, ...]
    deadline_s: float = PICKED_UP_S + IN_PROGRESS_S + BOOT_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        return dict.fromkeys(self.names, _finding(started(cluster)))
