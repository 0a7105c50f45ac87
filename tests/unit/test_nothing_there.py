"""Empty tables say why they are empty and what to do: no GPUs, a stopped cluster, no jobs, closed queues."""

from __future__ import annotations

from dataclasses import replace

from cockpit.cluster import View
from cockpit.formats.node_state import parse_state
from cockpit.joins import has_accelerators
from cockpit.models import Node, QueueReading
from cockpit.sources.base import Beat
from cockpit.sources.slurm import NODES
from screens.nothing_there import NO_NODES, NO_STORAGE, closed_queues, no_gpus, no_jobs
from screens.panes import pane_specs
from screens.print_table import lines
from tests.still import still_cluster


def view() -> View:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    return cluster.view


def in_state(nodes: tuple[Node, ...], text: str) -> tuple[Node, ...]:
    return tuple(replace(node, state=parse_state(text)) for node in nodes)


def test_a_stopped_cluster_says_that_its_gpus_are_powered_down_and_what_wakes_them() -> None:
    now = view()
    assert now.nodes is not None
    stopped = replace(now, nodes=in_state(now.nodes, "idle+cloud+powered_down"))
    told = no_gpus(stopped)
    assert "all 12 nodes with GPUs are powered down or on the way" in told
    assert "S on a queue starts some" in told
    closed = no_gpus(stopped, ["gpu is inactive", "prio is inactive"])
    assert "gpu is inactive, prio is inactive, so no job wakes them: P starts the cluster" in closed
    one = replace(stopped, nodes=stopped.nodes[:1] if stopped.nodes else ())
    assert "the node with GPUs is powered down" in no_gpus(one)


def test_a_cluster_without_gpus_says_what_would_tell_them() -> None:
    now = view()
    assert now.nodes is not None
    plain = tuple(replace(node, gpus_total=None, gres=(), features=()) for node in now.nodes)
    assert not any(map(has_accelerators, plain))
    assert "Slurm names no node with GPUs" in no_gpus(replace(now, nodes=plain))
    assert "Slurm names no node with GPUs" in no_gpus(replace(now, nodes=()))


def test_nodes_that_are_up_and_not_reached_are_no_empty_cluster() -> None:
    now = view()
    assert now.nodes is not None
    up = replace(now, nodes=in_state(now.nodes, "idle+cloud"))
    assert "12 nodes with a machine, none reached yet" in no_gpus(up)


def test_an_empty_queue_tells_queues_that_start_nothing() -> None:
    cluster, _, clock = still_cluster()
    cluster.read_once()
    assert closed_queues(cluster) == []
    now = cluster.view
    assert now.site is not None
    assert no_jobs(now).startswith("no jobs in the queue")
    assert "\n" not in no_jobs(now)
    state = cluster.store.state(NODES)
    assert state.data is not None
    assert state.good is not None
    inactive = tuple(replace(one, available="inactive") for one in state.data.partitions)
    good = replace(state.good, data=replace(state.data, partitions=inactive))
    cluster.store.put(NODES.name, Beat(good, 5.0, clock.steady()))
    told = no_jobs(now, closed_queues(cluster))
    assert f"{inactive[0].name} is inactive" in told
    assert "a job that is submitted there waits" in told
    hidden = no_jobs(replace(now, site=replace(now.site, sees_all_jobs=False)))
    assert hidden.startswith("no jobs of your own")


def test_every_table_says_something_when_it_is_empty_and_the_command_line_only_what_is_no_key() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    cluster.view = replace(cluster.view, nodes=(), queue=QueueReading((), ()))
    for spec in pane_specs(cluster):
        assert spec.empty(cluster.view)
    assert NO_NODES.splitlines()[0] in lines(cluster, "nodes")
    assert lines(cluster, "jobs") == ["no jobs in the queue: nothing runs, nothing waits"]
    assert all("\n" not in line for command in ("nodes", "jobs") for line in lines(cluster, command))
    assert "probe" in NO_STORAGE
