"""AWS within a cluster: when it is asked at all, and what scripts get of it."""

from __future__ import annotations

from dataclasses import replace

from cockpit import report
from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig
from cockpit.fleet_power import Outcome
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.power_looks import started, stop_plan, stopped, waits
from cockpit.preflight_models import Result
from cockpit.preflights import preflight
from cockpit.sources.aws_power import carry_out
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


def test_a_whole_stop_from_plan_to_proof(moto: MotoCluster) -> None:
    cluster, head, _ = still_cluster(moto.config)
    cluster.read_once()
    assert started(cluster).text.endswith("4 compute instances running")
    head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "no"))
    assert started(cluster) == Outcome(False, "fleet RUNNING; Slurm does not answer yet")
    head.fault = None
    plan = stop_plan(cluster)
    assert plan.effects == ("4 compute instances terminated: 4 × p5.48xlarge",)
    assert any("killed" in line for line in plan.irreversible)  # the demo's jobs run
    assert moto.fleet_item()["Data"]["M"]["status"] == {"S": "RUNNING"}
    for step in plan.steps:
        if step.via == "aws":
            carry_out(cluster.aws.calls(), step.argv)
    assert stopped(cluster).text == "fleet STOP_REQUESTED, 4 running"
    moto.set_fleet("STOPPED")
    for node in moto.nodes:
        moto.terminate(node)
    outcome = stopped(cluster)
    assert (outcome.done, outcome.text) == (True, "0 instances running, 0 $/h compute")
    assert started(cluster).failed


def test_waits_look_at_slurm_and_the_head(moto: MotoCluster) -> None:
    cluster, head, _ = still_cluster(moto.config)
    look = waits(cluster)
    assert look.running_jobs() > 0
    head.answers["true"] = lambda argv: Completed(0, b"", b"", 0.1)
    assert look.head_answers()
    head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "no"))
    assert not look.head_answers()


def test_a_preflight_of_nodes_that_are_down(moto: MotoCluster) -> None:
    cluster, _, _ = still_cluster(moto.config)
    cluster.read_once()
    (flight,) = preflight(cluster, ["gpu-dy-p5-3", "gpu-dy-p5-4"])
    assert flight.ask is not None
    assert (flight.ask.type, flight.ask.count, flight.ask.queue) == ("p5.48xlarge", 2, "gpu")
    assert {"quota", "addresses", "zone"} <= {verdict.check for verdict in flight.verdicts}
    (unknown,) = preflight(cluster, ["cpu-dy-c6i-1"])
    assert unknown.verdicts[0].result is Result.UNKNOWN


def test_the_region_that_a_head_tells_late_is_taken(moto: MotoCluster) -> None:
    config = ClusterConfig("x", kind="parallelcluster", stack="prod", endpoint_url=moto.endpoint)
    cluster, head, clock = still_cluster(config)
    head.fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching head", "no"))
    cluster.read_once()
    before = cluster.aws.calls()
    head.fault = None
    facts = ["squeue=/opt/slurm/bin/squeue", "uid=0", f"epoch={int(clock.now())}", "region=us-east-1", "end=yes"]
    head.answers["sh"] = lambda argv: Completed(0, "\n".join(facts).encode(), b"", 0.01)
    cluster.read_once()
    assert cluster.aws.calls() is not before
    assert cluster.aws.calls().access.region == "us-east-1"
