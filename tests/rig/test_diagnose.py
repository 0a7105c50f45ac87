"""Hung jobs with real ranks on three nodes: the verdict names rank and node, and the job does not notice."""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli import main
from cockpit.cluster import Cluster
from cockpit.config_file import load_config
from cockpit.diagnosis.diagnose import Diagnosis, diagnose
from cockpit.gather import Gatherer
from tests.rig import Rig, procs
from tests.rig.ranks import script

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
NODES = 3
WORLD = 24
ODD = 13  # the sixth rank of the second node
PYSPY = Path(sys.executable).with_name("py-spy")


@contextmanager
def job_with(rig: Rig, folder: Path, fault: str, *, tasks: int = WORLD, python: str = sys.executable) -> Iterator[int]:
    """A running job whose ranks have come to step 3, or to where they hang."""
    folder.chmod(0o777)
    names = rig.static_nodes[:NODES]
    master = (rig.layout.address(names[0]), 29_400 + rig.layout.instance)
    text = script(folder, python, fault, odd=ODD, world=WORLD, tasks=tasks, master=master)
    output = str(folder / "out-%j.txt")
    job = rig.submit(text, nodes=NODES, ntasks_per_node=8, nodelist=",".join(names), output=output, overcommit=True)
    log = folder / f"out-{job}.txt"

    def reached() -> bool:
        if fault == "never" or tasks < WORLD:
            return len(ranks_on(rig)) >= tasks
        return log.exists() and "step 2" in log.read_text()

    rig.wait_for(reached, 60, "the ranks to come to step 2")
    rig.wait_for(lambda: len(ranks_on(rig)) >= WORLD - 1 - (WORLD - tasks), 20, "the ranks")
    try:
        yield job
    finally:
        rig.slurm("scancel", "-s", "KILL", str(job))


def ranks_on(rig: Rig) -> dict[int, tuple[str, int]]:
    """pid (as this machine sees it) -> state and CPU ticks of every rank on this rig's nodes."""
    found = {}
    for pid in [pid for name in rig.static_nodes for pid in rig.pids(name)]:
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"\0RANK=" in b"\0" + environ and procs.program(pid) not in ("sh", "bash", "srun"):
            found[pid] = (stat[0], int(stat[11]) + int(stat[12]))
    return found


def diagnosis_of(rig: Rig, job: int) -> Diagnosis:
    cluster = Cluster(next(iter(load_config(rig.config()).clusters.values())), watch_gpus=False)
    try:
        cluster.read_once()
        return diagnose(Gatherer(cluster, str(job)).run())
    finally:
        cluster.stop()


