"""AWS within a cluster: when it is asked at all, and what scripts get of it."""

from __future__ import annotations

from dataclasses import replace

from cockpit import report
from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig
from cockpit.hosts.base import Completed
from tests.aws.moto_cluster import MotoCluster
from tests.still import still_cluster


def names(cluster: Cluster) -> list[str]:
    return [state.name for state in cluster.store.states()]


def test_without_a_word_of_aws_in_the_config_nothing_is_asked() -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    assert "aws" not in names(cluster)
    assert (cluster.view.aws, report.status(cluster)["fleet"]) == (None, None)
    assert report.nodes(cluster)["nodes"][0]["instance"] is None


def test_status_and_nodes_tell_fleet_and_instances(moto: MotoCluster) -> None:
    cluster, _, _ = still_cluster(replace(moto.config, name="prod"))
    cluster.read_once()
    fleet = report.status(cluster)["fleet"]
    assert (fleet["status"], fleet["stack"], fleet["version"]) == ("RUNNING", "CREATE_COMPLETE", "3.16.1")
    assert (fleet["instances_by_state"], fleet["not_read"]) == ({"running": 5}, {})
    # The demo's addresses are none of moto's, so the table tells whose an instance is, once the nodes are known.
    cluster.read_once()
    record = next(node for node in report.nodes(cluster)["nodes"] if node["name"] == "gpu-st-p5-1")
    assert record["instance"]["id"] == moto.nodes["gpu-st-p5-1"]
    assert record["instance"]["checks"] == {"system": "ok", "instance": "ok", "storage": None}


def test_a_head_that_tells_its_region_is_enough(moto: MotoCluster) -> None:
    cluster, head, clock = still_cluster(ClusterConfig("whatever", endpoint_url=moto.endpoint))
    facts = ["squeue=/opt/slurm/bin/squeue", "uid=0", f"epoch={int(clock.now())}", "end=yes", "parallelcluster=yes"]
    facts += ["region=us-east-1", "stack_name=prod"]
    head.answers["sh"] = lambda argv: Completed(0, "\n".join(facts).encode(), b"", 0.01)
    assert "aws" not in names(cluster)
    cluster.read_once()
    assert cluster.view.aws is not None
    assert cluster.view.aws.fleet.data is not None
    assert cluster.view.aws.scope.stack == "prod"


def test_aws_that_does_not_answer_takes_nothing_else_with_it() -> None:
    config = ClusterConfig("prod", kind="parallelcluster", region="us-east-1", endpoint_url="http://127.0.0.1:9")
    cluster, _, _ = still_cluster(config)
    cluster.read_once()
    assert cluster.view.nodes
    problem = next(problem for problem in cluster.problems() if problem.key == "source:aws")
    assert (problem.health.value, "127.0.0.1:9" in problem.title) == ("warn", True)
