"""The command line as a script sees it: exit codes, JSON, and errors of one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cockpit.config import state_dir
from cockpit.demo.cluster import DemoCluster


def cockpit(*words: str, home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": "/nowhere", "HOME": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC", **env}
    argv = [sys.executable, "-m", "cockpit", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=clean, timeout=60, check=False, cwd=os.getcwd())


@pytest.fixture(scope="module")
def demo() -> Iterator[Path]:
    cluster = DemoCluster()
    yield cluster.start()
    cluster.stop()


def read(config: Path, command: str, home: Path) -> tuple[int, dict[str, Any]]:
    done = cockpit("--config", str(config), command, "--json", home=home, PATH=os.environ["PATH"])
    return done.returncode, json.loads(done.stdout)


def test_status_json_holds_what_scripts_rely_on(demo: Path, tmp_path: Path) -> None:
    code, status = read(demo, "status", tmp_path)
    assert code == 1  # it has problems
    assert status["schema"] == 1
    assert status["cluster"] == "demo"
    assert status["taken_at"].endswith("Z")
    assert {name: source["state"] for name, source in status["sources"].items()} == {
        "nodes": "live",
        "queue": "live",
        "slurm": "live",
        "gpus": "live",
    }
    assert all(source["error"] is None and source["age_s"] >= 0 for source in status["sources"].values())
    assert status["nodes"]["total"] == 12 == sum(status["nodes"]["by_state"].values())
    assert status["gpus"]["total"] == 96
    assert status["jobs"]["pending"] == status["jobs"]["by_state"]["PD"] > 12
    assert {"key", "health", "subject", "title", "next_step", "since"} <= set(status["problems"][0])


def test_nodes_and_jobs_are_exit_0_and_complete(demo: Path, tmp_path: Path) -> None:
    code, nodes = read(demo, "nodes", tmp_path)
    assert (code, len(nodes["nodes"])) == (0, 12)
    down = next(node for node in nodes["nodes"] if node["name"] == "gpu-st-p5-8")
    assert (down["word"], down["health"]) == ("down", "critical")
    code, jobs = read(demo, "jobs", tmp_path)
    assert code == 0
    running = next(job for job in jobs["jobs"] if job["state"] == "R")
    assert running["started_at"].endswith("Z")
    assert running["hostlist"]


def test_tables_without_json(demo: Path, tmp_path: Path) -> None:
    done = cockpit("nodes", "--config", str(demo), home=tmp_path, PATH=os.environ["PATH"])
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].split()[:3] == ["node", "state", "queue"]
    assert "INC-4821 NCCL slow on rail 5, ticket with AWS (maria)" in done.stdout
    done = cockpit("status", "--config", str(demo), home=tmp_path, PATH=os.environ["PATH"])
    assert "crit    gpu-st-p5-8: down: Not responding" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--config", "/nowhere/c.yaml", "status"], "/nowhere/c.yaml: cannot be read"),
        (["status"], "this machine has no Slurm"),
        (["demo", "--nodes", "0"], "must be a whole number from 1"),
        (["demo", "--headless", "--scenario", "nonsense"], "nonsense"),
        (["frobnicate"], "invalid choice"),
    ],
)
def test_wrong_use_is_exit_2_and_no_traceback(words: list[str], says: str, tmp_path: Path) -> None:
    done = cockpit(*words, home=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_cluster_is_named_with_the_known_ones(demo: Path, tmp_path: Path) -> None:
    done = cockpit("--config", str(demo), "--cluster", "prod", "status", home=tmp_path)
    assert done.returncode == 2
    assert "no cluster named 'prod'; known: demo" in done.stderr


def test_a_head_that_is_not_there_is_exit_3_and_null_not_zero(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("clusters:\n  a: {head: nobody@127.0.0.1:1, refresh: {slurm: 5}}\n")
    code, status = read(config, "status", tmp_path)
    assert code == 3
    assert status["nodes"] is None
    assert status["jobs"] is None
    assert status["gpus"]["total"] is None
    assert status["sources"]["nodes"]["error"]["kind"] == "unreachable"
    assert status["problems"]


def test_a_local_head_without_slurm_says_what_is_missing(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("clusters:\n  a: {head: local}\n")
    done = cockpit("--config", str(config), "status", "--json", home=tmp_path, PATH="/usr/sbin:/sbin:/bin")
    if "squeue" in done.stdout and json.loads(done.stdout)["nodes"] is not None:
        pytest.skip("this machine has a running Slurm")
    assert done.returncode == 3


def test_the_demo_runs_headless(tmp_path: Path) -> None:
    done = cockpit("demo", "--headless", "--seconds", "2", "--nodes", "4", home=tmp_path, PATH=os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    assert "nodes   4:" in done.stdout
    assert "sources nodes live" in done.stdout


def test_what_a_demo_writes_down_lies_apart_from_the_records_of_clusters(tmp_path: Path) -> None:
    code = "from cockpit import cli; from cockpit.config import state_dir; import sys; sys.argv[1:] = []\n"
    code += "cli.main(['demo', '--headless', '--seconds', '0', '--nodes', '1', '--scenario', 'calm'])\n"
    code += "print(); print(state_dir())"
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert done.stdout.splitlines()[-1] == str(tmp_path / "cockpit" / "demo" / "calm"), done.stderr
    assert state_dir({"XDG_STATE_HOME": "/x"}) == Path("/x/cockpit")


def test_gpus_tell_every_gpu_of_the_nodes_that_are_up(demo: Path, tmp_path: Path) -> None:
    code, told = read(demo, "gpus", tmp_path)
    assert code == 0
    up = [node["node"] for node in told["nodes"] if node["error"] is None]
    seen = [gpu for gpu in told["gpus"] if gpu["uuid"]]
    assert len(seen) == 8 * len(up) > 0
    assert len({gpu["uuid"] for gpu in seen}) == len(seen)
    assert all(0 <= gpu["util_pct"] <= 100 and gpu["mem_total_mib"] > 0 for gpu in seen)
    unread = [gpu for gpu in told["gpus"] if not gpu["uuid"]]
    assert unread  # those of the node that is down keep their rows
    assert all(gpu["util_pct"] is None and gpu["missing"] for gpu in unread)


def test_gpus_of_a_head_that_is_not_there_are_null_and_no_empty_list(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("clusters:\n  a: {head: nobody@127.0.0.1:1}\n")
    code, told = read(config, "gpus", tmp_path)
    assert (code, told["gpus"]) == (3, None)


def test_a_problem_is_acknowledged_listed_and_taken_back(demo: Path, tmp_path: Path) -> None:
    def ack(*words: str) -> subprocess.CompletedProcess[str]:
        return cockpit("--config", str(demo), "ack", *words, home=tmp_path, PATH=os.environ["PATH"])

    assert ack("--list").stdout == "nothing is acknowledged\n"
    key = read(demo, "status", tmp_path)[1]["problems"][0]["key"]
    assert ack(key, "--note", "Maria has it").returncode == 0
    assert "Maria has it" in ack("--list").stdout
    told = next(problem for problem in read(demo, "status", tmp_path)[1]["problems"] if problem["key"] == key)
    assert told["acknowledged"]["note"] == "Maria has it"
    assert ack(key, "--undo").returncode == 0
    assert json.loads(ack("--list", "--json").stdout)["acknowledged"] == []
    for words in ((key, "--undo"), ("no:such", "--note", "x"), (key, "--list"), ("--note", "x"), (key,)):
        assert ack(*words).returncode == 2


def test_keys_lists_them_with_the_users_changes(tmp_path: Path) -> None:
    plain = cockpit("keys", home=tmp_path)
    assert plain.returncode == 0
    assert any(line.split()[:2] == ["r", "app.refresh"] for line in plain.stdout.splitlines())
    config = tmp_path / "config.yaml"
    config.write_text("clusters: {one: {head: local}}\nkeys:\n  app.refresh: ctrl+r\n")
    changed = cockpit("keys", "--config", str(config), home=tmp_path)
    assert any(line.split()[:3] == ["*", "ctrl+r", "app.refresh"] for line in changed.stdout.splitlines())
    assert "| `ctrl+r` |" in cockpit("keys", "--markdown", "--config", str(config), home=tmp_path).stdout


def test_a_key_that_cannot_be_is_exit_2_with_its_line(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("clusters: {one: {head: local}}\nkeys:\n  app.refresh: alt+r\n")
    done = cockpit("keys", "--config", str(config), home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"cockpit: {config}:3: keys.app.refresh: `alt+r`: alt does not arrive")
    assert done.stderr.count("\n") == 1
