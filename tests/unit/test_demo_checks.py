"""Checks of the demo's nodes: real looks over its SSH server tell what its scenario says, and nothing else."""

from __future__ import annotations

from cockpit.checks.models import CheckRun
from cockpit.checks.runner import CheckRunner
from cockpit.checks.targets import choose, opener
from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.demo.cluster import DemoCluster
from tests.unit.check_node import found

NODES = "gpu-st-p5-[1-3,7]"


def check(scenario: str) -> CheckRun:
    with DemoCluster(12, scenario) as path:
        config = load_config(path)
        cluster = Cluster(config.clusters["demo"], rules=config.rules, watch_gpus=False)
        try:
            cluster.read_once()
            runner = CheckRunner("efa", lambda name: opener(cluster, name), window_s=0.1)
            return runner.run(choose(cluster, NODES).targets)
        finally:
            cluster.stop()


def test_the_busy_demo_has_a_node_short_of_a_device_and_one_with_another_plugin() -> None:
    run = check("busy")
    assert [node.fault for node in run.nodes] == [None] * 4
    wrong = {node.node: found(node) for node in run.nodes if found(node)}
    assert wrong == {"gpu-st-p5-7": {"efa.devices": "31 of 32 devices"}}
    (odd,) = run.drift
    assert (odd.name, odd.usual) == ("plugin", "1.17.2")
    assert odd.odd == (("1.16.1", ("gpu-st-p5-2",)),)
