"""The nvidia-smi stand-in: rows, lists, and what it says when something is wrong."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.nvml import NvmlControl, install, install_smi, missing
from tests.rig.nvml.control import NO_PERMISSION, NOT_SUPPORTED

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")
Smi = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    install(folder)
    install_smi(folder)
    return folder


@pytest.fixture
def control(tmp_path: Path) -> NvmlControl:
    return NvmlControl(tmp_path / "state", seed="node")


@pytest.fixture
def env(library: Path, control: NvmlControl) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STAND_IN": str(control.path)}


@pytest.fixture
def smi(library: Path, env: dict[str, str]) -> Smi:
    def run(*argv: str) -> tuple[int, str]:
        done = subprocess.run(
            [str(library / "nvidia-smi"), *argv], env=env, capture_output=True, timeout=20, check=False
        )
        assert done.stderr == b""
        return done.returncode, done.stdout.decode("utf-8", "replace")

    return run


def test_smi_rows(smi: Smi, control: NvmlControl) -> None:
    control.values(0, temp=40, util=7, power_w=120, mem_used_mib=512)
    control.field(82, NOT_SUPPORTED, 0)
    wish = "--query-gpu=index,pci.bus_id,temperature.gpu,temperature.memory,utilization.gpu,memory.used,power.draw"
    status, shown = smi(wish, "--format=csv")
    header, first, *rest = shown.splitlines()
    assert (status, len(rest)) == (0, 7)
    assert header == (
        "index, pci.bus_id, temperature.gpu, temperature.memory, utilization.gpu [%], memory.used [MiB], power.draw [W]"
    )
    assert first == "0, 00000000:53:00.0, 40, [N/A], 7 %, 512 MiB, 120.00 W"
    plain = smi(wish, "--format=csv,noheader,nounits")[1]
    assert plain.splitlines()[0] == "0, 00000000:53:00.0, 40, [N/A], 7, 512, 120.00"


def test_smi_lists_gpus_processes_and_remapped_rows(smi: Smi, control: NvmlControl) -> None:
    control.process(1, 4321, None)
    control.remap(1, pending=True)
    assert smi("-L")[1].splitlines()[2] == f"GPU 2: NVIDIA H100 80GB HBM3 (UUID: {control.uuid(2)})"
    assert smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader") == (0, "4321, [N/A]\n")
    rows = smi("--query-remapped-rows=gpu_bus_id,remapped_rows.pending", "--format=csv,noheader")[1].splitlines()
    assert rows[:2] == ["00000000:53:00.0, 0", "00000000:64:00.0, 1"]


def test_smi_says_what_is_wrong(smi: Smi, control: NvmlControl, env: dict[str, str]) -> None:
    status, shown = smi("--query-gpu=index,nonsense", "--format=csv")
    assert (status, shown.strip()) == (2, 'Field "nonsense" is not a valid field to query.')
    control.lost(2)
    handle = "Unable to determine the device handle for GPU 0000:75:00.0: "
    assert smi("-L") == (15, f"{handle}GPU is lost.  Reboot the system to recover this GPU\n")
    control.failing(2)
    assert smi("-L") == (255, f"{handle}Unknown Error\n")
    control.well()
    control.driver(matches=False)
    assert smi("-L") == (
        18,
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n",
    )
    control.driver(loaded=False)
    status, shown = smi("-L")
    assert status == 9
    assert shown.startswith("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    control.driver()
    control.count(0)
    assert smi("-L") == (6, "No devices were found\n")
    env["LD_LIBRARY_PATH"] = ""
    status, shown = smi("-L")
    assert status == 12
    assert "couldn't find libnvidia-ml.so" in shown


def test_smi_shows_an_error_in_a_single_field(smi: Smi, control: NvmlControl) -> None:
    control.function("nvmlDeviceGetTemperature", 999, 0)
    control.function("nvmlDeviceGetSerial", NO_PERMISSION)
    status, shown = smi("--query-gpu=index,temperature.gpu,serial", "--format=csv,noheader")
    assert (status, shown.splitlines()[0]) == (0, "0, [Unknown Error], [Insufficient Permissions]")