def command(rig: Rig, *words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["--config", str(rig.config()), *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("fault", "id_", "words"),
    [
        ("sleeps", "rank-elsewhere", "write_summary"),
        ("dies", "rank-died", "gone"),
        ("stops", "rank-stopped", "stopped (state T)"),
        ("fifo", "data-loader", "load_batch"),
        ("never", "rank-never-started", "runs sleep"),
    ],
)
def test_the_verdict_names_rank_and_node_and_leaves_the_job_as_it_was(
    rig: Rig, tmp_path: Path, fault: str, id_: str, words: str
) -> None:
    if not PYSPY.exists():
        pytest.skip("py-spy is not installed beside this Python")
    with job_with(rig, tmp_path, fault) as job:
        before = rig.wait_for(lambda: settled(rig), 20, "the ranks to stand still")
        found = diagnosis_of(rig, job)
        after = ranks_on(rig)
    told = "\n".join(each.sentence for each in found.hypotheses)
    assert found.verdict.state == "hung", told
    assert found.verdict.ranks == (ODD,), told
    assert found.verdict.nodes == (rig.static_nodes[1],), told
    assert found.hypotheses[0].id == id_, told
    assert words in found.verdict.sentence
    assert found.verdict.confidence in ("certain", "likely")
    assert found.verdict.final
    assert found.evidence.took_s < 10
    assert len(found.evidence.ranks) == WORLD
    assert after == before


def settled(rig: Rig) -> dict[int, tuple[str, int]]:
    """The ranks when two looks see the same, {} while they still move."""
    import time

    first = ranks_on(rig)
    time.sleep(0.5)
    return first if first == ranks_on(rig) else {}


def test_a_task_that_slurm_never_launched(rig: Rig, tmp_path: Path) -> None:
    with job_with(rig, tmp_path, "fine", tasks=WORLD - 1) as job:
        found = diagnosis_of(rig, job)
    assert found.hypotheses[0].id == "rank-never-started", found.verdict
    assert found.verdict.ranks == (WORLD - 1,)
    assert found.verdict.nodes == (rig.static_nodes[2],)


def test_all_fine_is_not_hung(rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with job_with(rig, tmp_path, "fine") as job:
        code, told = command(rig, "diagnose", str(job), capsys=capsys)
    assert told["verdict"]["state"] == "not hung", told["hypotheses"]
    assert told["verdict"]["ranks"] == []
    assert code == 0
    assert len(told["evidence"]["ranks"]) == WORLD
    assert {node["node"] for node in told["evidence"]["nodes"]} == set(rig.static_nodes[:NODES])


def test_without_stacks_the_kernel_tells(rig: Rig, tmp_path: Path) -> None:
    """The system's own Python has no py-spy beside it."""
    if rig.inside(rig.static_nodes[0], "sh", "-c", "command -v py-spy").returncode == 0:
        pytest.skip("py-spy is on every node's PATH")
    with job_with(rig, tmp_path, "sleeps", python="/usr/bin/python3") as job:
        rig.wait_for(lambda: settled(rig), 20, "the ranks to stand still")
        found = diagnosis_of(rig, job)
    assert (found.verdict.state, found.verdict.ranks) == ("hung", (ODD,)), found.hypotheses
    assert found.verdict.nodes == (rig.static_nodes[1],)
    assert any(what.startswith("stacks on") for what, _ in found.evidence.missing)


def test_a_shipped_py_spy_gives_the_stacks_and_leaves_nothing(
    rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not PYSPY.exists() or rig.inside(rig.static_nodes[0], "sh", "-c", "command -v py-spy").returncode == 0:
        pytest.skip("no py-spy to send, or it is on every node's PATH")
    with job_with(rig, tmp_path, "sleeps", python="/usr/bin/python3") as job:
        before = rig.wait_for(lambda: settled(rig), 20, "the ranks to stand still")
        _, told = command(rig, "diagnose", str(job), "--ship-py-spy", str(PYSPY), capsys=capsys)
        after = ranks_on(rig)
    assert told["verdict"]["ranks"] == [ODD], told["verdict"]
    assert "write_summary" in told["verdict"]["sentence"]
    assert told["evidence"]["stacks"][0]["ranks"] == [ODD]
    assert any(place.startswith("write_summary") for place in told["evidence"]["stacks"][0]["stack"])
    assert after == before
    for name in rig.static_nodes[:NODES]:
        found = rig.inside(name, "sh", "-c", "ls -d /tmp/cockpit-py-spy-* /var/tmp/cockpit-py-spy-* 2>/dev/null")
        assert found.stdout in (b"", ""), name


def test_the_bundle_says_offline_what_was_said_live(
    rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.tar.gz"
    with job_with(rig, tmp_path, "stops") as job:
        rig.wait_for(lambda: settled(rig), 20, "the ranks to stand still")
        _, live = command(rig, "bundle", str(job), "--output", str(path), capsys=capsys)
    assert path.stat().st_mode & 0o777 == 0o600
    code = main(["diagnose", "--from", str(path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 1
    assert {key: told[key] for key in ("verdict", "hypotheses", "evidence", "missing")} == {
        key: live[key] for key in ("verdict", "hypotheses", "evidence", "missing")
    }
    assert (told["verdict"]["ranks"], told["verdict"]["nodes"]) == ([ODD], [rig.static_nodes[1]])
    with tarfile.open(path) as tar:
        names = {name.rpartition("/")[2] for name in tar.getnames()}
    assert {"report.md", "evidence.json", "earlier.json", f"{rig.static_nodes[1]}.jsonl"} <= names


def test_nothing_of_the_look_stays_on_a_node(rig: Rig, tmp_path: Path) -> None:
    with job_with(rig, tmp_path, "stops") as job:
        before = programs(rig)
        diagnosis_of(rig, job)
        rig.wait_for(lambda: programs(rig) <= before, 10, f"the look to end: {programs(rig) - before}")


def programs(rig: Rig) -> set[str]:
    """What runs on a node of the job, without sshd's own."""
    told = rig.inside(rig.static_nodes[0], "ps", "-e", "-o", "pid=,comm=").stdout.decode()
    return {line for line in told.splitlines() if not line.endswith(("ps", "sshd", "nsenter", "timeout"))}


def test_a_frozen_node_is_told_and_nothing_waits_for_it(rig: Rig, tmp_path: Path) -> None:
    with job_with(rig, tmp_path, "fine") as job:
        rig.freeze(rig.static_nodes[2])
        try:
            found = diagnosis_of(rig, job)
        finally:
            rig.thaw(rig.static_nodes[2])
    assert found.evidence.took_s < 11
    assert (found.verdict.state, found.verdict.nodes) == ("hung", (rig.static_nodes[2],)), found.verdict
    assert not found.verdict.final
    assert found.verdict.ranks == tuple(range(16, 24))


def test_a_job_that_ended_and_one_that_is_not_there(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    job = rig.submit("echo 'OSError: [Errno 28] No space left on device'; exit 3", output="/tmp/ended-%j.txt")
    rig.wait_for(lambda: b"FAILED" in rig.slurm("scontrol", "show", "job", str(job)).stdout, 30, "the job to fail")
    code, told = command(rig, "diagnose", str(job), capsys=capsys)
    assert (code, told["verdict"]["state"]) == (0, "ended")
    assert "no space left" in told["verdict"]["sentence"]
    assert main(["--config", str(rig.config()), "diagnose", "999999"]) == 3
    assert main(["--config", str(rig.config()), "diagnose", "nonsense"]) == 2
