"""`cockpit nccl run` and `sweep` as people type them, on a real Slurm over real SSH; nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli import main
from cockpit.demo.nccl_stand_in import Asked, Speeds, whole_run
from tests.rig import Rig, Spec
from tests.rig.nccl import BINARY, install, set_speeds

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
WITH = ("--program", BINARY, "--mpi", "none")


@pytest.fixture(scope="module")
def six() -> Iterator[Rig]:
    with Rig(spec=Spec(static=6, dynamic=0, gpus=2)) as rig:
        install(rig, rig.static_nodes)
        yield rig


@pytest.fixture(autouse=True)
def settled(six: Rig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    set_speeds(six, Speeds())
    yield
    six.settle()


def started(rig: Rig, *words: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "cockpit", "--config", str(rig.config()), "nccl", *words]
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    )


def cockpit(rig: Rig, *words: str, code: int = 0) -> tuple[str, str]:
    process = started(rig, *words)
    out, err = process.communicate(timeout=180)
    assert process.returncode == code, (process.returncode, out.decode(), err.decode())
    return out.decode(), err.decode()


def cockpit_json(rig: Rig, *words: str, code: int = 0) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(cockpit(rig, *words, "--json", code=code)[0])
    return told


def queue(rig: Rig) -> str:
    return rig.slurm("squeue", "-h", "-a", "-o", "%j %T").stdout.decode()


def outputs(rig: Rig) -> set[Path]:
    return set((rig.state / "home").rglob("cockpit-nccl-*.out"))


def nothing_left(rig: Rig) -> bool:
    reservations = rig.slurm("scontrol", "-o", "show", "reservation").stdout.decode()
    return queue(rig) == "" and "cockpit" not in reservations


def test_a_run_on_two_nodes_prints_its_rows_and_is_kept(six: Rig) -> None:
    out, err = cockpit(six, "run", "gpu-st-p5-[1-2]", *WITH, "--yes")
    assert "UNJUDGED" in out  # two of eight GPUs: nothing is expected of that
    assert [line.split()[0] for line in out.splitlines() if line.rstrip().endswith("GB/s")] == list("1248")
    assert "ctrl-C cancels it" in err
    six.wait_for(lambda: nothing_left(six))
    (run,) = cockpit_json(six, "history")["runs"]
    assert run["nodes"] == ["gpu-st-p5-1", "gpu-st-p5-2"]
    assert run["busbw_large_gbs"] == pytest.approx(470, rel=0.02)
    assert run["transport"] == "efa"
    assert any("provider is efa" in line for line in run["proof"])
    # The next one is measured by the first.
    set_speeds(six, Speeds(pair_gbs=300))
    told = cockpit_json(six, "run", "--count", "2", "--sizes", "1G:8G", *WITH, "--yes", code=1)
    assert told["reading"]["verdict"] == "fail"
    assert told["kept"]


def test_no_line_is_cut_when_a_test_prints_all_at_once(six: Rig) -> None:
    """With --unbuffered srun cuts such a burst every 1,024 bytes: rows, and the proof that EFA was used."""
    before = outputs(six)
    out, _ = cockpit(six, "run", "gpu-st-p5-[1-2]", "--sizes", "8:8G", *WITH, "--yes")
    assert sum(line.rstrip().endswith("GB/s") for line in out.splitlines()) == 31
    (output,) = outputs(six) - before
    written = [line.removeprefix("0: ") for line in output.read_text().splitlines() if line.startswith("0: ")]
    asked = Asked(minimum=8, maximum=2**33, factor=2, warmup=5)
    assert written == list(whole_run(asked, ["gpu-st-p5-1", "gpu-st-p5-2"], 2, Speeds(), debug=True))


def test_a_dry_run_submits_nothing_and_a_busy_node_refuses(six: Rig) -> None:
    out, _ = cockpit(six, "run", "gpu-st-p5-[1-2]", *WITH, "--dry-run")
    assert "sbatch" in out
    assert "takes 4 GPUs on 2 nodes" in out
    assert queue(six) == ""
    cockpit(six, "run", *WITH, "--yes", code=2)
    cockpit(six, "run", "gpu-st-p5-[1-2]", *WITH, code=4)  # nobody there to confirm it
    assert queue(six) == ""


def test_what_a_node_has_is_found_and_what_it_lacks_is_said(six: Rig) -> None:
    told = cockpit_json(six, "run", "gpu-st-p5-[1-2]", "--mpi", "none", "--dry-run")
    assert any(f"{BINARY} " in word for word in told["plan"]["commands"][0])
    words = ("run", "gpu-st-p5-[1-2]", "--collective", "all_gather", "--mpi", "none", "--yes")
    _, err = cockpit(six, *words, code=4)
    assert "gpu-st-p5-1 lacks something for this test: no all_gather_perf in" in err
    assert queue(six) == ""


def test_a_test_that_fails_ends_with_its_error(six: Rig) -> None:
    set_speeds(six, Speeds(failing=["gpu-st-p5-2"]))
    told = cockpit_json(six, "run", "gpu-st-p5-[1-2]", *WITH, "--yes", code=1)
    assert told["reading"]["verdict"] == "fail"
    six.wait_for(lambda: nothing_left(six))


def test_a_sweep_over_six_nodes_names_the_slow_one(six: Rig) -> None:
    bad = six.static_nodes[3]
    set_speeds(six, Speeds(network={bad: 0.42}))
    out, _ = cockpit(six, "sweep", "gpu-st-p5-[1-6]", *WITH, "--yes", code=1)
    print(out)
    assert f"{bad}: 0.4" in out
    assert f"cockpit drain {bad}" in out
    assert "tests in" in out
    assert all(f"cockpit drain {node}" not in out for node in six.static_nodes if node != bad)
    six.wait_for(lambda: nothing_left(six))
    (run,) = cockpit_json(six, "history")["runs"]
    assert (run["kind"], run["verdict"], run["flags"]) == ("sweep", "fail", ["slow_node"])
    assert len(run["pairs"]) == 15


@pytest.mark.parametrize("words", [("run", "gpu-st-p5-[1-2]"), ("sweep", "gpu-st-p5-[1-6]")], ids=["run", "sweep"])
def test_ctrl_c_leaves_nothing_behind(six: Rig, words: tuple[str, ...]) -> None:
    set_speeds(six, Speeds(row_s=30))
    process = started(six, *words, *WITH, "--yes")
    six.wait_for(lambda: len(six.slurm("squeue", "-h", "-s", "-o", "%i").stdout.decode().split()) >= 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 130, (out.decode(), err.decode())
    assert nothing_left(six), (queue(six), err.decode())
    assert cockpit_json(six, "history")["runs"] == []


@pytest.mark.parametrize("moment", ["cockpit.cli_nccl_run._NcclSession._told", "actions.nccl_live.LiveTest.begin"])
def test_ctrl_c_between_sending_and_following_leaves_nothing_behind(
    six: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], moment: str
) -> None:
    def interrupted(*_: object) -> None:
        assert queue(six) != ""
        raise KeyboardInterrupt

    set_speeds(six, Speeds(row_s=30))
    monkeypatch.setattr(moment, interrupted)
    argv = ["--config", str(six.config()), "nccl", "run", "gpu-st-p5-[1-2]", *WITH, "--yes"]
    assert main(argv) == 130
    assert nothing_left(six), queue(six)
    assert "stopped; no job of it is left" in capsys.readouterr().err


@pytest.mark.parametrize("after", ["-> submit", "sent in", ": job", "ctrl-C cancels it", "running"])
def test_ctrl_c_at_any_moment_leaves_nothing_behind(six: Rig, after: str) -> None:
    set_speeds(six, Speeds(row_s=30))
    process = started(six, "run", "gpu-st-p5-[1-2]", *WITH, "--yes")
    assert process.stderr is not None
    while after.encode() not in (line := process.stderr.readline()):
        assert line, "it ended before"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 130, err.decode()
    six.wait_for(lambda: nothing_left(six), 10)
    assert cockpit_json(six, "history")["runs"] == []
