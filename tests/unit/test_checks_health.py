"""`cockpit check` on a node with one fault each, over the real agent and a simulated machine."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from cockpit.checks.facts import Known
from cockpit.checks.models import Verdict
from cockpit.config import CheckSettings, OwnCheck
from tests.unit.check_node import FolderNode, found

NO_GPUS = Known("gpu-1", jobs=())


@pytest.fixture
def node(tmp_path: Path) -> FolderNode:
    """A machine without GPUs: those are tested over NVML's stand-in (tests/rig) and the demo."""
    made = FolderNode(tmp_path)
    shutil.rmtree(made.folder / "sys/bus/pci/devices")
    made.write("sys/devices/virtual/dmi/id/product_name", "c5n.18xlarge\n")
    shutil.rmtree(made.folder / "dev")
    return made


def test_a_machine_in_order(node: FolderNode) -> None:
    told = node.check("health", NO_GPUS)
    assert found(told, Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN) == {}
    assert told.of("gpu.count") is not None
    assert told.of("gpu.count").verdict is Verdict.NA  # type: ignore[union-attr]


def test_gpus_that_slurm_counts_and_no_driver_tells(node: FolderNode) -> None:
    told = node.check("health", Known("gpu-1", gpus=8, jobs=()))
    assert "gpu.driver" in found(told, Verdict.FAIL)


def kmsg(node: FolderNode, *lines: str) -> None:
    offset = time.clock_gettime(time.CLOCK_MONOTONIC)
    with (node.folder / "kmsg").open("ab") as file:
        for number, line in enumerate(lines):
            file.write(f"3,{number},{int((offset - 60) * 1e6)},-;{line}\n".encode().ljust(8192, b"\0"))


def test_what_the_kernel_complains_of(node: FolderNode) -> None:
    kmsg(
        node,
        "Out of memory: Killed process 4242 (python3) total-vm:1kB",
        "efa 0000:51:00.0: The device didn't send any completion for admin cmd",
    )
    told = node.check("health", NO_GPUS)
    assert found(told, Verdict.WARN) == {"host.oom": "1 time: python3"}
    assert list(found(told, Verdict.FAIL)) == ["host.kernel"]


def test_an_xid_of_hardware(node: FolderNode) -> None:
    kmsg(node, "NVRM: Xid (PCI:0000:61:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
    told = node.check("health", Known("gpu-1", gpus=8, jobs=())).of("gpu.xid")
    assert told is not None
    assert told.verdict is Verdict.FAIL
    assert "79" in told.says
    assert "off the bus" in told.evidence[0]
    assert told.next_step


def test_full_disks_and_mounts_that_do_not_answer(node: FolderNode) -> None:
    df = node.folder / "df"
    full, hangs = "/) echo '[1000,980,20,1000,10]' ;;", "/fsx) sleep 60 ;;"
    df.write_text(f"#!/bin/sh\ncase $1 in {full} {hangs} *) echo '[1000,1,999,9,1]' ;; esac\n")
    told = node.check("health", NO_GPUS)
    assert found(told, Verdict.FAIL) == {"host.mounts": "/fsx: no answer", "host.disk": "/ 98 % of 1000M"}


def test_clocks(node: FolderNode) -> None:
    node.tool(
        "chronyc", "echo 'System time     : 1.500000000 seconds fast of NTP time'; echo 'Leap status     : Normal'"
    )
    assert found(node.check("health", NO_GPUS)) == {"host.clock": "1.5e+03 ms fast"}
    node.tool("chronyc", "echo 'Leap status     : Not synchronised'")
    assert found(node.check("health", NO_GPUS)) == {"host.clock": "not synchronised"}
    node.tool("chronyc", "exit 127")
    node.tool("timedatectl", "echo no")
    assert found(node.check("health", NO_GPUS)) == {"host.clock": "not synchronised"}


def test_processes_in_the_kernel(node: FolderNode) -> None:
    for pid, name, channel in ((900, "python3", "rpc_wait_bit_killable"), (901, "nvidia-smi", "os_acquire_mutex")):
        node.write(f"proc/{pid}/stat", f"{pid} ({name}) D 1 {'0 ' * 17}900 0 0\n")
        node.write(f"proc/{pid}/wchan", channel)
        told = node.check("health", NO_GPUS).of("host.stuck")
        assert told is not None
        assert told.verdict is (Verdict.WARN if pid == 900 else Verdict.FAIL)
        assert any(channel in line for line in told.evidence)


def test_a_sites_own_commands(node: FolderNode) -> None:
    own = (
        OwnCheck("fine", ("sh", "-c", "echo all is well")),
        OwnCheck("bad", ("sh", "-c", "echo it burns; exit 3"), severity="fail", next_step="run"),
        OwnCheck("nagios", ("sh", "-c", "echo hm; exit 1"), parse="nagios"),
        OwnCheck("hot", ("echo", "temp=91.5 C"), parse="number", pattern=r"temp=([0-9.]+)", above=90),
        OwnCheck("word", ("echo", "state: broken"), parse="match", pattern="state: ok"),
        OwnCheck("absent", ("no-such-program-anywhere",)),
        OwnCheck("slow", ("sleep", "60"), timeout_s=0.3),
        OwnCheck("elsewhere", ("false",), kinds=("efa",)),
    )
    told = node.check("health", NO_GPUS, CheckSettings(commands=own))
    assert found(told, Verdict.FAIL) == {"own.bad": "it burns"}
    assert found(told, Verdict.WARN) == {
        "own.nagios": "hm",
        "own.hot": "91.5, limit 90",
        "own.word": "state: broken",
    }
    assert set(found(told, Verdict.UNKNOWN)) == {"own.absent", "own.slow"}
    assert told.of("own.fine") is not None
    assert told.of("own.elsewhere") is None
    assert told.drain_reason == "bad: it burns"
