"""What a table is for, why nothing is under the cursor, and what its columns say: `e` on an empty one. No Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cockpit.cluster import Cluster
from cockpit.words import plural
from screens.lines import Line, Link, Subject, fact, facts, section
from screens.pane_spec import PaneSpec
from screens.panes import pane_specs
from screens.problem_table import problem_spec
from screens.waiting import waiting_words

_PURPOSE: Mapping[str, str] = MappingProxyType(
    {
        "problems": "What is wrong now, worst first, each with its next step; drawn from everything that is read.",
        "nodes": "Every node as Slurm sees it: its state, what runs on it, and why it is out of service.",
        "gpus": "Every GPU of the nodes that are up, as its driver tells it every few seconds.",
        "queue": "Every job that runs or waits, and where or why; an array's tasks stand on one line.",
        "nccl": "NCCL tests: what was measured between nodes, against what is expected, and the trend.",
        "checks-efa": "The last EFA check of every node, worst first: is it the network?",
        "checks-health": "The last health check of every node, worst first: GPUs, memory, disks, clock.",
        "checks-versions": "The versions on every node, and which of a queue's nodes have another one.",
        "storage": "What is mounted on the nodes and which FSx file systems there are: how full, and what hangs.",
        "cost": "What runs costs by the hour, and what of it does nothing.",
        "log": "Changes made from here, faults of sources, and what the head's daemons complained of.",
    }
)


def _nccl(cluster: Cluster) -> PaneSpec:
    from screens.nccl_table import nccl_spec

    return nccl_spec(cluster)


def _log(cluster: Cluster) -> PaneSpec:
    from screens.log_table import log_spec

    return log_spec(cluster)


def _checks(kind: str) -> Callable[[Cluster], PaneSpec]:
    def spec(cluster: Cluster) -> PaneSpec:
        from screens.check_table import check_spec, versions_spec

        return versions_spec(cluster) if kind == "versions" else check_spec(cluster, kind)

    return spec


_SPECS: Mapping[str, Callable[[Cluster], PaneSpec]] = MappingProxyType(
    {
        "problems": problem_spec,
        "nccl": _nccl,
        "log": _log,
        **{f"checks-{kind}": _checks(kind) for kind in ("efa", "health", "versions")},
    }
)


def _spec(cluster: Cluster, name: str) -> PaneSpec | None:
    make = _SPECS.get(name)
    return make(cluster) if make else next((spec for spec in pane_specs(cluster) if spec.id == name), None)


def explain_pane(cluster: Cluster, name: str) -> list[Line]:
    """Its purpose, why it shows nothing, its columns, and how many problems there are elsewhere."""
    spec = _spec(cluster, name)
    if spec is None:
        return [["there is no such table"]]
    lines: list[Line] = [[(_PURPOSE.get(name, name), "bright")], [], section("why nothing is under the cursor")]
    lines += [[f"  {words}"] for words in _now(cluster, spec).split("\n")]
    if problems := cluster.problems():
        lines += [[], [Link(plural(len(problems), "problem"), "", Subject("problem", "")), " known on this cluster"]]
    told = [(column.title, column.note) for column in spec.columns if column.note]
    return [*lines, *([[], section("what its columns say"), *facts(told)] if told else []), *_hint(spec)]


def _now(cluster: Cluster, spec: PaneSpec) -> str:
    rows = spec.rows(cluster.view)
    if rows is None:
        return waiting_words(cluster, spec.source)
    if not rows:
        return spec.empty(cluster.view)
    return f"{plural(len(rows), 'line')}, all hidden by a filter or by `!` (problems only): esc shows them again"


def _hint(spec: PaneSpec) -> list[Line]:
    return [[], fact("filter", f"fields: {', '.join(spec.fields)}", "dim")] if spec.fields else []
