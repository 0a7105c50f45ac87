"""Nodes where NVML cannot be used: nvidia-smi's text, no Python at all, Neuron."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cockpit.gpu_models import DriverState, Lack, Missing, known
from cockpit.probe.agent.smi import FIELDS
from cockpit.probe.bundle import probe_argv
from tests.rig.procs import program
from tests.sshd import wait_for
from tests.unit.probe_runs import Run, all_gone

ROW = {
    "index": "0", "uuid": "GPU-1", "pci.bus_id": "00000000:53:00.0", "name": "NVIDIA H100 80GB HBM3", "serial": "165",
    "driver_version": "535.183.01", "mig.mode.current": "Disabled", "memory.total": "81559", "clocks.max.sm": "1980",
    "pcie.link.gen.max": "5", "pcie.link.width.max": "16", "utilization.gpu": "93", "utilization.memory": "41",
    "memory.used": "70211", "temperature.gpu": "61", "temperature.memory": "74", "power.draw": "612.43",
    "clocks.current.sm": "1755", "clocks_throttle_reasons.active": "0x0000000000000004", "power.limit": "700.00",
    "ecc.errors.corrected.volatile.total": "0", "ecc.errors.uncorrected.volatile.total": "0",
    "pcie.link.gen.current": "5", "pcie.link.width.current": "16",
}  # fmt: skip

Smi = Callable[[str], Path]


def csv(place: int = 0, **changes: str) -> str:
    """One row as nvidia-smi prints it."""
    cells = {**ROW, "index": str(place), "uuid": f"GPU-{place + 1}", "pci.bus_id": f"00000000:{0x53 + place:02X}:00.0"}
    return ", ".join({**cells, **changes}[field] for field in FIELDS)


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def says(path: Path, text: str, status: int = 0) -> Path:
    """A program that prints this and ends."""
    return script(path, f"cat <<'END'\n{text}\nEND\nexit {status}")


def start(smi: Path, **options: str | float) -> Run:
    return Run({"nvidia_smi": str(smi), **options}, env={"LD_LIBRARY_PATH": "/no-such-directory"})


def test_rows_of_nvidia_smi(tmp_path: Path) -> None:
    smi = says(tmp_path / "nvidia-smi", "\n".join(csv(place) for place in range(8)))
    with start(smi) as run:
        reading = run.until(lambda reading: reading.gpus)
    assert reading.driver.state is DriverState.SMI
    assert reading.driver.version == "535.183.01"
    assert len(reading.gpus) == 8
    sample = reading.gpus[7]
    assert (sample.gpu.key, sample.gpu.pci, sample.gpu.index) == ("GPU-8", "0000:5a:00", 7)
    assert (sample.util_pct, sample.mem_used_mib, sample.power_w) == (93, 70211, 612.43)
    assert sample.throttle == ("power cap",)
    assert (sample.power_limit_w, sample.ecc_uncorrected, sample.pcie_width) == (700, 0, 16)
    assert isinstance(sample.nvlinks, Missing)
    assert sample.nvlinks.kind is Lack.FAILED


@pytest.mark.parametrize(
    ("text", "status", "words", "code"),
    [
        ("No devices were found", 6, "No devices were found", 6),
        ("Failed to initialize NVML: Driver/library version mismatch", 18, "version mismatch", 18),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.",
            9,
            "couldn't communicate",
            9,
        ),
        ("Something nobody has seen before", 255, "driver error: Something nobody", None),
    ],
)
def test_texts_for_the_whole_node(tmp_path: Path, text: str, status: int, words: str, code: int | None) -> None:
    with start(says(tmp_path / "nvidia-smi", text, status)) as run:
        reading = run.until(lambda reading: reading.driver.state is DriverState.FAILED)
    assert words in reading.driver.why
    assert reading.driver.code == code
    assert reading.gpus == ()


def test_a_gpu_without_handle_keeps_its_row(tmp_path: Path) -> None:
    text = "Unable to determine the device handle for GPU 0000:54:00.0: Unknown Error"
    with start(says(tmp_path / "nvidia-smi", text, 15)) as run:
        reading = run.until(lambda reading: reading.gpus)
    [sample] = reading.gpus
    assert sample.gpu.pci == "0000:54:00"
    assert sample.lost is not None
    assert sample.lost.kind is Lack.LOST
    assert "fell off the bus" in reading.driver.why


def test_an_unknown_field_is_dropped_or_renamed(tmp_path: Path) -> None:
    # A driver that knows the new name of the throttle mask, and no memory temperature.
    smi = script(
        tmp_path / "nvidia-smi",
        'for field in clocks_throttle_reasons.active temperature.memory; do case "$1" in *$field*)\n'
        'echo "Field \\"$field\\" is not a valid field to query."; exit 2;; esac; done\n'
        f"case \"$1\" in *clocks_event_reasons.active*) echo '{csv().replace('74, ', '')}';; esac",
    )
    with start(smi) as run:
        reading = run.until(lambda reading: reading.gpus)
    [sample] = reading.gpus
    assert sample.throttle == ("power cap",)
    assert isinstance(sample.hbm_temp_c, Missing)
    assert (sample.temp_c, sample.power_w) == (61, 612.43)


def test_a_hung_nvidia_smi_is_ended_and_told(tmp_path: Path) -> None:
    smi = script(tmp_path / "nvidia-smi", "sleep 300")
    with start(smi, driver_hung=0.6) as run:
        reading = run.until(lambda reading: reading.driver.state is DriverState.HUNG)
        assert reading.driver.since == pytest.approx(time.time(), abs=20)
        assert reading.load
        assert wait_for(lambda: not [pid for pid in run.children() if program(pid) in ("sleep", "nvidia-smi")], 5)


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH with the tools of every system, but no Python."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ["sh", "cat", "sed", "awk", "tr", "date", "uname", "dd", "head", "grep", "cut", "sleep", "timeout"]:
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(os.path.realpath(found))
    return str(tools)


def without_python(path: str) -> list[str]:
    """The command with only this PATH, and with none of the absolute paths of Python."""
    argv = probe_argv(0.3)
    argv[2] = argv[2].replace("/usr/bin/python3", "/gone/python3").replace("/opt/", "/gone/")
    argv[2] = argv[2].replace("/usr/local/bin/python3", "/gone/python3")
    return ["env", f"PATH={path}", *argv]


def test_without_python_the_shell_asks_nvidia_smi(bare_path: str, tmp_path: Path) -> None:
    quoted = csv(name='NVIDIA "odd" \\ H100')
    says(Path(bare_path) / "nvidia-smi", f"{quoted}\n{csv(1)}")
    with Run(argv=without_python(bare_path)) as run:
        reading = run.until(lambda reading: len(reading.gpus) == 2 and reading.number >= 2)
        assert reading.hostname == os.uname().nodename
        assert reading.gpus[0].gpu.name == 'NVIDIA "odd" \\ H100'
        assert reading.gpus[1].util_pct == 93
        assert len(reading.load) == 3
        assert reading.mem_total_mib is not None
        assert "no python3" in reading.not_read["everything but nvidia-smi"]
        assert run.reader.bad_lines == 0
        below = run.children()
        run.close_stdin()
        assert wait_for(lambda: all_gone(below), 2.0)


def test_without_python_an_unknown_field_is_dropped(bare_path: str) -> None:
    script(
        Path(bare_path) / "nvidia-smi",
        'case "$1" in *temperature.memory*) echo "Field \\"temperature.memory\\" is not a valid field to query."\n'
        f"exit 2;; *) echo '{csv().replace('74, ', '')}';; esac",
    )
    with Run(argv=without_python(bare_path)) as run:
        reading = run.until(lambda reading: reading.gpus)
    assert (reading.gpus[0].temp_c, reading.gpus[0].power_w) == (61, 612.43)


def test_without_python_and_without_nvidia_smi(bare_path: str) -> None:
    with Run(argv=without_python(bare_path)) as run:
        reading = run.until(lambda reading: reading.number >= 2)
    assert reading.not_read["GPUs"] == "no python3 and no nvidia-smi on this node"
    assert reading.driver.state is DriverState.FAILED
    assert "no nvidia-smi" in reading.driver.why


LS = [
    {
        "neuron_device": place,
        "bdf": f"0000:{0x10 + place:02x}:1e.0",
        "connected_to": None,
        "nc_count": 2,
        "memory_size": 34359738368,
        "neuroncore_ids": [2 * place, 2 * place + 1],
        "neuron_processes": [],
    }
    for place in range(2)
]
MONITOR = {
    "neuron_runtime_data": [
        {
            "pid": 2199,
            "report": {
                "neuroncore_counters": {
                    "period": 5.0,
                    "neuroncores_in_use": {"0": {"neuroncore_utilization": 80.0}, "1": {"neuroncore_utilization": 40}},
                    "error": "",
                },
                "memory_used": {
                    "neuron_runtime_used_bytes": {
                        "usage_breakdown": {"neuroncore_memory_usage": {"0": {"tensors": 2 << 30, "code": 1 << 30}}}
                    }
                },
            },
        }
    ],
    "neuron_hardware_info": {"neuron_device_type": "trainium", "neuron_device_count": 2},
}


@pytest.fixture
def neuron(tmp_path: Path) -> Mapping[str, str]:
    says(tmp_path / "neuron-ls", json.dumps(LS, indent=4))
    script(tmp_path / "neuron-monitor", f"while :; do echo {shlex.quote(json.dumps(MONITOR))}; sleep 0.3; done")
    return {"neuron_ls": str(tmp_path / "neuron-ls"), "neuron_monitor": str(tmp_path / "neuron-monitor")}


def test_neuron_devices(neuron: Mapping[str, str]) -> None:
    with Run(neuron) as run:
        reading = run.until(lambda reading: any(known(sample.util_pct) for sample in reading.gpus))
        below = run.children()
        run.close_stdin()
        assert wait_for(lambda: all_gone(below), 2.0)
    assert reading.driver.state is DriverState.NEURON
    busy, idle = reading.gpus
    assert busy.gpu.name == "Trainium"
    assert (busy.gpu.pci, busy.gpu.mem_total_mib) == ("0000:10:1e", 32768)
    assert (busy.util_pct, busy.mem_used_mib) == (60, 3072)
    assert idle.util_pct == 0
    assert isinstance(idle.mem_used_mib, Missing)
    assert isinstance(busy.power_w, Missing)
    assert busy.power_w.kind is Lack.UNSUPPORTED


def test_neuron_ls_that_fails_is_told(tmp_path: Path) -> None:
    program = says(tmp_path / "neuron-ls", "neuron-ls: no driver", 1)
    with Run({"neuron_ls": str(program)}) as run:
        reading = run.until(lambda reading: "neuron-ls" in reading.driver.why)
    assert reading.driver.state is DriverState.NEURON
    assert "status 1" in reading.driver.why
