"""One line a cluster, for whoever is on call for several. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cockpit import joins
from cockpit.cluster import Cluster
from cockpit.models import Freshness, Health, Problem
from cockpit.sources.slurm import NODES, QUEUE
from cockpit.store import SourceState

_ORDER = list(Health)


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """A cluster at a glance; what was not read is None. `age_s` is that of the older of nodes and queue."""

    name: str
    head: str
    region: str
    kind: str
    production: bool
    read_only: bool
    health: Health
    worst: Problem | None
    problems: int
    nodes: int | None
    nodes_bad: int | None
    gpus: joins.GpuCounts
    running: int | None
    pending: int | None
    freshness: Freshness
    age_s: float | None


def cluster_line(cluster: Cluster) -> ClusterLine:
    """What is known of one cluster now."""
    config, view, problems = cluster.config, cluster.view, cluster.problems()
    steady = cluster.clock.steady()
    states: list[SourceState[Any]] = [cluster.store.state(NODES), cluster.store.state(QUEUE)]
    ages = [state.age_s(steady) for state in states]
    freshness = max((state.freshness(steady) for state in states), key=list(Freshness).index)
    worst = max(problems, key=lambda problem: _ORDER.index(problem.health), default=None)
    nodes = view.nodes
    by_state = view.queue.by_state if view.queue else None
    return ClusterLine(
        name=config.name,
        head=config.head,
        region=config.region or "",
        kind=cluster.kind.title if cluster.kind else "",
        production=config.production,
        read_only=cluster.read_only,
        health=_health(worst, freshness),
        worst=worst,
        problems=len(problems),
        nodes=None if nodes is None else len(nodes),
        nodes_bad=None if nodes is None else sum(1 for node in nodes if node.health is not Health.OK),
        gpus=view.gpus,
        running=None if by_state is None else by_state.get("R", 0),
        pending=None if by_state is None else by_state.get("PD", 0),
        freshness=freshness,
        age_s=None if None in ages else max(age for age in ages if age is not None),
    )


def _health(worst: Problem | None, freshness: Freshness) -> Health:
    if worst is not None:
        return worst.health
    return Health.OK if freshness is Freshness.LIVE else Health.UNKNOWN
