"""The diagnosis on the demo, over real SSH: the odd rank is found, and a healthy job is not hung."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli import main
from cockpit.demo.cluster import DemoCluster
from cockpit.demo.troubles import ODD_GPU, ODD_HOST


@pytest.fixture
def demo(request: pytest.FixtureRequest) -> Iterator[tuple[DemoCluster, Path]]:
    cluster = DemoCluster(nodes=8, scenario=request.param)
    try:
        yield cluster, cluster.start()
    finally:
        cluster.stop()


def diagnosed(config: Path, job: int, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["--config", str(config), "diagnose", str(job), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("demo", ["hang"], indirect=True)
def test_the_hang_of_the_demo(demo: tuple[DemoCluster, Path], capsys: pytest.CaptureFixture[str]) -> None:
    cluster, config = demo
    sim = cluster.sim
    assert sim.lead_id is not None
    job = sim.jobs[sim.lead_id]
    host = job.hosts[ODD_HOST]
    code, told = diagnosed(config, job.job_id, capsys)
    rank = ODD_HOST % len(job.hosts) * job.ask.gpus + ODD_GPU
    assert told["verdict"]["state"] == "hung", told["verdict"]
    assert (told["verdict"]["ranks"], told["verdict"]["nodes"]) == ([rank], [host])
    assert told["hypotheses"][0]["id"] == "data-loader"
    assert code == 1
    assert len(told["evidence"]["ranks"]) == job.ask.nodes * job.ask.gpus
    assert told["evidence"]["stacks"][0]["ranks"] == [rank]
    assert told["verdict"]["final"]


@pytest.mark.parametrize("demo", ["calm"], indirect=True)
def test_a_healthy_job_of_the_demo(demo: tuple[DemoCluster, Path], capsys: pytest.CaptureFixture[str]) -> None:
    cluster, config = demo
    assert cluster.sim.lead_id is not None
    code, told = diagnosed(config, cluster.sim.lead_id, capsys)
    assert (code, told["verdict"]["state"]) == (0, "not hung"), told["hypotheses"]
