"""The demo's account as the checks see it: its nodes are well, so that who tries them learns how well looks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cockpit.checks.from_aws import from_aws
from cockpit.checks.models import Verdict
from cockpit.config import CheckSettings
from cockpit.demo import aws_server
from cockpit.formats.aws_ec2 import parse_instances
from tests.aws.moto_cluster import MotoCluster


def test_efa_of_the_demos_nodes_passes_what_ec2_tells_of_it(moto: MotoCluster) -> None:
    aws_server._let_efa_through(moto)
    aws_server._match(moto, {"gpu-dy-p5-1": "127.77.0.11", "gpu-dy-p5-2": "127.77.0.12"})
    of_id = {one.id: one for one in parse_instances([moto.client("ec2").describe_instances()])}
    found = {node: of_id[instance] for node, instance in moto.nodes.items()}
    cluster: Any = SimpleNamespace(
        view=SimpleNamespace(instance_of_node=found),
        aws=SimpleNamespace(calls=moto.calls),
        clock=SimpleNamespace(now=lambda: 0.0),
        checks=CheckSettings(),
    )
    told = from_aws(cluster, "efa")
    assert told.results is not None
    verdicts = {(result.check, result.verdict) for results in told.results.values() for result in results}
    assert {verdict for check, verdict in verdicts if check != "aws.placement"} == {Verdict.PASS}
