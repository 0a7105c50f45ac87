"""`cockpit stop --dry-run` over a real Slurm and moto: jobs, dollars and steps are listed; nothing is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.aws.conftest import moto_endpoint  # noqa: F401
from tests.aws.moto_cluster import KEYS, REGION, MotoCluster, reset
from tests.rig import Rig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

NODES = [f"gpu-st-p5-{number}" for number in range(1, 5)]


@pytest.fixture(name="account")
def _account(moto_endpoint: str) -> MotoCluster:  # noqa: F811
    reset(moto_endpoint)
    return MotoCluster(moto_endpoint, "rig").build(NODES)


def dry_stop(rig: Rig, account: MotoCluster, state: Path, *words: str) -> dict[str, Any]:
    config = rig.config("fleet.yaml", kind="parallelcluster", region=REGION, endpoint_url=account.endpoint)
    argv = [sys.executable, "-m", "cockpit", "--config", str(config), "stop", "--dry-run", "--json", *words]
    env = {**os.environ, **KEYS, "XDG_STATE_HOME": str(state)}
    done = subprocess.run(argv, capture_output=True, env=env, stdin=subprocess.DEVNULL, timeout=120, check=False)
    assert done.returncode == 0, (done.returncode, done.stdout.decode(), done.stderr.decode())
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def submit(rig: Rig, script: Path, *options: str) -> int:
    return int(rig.slurm("sbatch", "--parsable", *options, str(script)).stdout)


def test_a_dry_stop_lists_jobs_dollars_and_steps_and_writes_nothing(
    rig: Rig, account: MotoCluster, tmp_path: Path
) -> None:
    output = rig.state / "dry-stop.out"
    script = rig.state / "dry-stop.sh"
    script.write_text("#!/bin/sh\necho begun\nsleep 300\n")
    running = submit(rig, script, "-w", NODES[0], "--gres=gpu:8", "-t", "30", "-J", "train", "-o", str(output))
    waiting = submit(rig, script, "--begin=now+1hour", "-J", "later", "-o", "/dev/null")
    until = time.monotonic() + 30
    while not (output.exists() and output.read_text()):
        assert time.monotonic() < until
        time.sleep(0.1)
    before = account.fleet_item()
    plan = dry_stop(rig, account, tmp_path / "state")["plan"]
    jobs = {job["job_id"]: job for job in plan["jobs"]}
    assert (jobs[running]["gpus"], jobs[running]["loses"], jobs[waiting]["loses"]) == (8, True, False)
    assert jobs[running]["elapsed_s"] >= 0
    assert 0 < jobs[running]["left_s"] <= 1800
    assert 0 <= jobs[running]["silent_s"] < 60
    assert jobs[waiting]["silent_s"] is None
    assert plan["effects"][0].startswith("saves $")
    assert "/h, $" in plan["effects"][0]
    orders = plan["commands"]
    assert [argv[:3] for argv in orders if "dynamodb" in argv] == [["aws", "dynamodb", "update-item"]]
    assert account.fleet_item() == before
    assert account.status == "RUNNING"
    assert f"{running}|RUNNING" in rig.slurm("squeue", "-h", "-o", "%i|%T").stdout.decode()


def test_a_dry_stop_after_the_jobs_closes_the_queues_first(rig: Rig, account: MotoCluster, tmp_path: Path) -> None:
    before = account.fleet_item()
    plan = dry_stop(rig, account, tmp_path / "state", "--after-jobs")["plan"]
    words = [command if isinstance(command, str) else " ".join(command) for command in plan["commands"]]
    closed = [place for place, line in enumerate(words) if "PartitionName=" in line and "DOWN" in line]
    ordered = [place for place, line in enumerate(words) if "dynamodb" in line]
    assert len(closed) >= 2, plan
    assert closed[-1] < ordered[0], plan
    assert account.fleet_item() == before
    assert "DOWN" not in rig.slurm("sinfo", "-h", "-o", "%a").stdout.decode().upper()
