"""The doctor on a real Slurm over real SSH: an open way passes, and a broken one is named where it breaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rig import Rig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]


def doctor(rig: Rig, home: Path, env: dict[str, str] | None = None, **config: Any) -> tuple[int, dict[str, Any]]:
    argv = [sys.executable, "-m", "cockpit", "--config", str(rig.config("doctor.yaml", **config)), "doctor", "--json"]
    environ = {**os.environ, "XDG_STATE_HOME": str(home), **(env or {})}
    done = subprocess.run(argv, capture_output=True, timeout=120, env=environ, check=False)
    assert done.stdout, done.stderr.decode()
    told = json.loads(done.stdout)
    return done.returncode, {step["id"]: step for step in told["steps"]}


def test_the_whole_way_is_open(rig: Rig, tmp_path: Path) -> None:
    code, steps = doctor(rig, tmp_path)
    failed = {name: step for name, step in steps.items() if step["verdict"] == "fail"}
    assert (code, failed) == (0, {})
    through = (
        "config",
        "dns",
        "tcp",
        "host_key",
        "auth",
        "slurm_programs",
        "kind",
        "slurm",
        "rights",
        "nodes",
        "python",
    )
    assert {steps[name]["verdict"] for name in through} == {"pass"}
    assert steps["probe"]["verdict"] in ("pass", "not applicable")
    assert set(steps["nodes"]["parts"].values()) == {"pass"}


def test_on_the_head_itself(rig: Rig, tmp_path: Path) -> None:
    code, steps = doctor(rig, tmp_path, dict(rig.local_env), head="local", ssh_config=None, nodes=None)
    assert steps["tcp"]["verdict"] == "not applicable"
    assert steps["slurm"]["verdict"] == "pass"
    assert code in (0, 1)  # whether the nodes' keys are known to this machine's own user is not the rig's business


def test_nodes_that_are_not_trusted_are_named(rig: Rig, tmp_path: Path) -> None:
    node_port = 9  # nobody listens there
    code, steps = doctor(rig, tmp_path, nodes={"via": "head", "user": "root", "port": node_port})
    assert code == 1
    assert steps["slurm"]["verdict"] == "pass"
    assert (steps["nodes"]["verdict"], steps["python"]["verdict"]) == ("fail", "not tried")
    assert any(line.startswith("by hand: ssh ") and f"-p {node_port}" in line for line in steps["nodes"]["remedy"])


def test_a_controller_that_hangs_is_told_apart_from_a_head_that_is_down(rig: Rig, tmp_path: Path) -> None:
    rig.freeze("slurmctld")
    code, steps = doctor(rig, tmp_path)
    assert code == 1
    assert steps["slurm_programs"]["verdict"] == "pass"
    assert steps["slurm"]["verdict"] == "fail"
    assert "slurmctld" in steps["slurm"]["detail"]
    assert steps["nodes"]["verdict"] == "not tried"


def test_without_a_config_a_machine_with_slurm_just_works(rig: Rig, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    argv = [sys.executable, "-m", "cockpit", "nodes", "--json"]
    env = {**os.environ, **rig.local_env, **home}
    done = subprocess.run(argv, capture_output=True, timeout=60, env=env, check=False)
    told = json.loads(done.stdout)
    assert (done.returncode, told["cluster"], told["kind"]) == (0, "local", "slurm")
    assert {node["name"] for node in told["nodes"]} >= set(rig.nodes)
    assert not (tmp_path / "cockpit" / "config.yaml").exists()
