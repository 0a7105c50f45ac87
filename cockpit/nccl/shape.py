"""What a run measured, from all that it told: type, nodes, ranks, collective; and what its network can carry."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cockpit.catalog.nccl_expected import network_facts, type_of_gpu, type_of_platform
from cockpit.nccl.models import NcclRow, NcclRun, Shape

# busbw = algbw x factor(n), by nccl-tests' PERFORMANCE.md.
_ALL_REDUCE: Callable[[int], float] = lambda n: 2 * (n - 1) / n  # noqa: E731
_SHARED: Callable[[int], float] = lambda n: (n - 1) / n  # noqa: E731
_FACTORS = {"all_reduce": _ALL_REDUCE, "all_gather": _SHARED, "reduce_scatter": _SHARED, "alltoall": _SHARED}
_MOST_RANKS = 4096


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the run itself, from options or from a file's name; "" and None where it is not."""

    instance_type: str = ""
    nodes: int | None = None
    collective: str = ""
    ring: bool = False


def shape_of(run: NcclRun, given: Known = Known(), name: Known = Known()) -> Shape:
    """What was measured. What is given counts first, then the run's own words, then the file's name."""
    kind, kind_from = _instance_type(run, given, name)
    facts = network_facts(kind)
    collective = given.collective or run.collective or _collective(run.rows) or name.collective
    ranks = run.evidence.ranks or _listed_ranks(run) or derived_ranks(run.rows, collective, facts.gpus if facts else 1)
    nodes = given.nodes or (len(run.hosts) or None if run.ranks else None) or run.evidence.nodes or name.nodes
    if nodes is None and ranks and facts and ranks % facts.gpus == 0:
        nodes = ranks // facts.gpus
    algorithm = "ring" if given.ring or _ring(run) or (name.ring and not given.collective) else "default"
    even = ranks and nodes and ranks % nodes == 0
    gpus = ranks // nodes if even and ranks and nodes else (facts.gpus if facts else None)
    return Shape(kind, kind_from, nodes, ranks, gpus, collective, algorithm)


def _instance_type(run: NcclRun, given: Known, name: Known) -> tuple[str, str]:
    if given.instance_type:
        return given.instance_type, "given"
    if told := type_of_platform(run.evidence.platform):
        return told, "log"
    gpus = {rank.gpu for rank in run.ranks}
    by_gpu = type_of_gpu(next(iter(gpus)).replace("NVIDIA ", "")) if len(gpus) == 1 else ""
    named = network_facts(name.instance_type)
    if named is not None and (not gpus or any(named.gpu in gpu for gpu in gpus)):
        return named.name, "name"
    eight = bool(run.hosts) and len(run.ranks) == 8 * len(run.hosts)
    return (by_gpu, "gpu") if by_gpu and eight else ("", "")


def _listed_ranks(run: NcclRun) -> int | None:
    """Ranks of one group by the device list; None when a list was cut."""
    if not run.ranks or run.ranks_cut:
        return None
    groups = {rank.group for rank in run.ranks}
    return len(run.ranks) // len(groups)


def _ring(run: NcclRun) -> bool:
    settings = {**run.env, **run.evidence.settings}
    return settings.get("NCCL_ALGO", "").strip().lower() == "ring"


def _collective(rows: Sequence[NcclRow]) -> str:
    """What the table's own columns tell, where that is certain."""
    if not rows:
        return ""
    row, factors = rows[-1], _factors(rows)
    if row.root is not None and row.root >= 0:
        return "reduce" if row.redop not in ("", "none") else ""
    if row.redop in ("", "none") or not factors:
        return ""
    return "all_reduce" if factors[0] > 0.999 else "reduce_scatter"


def derived_ranks(rows: Sequence[NcclRow], collective: str, multiple_of: int = 1) -> int | None:
    """The ranks that the ratio of busbw to algbw allows, when it is only one number; else None."""
    factor, bounds = _FACTORS.get(collective), _factors(rows)
    if factor is None or not bounds:
        return None
    low, high = bounds
    steps = range(max(2, multiple_of), _MOST_RANKS + 1, multiple_of)
    fitting = [ranks for ranks in steps if low <= factor(ranks) <= high]
    return fitting[0] if len(fitting) == 1 else None


def _factors(rows: Sequence[NcclRow]) -> tuple[float, float] | None:
    """Bounds of busbw / algbw over all rows; both are printed with two decimals."""
    low, high = 0.0, math.inf
    for row in rows:
        for half in row.placements:
            if half.algbw_gbs and half.busbw_gbs and half.algbw_gbs >= 1:
                low = max(low, (half.busbw_gbs - 0.006) / (half.algbw_gbs + 0.006))
                high = min(high, (half.busbw_gbs + 0.006) / (half.algbw_gbs - 0.006))
    return (low, high) if 0 < low <= high < math.inf else None


def cap_gbs(shape: Shape) -> float | None:
    """What the network between the nodes lets through at most, as bus bandwidth; None for one node or unknown types.

    A default all_reduce reduces inside each node first, so that two nodes may show up to 1.875 times the NICs'
    rate; a ring may not.
    """
    facts, nodes, gpus = network_facts(shape.instance_type), shape.nodes, shape.gpus_per_node
    if facts is None or not nodes or nodes < 2 or gpus != facts.gpus:
        return None
    ranks = nodes * gpus
    if shape.collective == "all_reduce":
        hierarchical = facts.nic_gbs * (ranks - 1) * nodes / (ranks * (nodes - 1))
        return facts.nic_gbs if shape.algorithm == "ring" else hierarchical
    if shape.collective in ("all_gather", "reduce_scatter"):
        return facts.nic_gbs
    if shape.collective == "alltoall":
        return facts.nic_gbs * (ranks - 1) / (gpus * (ranks - gpus))
    return None
