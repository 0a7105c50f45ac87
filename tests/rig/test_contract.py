"""The demo's simulated Slurm and the real one read alike through the same sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest

from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.demo.cluster import DemoCluster
from cockpit.models import Job, Node
from tests.rig import Rig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

# Free to differ: what a site or a single job may or may not have set, and what only a version prints.
_JOB_FREE = {"comment", "priority", "dependency", "features", "reason", "scheduled_hostlist", "limit_s", "ends_at"}
_NODE_FREE = {"features", "reservation", "comment", "extra", "gpu_indices", "cpu_load", "weight", "hostname"}


def read(config: Any) -> Cluster:
    cluster = Cluster(next(iter(load_config(config).clusters.values())))
    cluster.read_once()
    cluster.stop()
    assert cluster.view.nodes is not None, [state.error for state in cluster.store.states()]
    assert cluster.view.queue is not None
    return cluster


@pytest.fixture
def both(rig: Rig) -> Iterator[tuple[Cluster, Cluster]]:
    rig.submit("sleep 300", nodes=2, gpus_per_node="h100:8", exclusive=True, job_name="train", time="2:00:00")
    rig.submit("sleep 300", array="1-30%2", gpus_per_node="1", job_name="sweep", time="60")
    rig.submit("sleep 300", hold=True, gpus_per_node=8, time="60")
    rig.slurm("scontrol", "update", "nodename=gpu-st-p5-4", "state=drain", "reason=INC-1 looks slow")
    rig.wait_for(lambda: rig.slurm("squeue", "-h", "-t", "R").stdout.count(b"\n") >= 3)
    demo = DemoCluster()
    try:
        yield read(rig.config("contract.yaml")), read(demo.start())
    finally:
        demo.stop()


def shape(model: Job | Node, free: set[str]) -> dict[str, str]:
    """For each attribute the kind of value it holds: none, empty, or its type."""

    def kind(value: Any) -> str:
        if value is None:
            return "none"
        return type(value).__name__ if value or value == 0 else f"empty {type(value).__name__}"

    return {each.name: kind(getattr(model, each.name)) for each in fields(model) if each.name not in free}


def job_like(cluster: Cluster, test: Callable[[Job], bool]) -> Job:
    assert cluster.view.queue is not None
    return next(job for job in cluster.view.queue.jobs if test(job))


def node_like(cluster: Cluster, test: Callable[[Node], bool]) -> Node:
    assert cluster.view.nodes is not None
    return next(node for node in cluster.view.nodes if test(node))


JOBS: dict[str, Callable[[Job], bool]] = {
    "running on several nodes": lambda job: job.state == "R" and (job.node_count or 0) > 1,
    "running array task": lambda job: job.state == "R" and job.array_job_id is not None,
    "pending rest of an array": lambda job: job.state == "PD" and job.array_job_id is not None,
    "held": lambda job: job.state == "PD" and job.reason.startswith("JobHeld"),
}
NODES: dict[str, Callable[[Node], bool]] = {
    "all in use": lambda node: node.word == "allocated" and node.gpus_used == 8,
    "drained": lambda node: node.word == "drained",
}


def test_jobs_have_the_same_shape(both: tuple[Cluster, Cluster]) -> None:
    for name, test in JOBS.items():
        real, demo = (shape(job_like(cluster, test), _JOB_FREE) for cluster in both)
        assert demo == real, name


def test_nodes_have_the_same_shape(both: tuple[Cluster, Cluster]) -> None:
    for name, test in NODES.items():
        real, demo = (shape(node_like(cluster, test), _NODE_FREE) for cluster in both)
        assert demo == real, name


def test_arrays_fold_and_count_alike(both: tuple[Cluster, Cluster]) -> None:
    for cluster in both:
        queue = cluster.view.queue
        assert queue is not None
        row = next(row for row in queue.rows if row.key.endswith("_"))
        assert dict(row.tally).keys() == {"R", "PD"}
        assert sum(count for _, count in row.tally) == sum(job.task_count for job in row.jobs)
        assert sum(queue.by_state.values()) == sum(job.task_count for job in queue.jobs)


def test_details_of_a_job_and_a_node_have_the_keys_screens_show(both: tuple[Cluster, Cluster], rig: Rig) -> None:
    demo = DemoCluster()
    try:
        clusters = [Cluster(next(iter(load_config(path).clusters.values()))) for path in (rig.config(), demo.start())]
        for cluster in clusters:
            cluster.read_once()
            job = job_like(cluster, JOBS["running on several nodes"])
            detail = cluster.job_detail(job)
            assert detail.get("JobState") == "RUNNING"
            assert {len(indices) for indices in detail.gpu_indices.values()} == {8}
            node = cluster.node_detail(node_like(cluster, NODES["drained"]).name)
            assert "State" in dict(node.pairs)
            assert node.reason
            cluster.stop()
    finally:
        demo.stop()
