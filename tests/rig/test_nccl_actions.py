"""NCCL tests as actions on a real Slurm: planned on idle nodes only, confirmed, recorded, seen in the queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from actions.audit import AuditLog
from actions.errors import ActionError
from actions.nccl import jobs_named, run_action, started_job, sweep_action
from actions.nccl_live import LiveTest
from actions.outcome import Result
from actions.runner import Runner
from actions.spec import Plan
from actions.targets import node_targets
from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.demo.nccl_stand_in import Speeds
from cockpit.nccl.rounds import SweepDriver, SweepRun, keeper_argv, sweep_request
from cockpit.nccl.run import NcclRequest, cancel_argv, of_nodes
from cockpit.nccl.sweep import Sweep
from cockpit.nccl.sweep_result import sweep_result
from tests.rig import Rig
from tests.rig.nccl import BINARY, install, set_speeds

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
NODES = "gpu-st-p5-[1-4]"


@pytest.fixture
def cluster(rig: Rig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cluster]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    install(rig, rig.static_nodes)
    found = Cluster(next(iter(load_config(rig.config("nccl.yaml")).clusters.values())))
    found.read_once()
    try:
        yield found
    finally:
        found.stop()


def request(rig: Rig) -> NcclRequest:
    return NcclRequest(binary=BINARY, mpi="none", gpus_per_node=2, output_dir=str(rig.state / "home/root"))


def carried_out(cluster: Cluster, plan: Plan, typed: str, folder: Path) -> Result:
    return Runner(cluster, audit=AuditLog("rig", folder)).run(plan, typed, lambda _: None)


def queue(rig: Rig) -> str:
    return rig.slurm("squeue", "-h", "-a", "-o", "%A %T %N").stdout.decode()


def test_a_test_is_submitted_and_seen(rig: Rig, cluster: Cluster, tmp_path: Path) -> None:
    set_speeds(rig, Speeds(row_s=30))
    plan = run_action(request(rig)).plan(cluster, node_targets(cluster, "gpu-st-p5-[1-2]"))
    assert plan.effects[0].startswith("takes 4 GPUs on 2 nodes for about 40s, at most 10m")
    assert plan.steps[0].argv[0].endswith("/sbatch")
    assert carried_out(cluster, plan, "n", tmp_path).outcome == "refused"
    assert queue(rig) == ""
    result = carried_out(cluster, plan, "y", tmp_path)
    job = started_job(result)
    assert result.ok, result
    assert queue(rig) == f"{job} RUNNING gpu-st-p5-[1-2]\n"
    cluster.head.run(cancel_argv(job or 0), deadline_s=20)
    rig.wait_for(lambda: queue(rig) == "")


@pytest.mark.parametrize("folder", ["/run/tools", "/nowhere"])
def test_an_output_that_the_head_never_sees_is_told_and_nothing_is_kept(
    rig: Rig, cluster: Cluster, tmp_path: Path, folder: str
) -> None:
    """Each machine has its own /run/tools, as each has its own /root on a cluster where only /home is shared."""
    test = replace(request(rig), output_dir=folder)
    plan = run_action(test).plan(cluster, node_targets(cluster, "gpu-st-p5-[1-2]"))
    result = carried_out(cluster, plan, "y", tmp_path)
    live = LiveTest(cluster, of_nodes(test, plan.steps[0].subjects))
    live.name, live.request = test.name, replace(live.request, name=test.name)
    assert live.begin(result)
    live.run()
    assert f"{folder}/{test.name}-{live.job_id}.out" in live.fault
    assert "shared" in live.fault
    assert live.record is None


def test_busy_nodes_are_not_disturbed(rig: Rig, cluster: Cluster) -> None:
    rig.submit("sleep 300", nodelist="gpu-st-p5-2", gpus_per_node=1)
    rig.wait_for(lambda: "RUNNING" in queue(rig))
    cluster.read_once()
    with pytest.raises(ActionError, match="idle nodes only: gpu-st-p5-2"):
        run_action(request(rig)).plan(cluster, node_targets(cluster, "gpu-st-p5-[1-2]"))
    plan = sweep_action(request(rig)).plan(cluster, node_targets(cluster, NODES))
    assert (plan.steps[0].patience_s or 0) >= 180, (
        "prologs with a GPU diagnosis take minutes, and salloc waits for them"
    )
    assert [node for node, _ in plan.left_out] == ["gpu-st-p5-2"]
    assert plan.count == 3
    with pytest.raises(ActionError, match="2 to 128 idle nodes"):
        sweep_action(request(rig)).plan(cluster, node_targets(cluster, "gpu-st-p5-[1-2]"))


def test_a_sweep_holds_its_nodes_names_the_slow_one_and_lets_go(rig: Rig, cluster: Cluster, tmp_path: Path) -> None:
    set_speeds(rig, Speeds(network={"gpu-st-p5-3": 0.5}))
    action = sweep_action(request(rig), name="cockpit-sweep-test")
    plan = action.plan(cluster, node_targets(cluster, NODES))
    assert plan.effects[0] == "10 tests in 4 rounds, some more for suspects"
    result = carried_out(cluster, plan, "4", tmp_path)
    assert result.ok, result
    job = started_job(result)
    assert job is not None
    assert [each.job_id for each in jobs_named(cluster, "cockpit-sweep-test")] == [job]
    test = sweep_request(of_nodes(request(rig), plan.steps[0].subjects))
    sweep = Sweep(test.nodes)
    SweepRun(cluster.head, SweepDriver(sweep), keeper_argv(test, job)).run()
    assert sweep_result(sweep).bad_nodes == ("gpu-st-p5-3",)
    rig.wait_for(lambda: queue(rig) == "")


def test_read_only_submits_nothing(rig: Rig, cluster: Cluster, tmp_path: Path) -> None:
    config = next(iter(load_config(rig.config("locked.yaml", read_only=True)).clusters.values()))
    locked = Cluster(config)
    locked.read_once()
    try:
        action = run_action(request(rig))
        targets = node_targets(locked, "gpu-st-p5-[1-2]")
        assert carried_out(locked, action.plan(locked, targets), "y", tmp_path).outcome == "refused"
        assert queue(rig) == ""
    finally:
        locked.stop()
