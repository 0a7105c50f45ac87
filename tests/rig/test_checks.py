"""`cockpit efa` over real SSH on a real Slurm: nodes with one fault each, and a pair; it says exactly that."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cockpit.checks.runner import LOOK_S
from cockpit.cli import main
from cockpit.demo.node_files import NodeFiles
from tests.rig import Rig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
HEALTHY, SHORT, RISING, WITHOUT = (f"gpu-st-p5-{number}" for number in range(1, 5))
# Mounted over the machine's own in that node's namespace only.
_MOUNTED = ("sys/class", "sys/module", "sys/devices/virtual", "sys/bus", "proc/meminfo", "proc/uptime")
_PINGPONG = r"""#!/bin/sh
for last; do :; done
case "$*" in
    *" -B "*) echo $$ >>"@PIDS@"; exec sleep 600 ;;
esac
echo 'bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec'
echo '256     10      =10      5k          0.00s     14.80      17.30       0.06'
echo '1m      10      =10      20m         0.01s   9800.00     107.00       0.01'
"""


class EfaNode:
    """What one node of the rig shows of a p5: a folder of files, mounted where they belong."""

    def __init__(self, rig: Rig, name: str) -> None:
        self._rig, self.name = rig, name
        self.folder = rig.state / "efa" / name
        shutil.rmtree(self.folder, ignore_errors=True)
        NodeFiles(self.folder, name, int(name[-1]), 1_700_000_000.0)
        shutil.rmtree(self.folder / "root/opt/gdrcopy")  # its module is a matter of the machine below
        self.folder.chmod(0o755)
        self._mount()

    def _mount(self) -> None:
        for place in _MOUNTED:
            self._inside("mount", "--bind", str(self.folder / place), f"/{place}")
        self._inside("mount", "--bind", str(self.folder / "root/opt"), "/opt")
        for name in ("upper", "work"):  # without them nothing below /dev could be opened for writing
            (self.folder / name).mkdir()
        lower, upper, work = self.folder / "dev", self.folder / "upper", self.folder / "work"
        layers = f"lowerdir={lower}:/dev,upperdir={upper},workdir={work}"
        self._inside("mount", "-t", "overlay", "-o", layers, "overlay", "/dev")
        for tool in ("fi_info", "fi_info.txt", "modinfo"):
            shutil.copy(self.folder / "tools" / tool, self._rig.tools(self.name) / tool)

    def unmount(self) -> None:
        for place in ("dev", "opt", *_MOUNTED):
            self._inside("umount", "-l", f"/{place}")
        for tool in ("fi_info", "fi_info.txt", "modinfo"):
            (self._rig.tools(self.name) / tool).unlink()

    def _inside(self, *argv: str) -> None:
        done = self._rig.inside(self.name, *argv)
        assert done.returncode == 0, (argv, done.stderr)

    def lose_device(self) -> None:
        name = sorted(path.name for path in (self.folder / "sys/class/infiniband").iterdir())[-1]
        (self.folder / "sys/class/infiniband" / name).unlink()
        sorted((self.folder / "dev/infiniband").iterdir())[-1].unlink()
        listed = self._rig.tools(self.name) / "fi_info.txt"
        blocks = listed.read_text().split("provider: efa\n")
        listed.write_text("provider: efa\n".join(block for block in blocks if f"domain: {name}-" not in block))

    def own_counter(self, counter: str) -> Path:
        """A counter of one device of which nothing is shared with others."""
        link = sorted((self.folder / "sys/class/infiniband").iterdir())[0]
        copy = self.folder / "efa/own"
        shutil.copytree(link.resolve(), copy, symlinks=True)
        link.unlink()
        link.symlink_to(copy)
        return copy / "ports/1/hw_counters" / counter

    def write(self, path: str, text: str) -> None:
        (self.folder / path).write_text(text)


@pytest.fixture
def nodes(rig: Rig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, EfaNode]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = {name: EfaNode(rig, name) for name in rig.static_nodes}
    try:
        yield made
    finally:
        for node in made.values():
            node.unmount()


def told(rig: Rig, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    path = rig.config("checks.yaml")
    # Where tests run nobody may raise slurmd's own limit; so this site is content with less.
    own = "{limits.memlock: {fail_kib: 1, warn_below_kib: 1}}"
    path.write_text(f"{path.read_text()}checks: {{thresholds: {own}}}\n")
    code = main([*words, "--json", "--config", str(path)])
    return code, json.loads(capsys.readouterr().out)


def findings(answer: dict[str, Any]) -> dict[str, list[str]]:
    """node -> `check: verdict: says` of everything that is neither fine nor not applicable."""
    return {
        node["node"]: [
            f"{check['check']}: {check['verdict']}: {check['says']}"
            for check in node["checks"]
            if check["verdict"] not in ("pass", "not applicable")
        ]
        for node in answer["nodes"]
    }


class Rising:
    """A counter that grows while the block lasts."""

    def __init__(self, file: Path) -> None:
        self._file, self._ended = file, threading.Event()
        self._thread = threading.Thread(target=self._rise, daemon=True)

    def _rise(self) -> None:
        count = 0
        while not self._ended.wait(0.05):
            count += 3
            self._file.with_name("new").write_text(f"{count}\n")
            self._file.with_name("new").replace(self._file)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def test_each_node_is_told_its_own_fault_and_nothing_else(
    rig: Rig, nodes: dict[str, EfaNode], capsys: pytest.CaptureFixture[str]
) -> None:
    nodes[SHORT].lose_device()
    shutil.rmtree(nodes[WITHOUT].folder / "root/opt/amazon/ofi-nccl")
    with Rising(nodes[RISING].own_counter("unresponsive_remote_events")):
        code, answer = told(rig, capsys, "efa", "--window", "1")
    assert code == 1
    found = findings(answer)
    assert found.pop(RISING)[0].startswith("efa.counters: fail: ")
    assert found == {
        HEALTHY: [],
        SHORT: ["efa.devices: fail: 31 of 32 devices"],
        WITHOUT: ["efa.plugin: fail: no libnccl-net*.so on the node: NCCL falls back to TCP"],
    }
    assert answer["drift"] == []
    assert {each["node"] for each in answer["left_out"]} == set(rig.dynamic_nodes)
    nodes[HEALTHY].write("root/opt/amazon/efa_installed_packages", "# EFA installer version: 1.27.0\n")
    code, answer = told(rig, capsys, "efa", HEALTHY, "--window", "0.2")
    assert code == 1
    assert findings(answer) == {HEALTHY: ["efa.installer: fail: 1.27.0, p5.48xlarge needs 1.29"]}


def test_one_slurm_job_tells_the_same_of_the_idle_nodes(
    rig: Rig, nodes: dict[str, EfaNode], capsys: pytest.CaptureFixture[str]
) -> None:
    nodes[SHORT].lose_device()
    shutil.rmtree(nodes[WITHOUT].folder / "root/opt/amazon/ofi-nccl")
    rig.submit("sleep 300", nodelist=RISING, exclusive=True)
    rig.wait_for(lambda: RISING in rig.slurm("squeue", "-h", "-t", "R", "-o", "%N").stdout.decode())
    code, over_ssh = told(rig, capsys, "efa", "--window", "0.2")
    assert code == 1
    code, by_job = told(rig, capsys, "efa", "--job", "--yes")
    assert code == 1
    same = findings(over_ssh)
    assert same.pop(RISING) == []
    assert findings(by_job) == same
    assert by_job["left_out"] == [{"node": RISING, "why": "is allocated"}, *over_ssh["left_out"]]
    # Nothing but the job that was there before is left, and the record names what was sent.
    rig.wait_for(lambda: rig.slurm("squeue", "-h", "-o", "%j").stdout.decode().split() == ["sbatch"])
    assert main(["audit", "--config", str(rig.config())]) == 0
    assert "srun --job-name=cockpit-look-" in capsys.readouterr().out


def test_a_node_that_hangs_is_named_and_the_others_answer(
    rig: Rig, nodes: dict[str, EfaNode], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cockpit.checks.runner.DIAL_S", 3.0)
    monkeypatch.setitem(LOOK_S, "efa", 10.0)
    rig.freeze(SHORT)
    try:
        code, answer = told(rig, capsys, "efa", "--window", "0.2")
    finally:
        rig.thaw(SHORT)
    assert code == 1
    errors = {node["node"]: node["error"] for node in answer["nodes"]}
    assert errors.pop(SHORT)["kind"] == "timeout"
    assert errors == dict.fromkeys((HEALTHY, RISING, WITHOUT))


def test_a_pair_over_two_nodes_leaves_nothing(
    rig: Rig, nodes: dict[str, EfaNode], capsys: pytest.CaptureFixture[str]
) -> None:
    pids = rig.state / "pingpong.pids"
    pids.touch(mode=0o666)
    for name in (HEALTHY, RISING):
        file = rig.tools(name) / "fi_pingpong"
        file.write_text(_PINGPONG.replace("@PIDS@", str(pids)))
        file.chmod(0o755)
    code, answer = told(rig, capsys, "efa", "--pair", HEALTHY, RISING, "--yes")
    (pair,) = answer["pairs"]
    assert (code, pair["verdict"], pair["says"]) == (0, "pass", "17 µs, 9,800 MB/s at 1 MiB"), pair
    assert pids.read_text().split()
    looks = ("pgrep", "-f", "[f]i_pingpong")  # not itself
    rig.wait_for(lambda: rig.inside(HEALTHY, *looks).returncode == 1, 15, "the server to end")


def test_health_over_the_stand_in_of_nvml(rig: Rig, capsys: pytest.CaptureFixture[str], tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    from tests.rig.nvml import missing

    if (reason := missing()) is not None:
        pytest.skip(reason)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rig.nvml(SHORT).ecc(3, uncorrected=2)
    rig.nvml(RISING).nvlinks_down(3, 5)
    _, answer = told(rig, capsys, "check")
    found = {
        node["node"]: {check["check"] for check in node["checks"] if check["verdict"] == "fail"}
        for node in answer["nodes"]
    }
    assert {name: {check for check in checks if check.startswith("gpu.")} for name, checks in found.items()} == {
        HEALTHY: set(),
        SHORT: {"gpu.ecc"},
        RISING: {"gpu.nvlink"},
        WITHOUT: set(),
    }
