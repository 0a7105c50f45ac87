"""The columns of the line-up of clusters: pure functions from a line to a cell. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cockpit.lineup import ClusterLine
from cockpit.models import Freshness, Health
from cockpit.words import MISSING, count, span
from screens.grid_model import Cell, Column
from themes import state_token

_RANK = {health: rank for rank, health in enumerate(Health)}

FIELDS: Mapping[str, Callable[[ClusterLine], str]] = {
    "cluster": lambda line: line.name,
    "region": lambda line: line.region,
    "kind": lambda line: line.kind,
    "problem": lambda line: f"{line.worst.subject} {line.worst.title}" if line.worst else "",
}


def columns() -> tuple[Column[ClusterLine], ...]:
    """Every column, in order; the narrowest screen keeps name, worst problem and age."""
    return (
        Column("cluster", "cluster", _name, lambda c: c.name, 8, 30),
        Column("worst", "worst problem", _worst, lambda c: -_RANK[c.health], 40, 70, cut=True),
        Column("problems", "problems", lambda c: str(c.problems or ""), lambda c: c.problems, 8, 8, "right", 4),
        Column("nodes", "nodes", _nodes, lambda c: c.nodes, 5, 12, "right", 2),
        Column("gpus", "GPUs used", _gpus, lambda c: c.gpus.allocated, 9, 11, "right", 3),
        Column("running", "running", lambda c: count(c.running), lambda c: c.running, 7, 7, "right", 5),
        Column("pending", "pending", lambda c: count(c.pending), lambda c: c.pending, 7, 7, "right", 6),
        Column("age", "read", _age, lambda c: c.age_s, 5, 10, "right"),
        Column("kind", "kind", lambda c: c.kind or MISSING, lambda c: c.kind, 6, 16, drop=7),
        Column("region", "region", lambda c: c.region, lambda c: c.region, 9, 14, drop=8),
        Column("head", "head", lambda c: c.head, lambda c: c.head, 8, 40, drop=9, cut=True),
    )


def _name(line: ClusterLine) -> Cell:
    marks = " READ-ONLY" if line.read_only else ""
    return f"{line.name}{marks}", "production" if line.production else ""


def _worst(line: ClusterLine) -> Cell:
    if line.worst is None:
        return ("", "") if line.freshness is Freshness.LIVE else ("reading …", "dim")
    return f"{line.worst.subject}: {line.worst.title}", state_token(line.health)


def _nodes(line: ClusterLine) -> Cell:
    if line.nodes is None:
        return MISSING, "dim"
    return f"{line.nodes}, {line.nodes_bad} bad" if line.nodes_bad else str(line.nodes)


def _gpus(line: ClusterLine) -> Cell:
    return (MISSING, "dim") if line.gpus.total is None else f"{line.gpus.allocated}/{line.gpus.total}"


def _age(line: ClusterLine) -> Cell:
    if line.freshness is Freshness.NEVER:
        return "never", "unknown"
    return span(line.age_s), "" if line.freshness is Freshness.LIVE else "warning"
