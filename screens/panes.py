"""The table of panes: what each shows and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cockpit import report
from cockpit.cluster import Cluster
from cockpit.formats.hostlist import fold
from cockpit.sources.gpus import GPUS
from cockpit.sources.slurm import NODES, QUEUE
from screens import queue_table
from screens.cost_table import cost_spec
from screens.gpu_table import GpuTable
from screens.node_table import NodeTable
from screens.nothing_there import NO_NODES, closed_queues, no_gpus, no_jobs
from screens.pane_spec import PaneSpec
from screens.queue_table import QueueTable
from screens.storage_table import storage_spec


def pane_specs(cluster: Cluster) -> tuple[PaneSpec, ...]:
    """Every table pane of a cluster, in the order of their keys."""
    return nodes_spec(cluster), gpus_spec(cluster), queue_spec(cluster), storage_spec(cluster), cost_spec(cluster)


def nodes_spec(cluster: Cluster) -> PaneSpec:
    """Slurm's nodes as a pane."""
    nodes = NodeTable(lambda: cluster.view, cluster.head_now, cluster.origin, lambda: cluster.trusts(QUEUE))
    return PaneSpec(
        id="nodes",
        kind="node",
        source=NODES,
        rows=lambda view: view.nodes,
        key=lambda node: node.name,
        health=lambda node: node.health,
        columns=nodes.columns(),
        fields=nodes.fields(),
        record=lambda node: report.node_record(node, cluster.view.jobs_of_node.get(node.name, ())),
        copied=fold,
        empty=lambda view: NO_NODES,
        nodes=lambda node: (node.name,),
        command=show_nodes,
        joined=lambda view: view.jobs_of_node,
        sort="state",
    )


def gpus_spec(cluster: Cluster) -> PaneSpec:
    """Every GPU as a pane."""
    gpus = GpuTable(cluster.clock.steady)
    return PaneSpec(
        id="gpus",
        kind="gpu",
        source=GPUS,
        rows=lambda view: view.gpu_rows if view.fleet else None,
        key=lambda row: row.key,
        health=lambda row: row.health,
        columns=gpus.columns(),
        fields=gpus.fields(),
        record=lambda row: report.gpu_record(row, cluster.clock.steady()),
        copied=lambda keys: ",".join(keys),
        empty=lambda view: no_gpus(view, closed_queues(cluster)),
        nodes=lambda row: (row.node,),
        command=lambda rows: show_nodes(rows, lambda row: row.node),
        sort="state",
    )


def queue_spec(cluster: Cluster) -> PaneSpec:
    """The queue as a pane, waiting tasks of an array in one line."""
    queue = QueueTable(cluster.head_now)
    return PaneSpec(
        id="queue",
        kind="job",
        source=QUEUE,
        rows=lambda view: view.queue.rows if view.queue else None,
        key=lambda row: row.key,
        health=queue_table.health,
        columns=queue.columns(),
        fields=queue.fields(),
        record=report.queue_record,
        copied=lambda keys: ",".join(key.rstrip("_") for key in keys),
        empty=lambda view: no_jobs(view, closed_queues(cluster)),
        nodes=queue_table.held_nodes,
        command=queue_table.show_jobs,
        sort="state",
    )


def show_nodes(rows: Sequence[Any], name: Callable[[Any], str] = lambda node: node.name) -> Sequence[str]:
    """How Slurm itself shows these nodes."""
    return ("scontrol", "show", "node", fold(map(name, rows)))
