"""What the probe costs its node: processor of all its processes, and bytes for each GPU and sample."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from cockpit.hosts.local import LocalHost
from cockpit.probe.bundle import probe_argv, probe_stdin
from cockpit.sources.gpus import SLOW_S
from tests.rig.nvml import missing
from tests.rig.nvml.build import install
from tests.rig.nvml.control import NvmlControl
from tests.rig.procs import descendants

GPUS, INTERVAL_S = 8, 2.0
_TICKS = os.sysconf("SC_CLK_TCK")


def measure_probe(seconds: float) -> dict[str, Any]:
    """Run the probe on a library with NVML's ABI and 8 GPUs; raises ValueError where that cannot be built."""
    if (why := missing()) is not None:
        raise ValueError(why)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LD_LIBRARY_PATH"] = str(install(Path(folder)).parent)
        os.environ["NVML_STAND_IN"] = str(Path(folder) / "state")
        NvmlControl(Path(folder) / "state", gpus=GPUS).load(95)
        return _watch(seconds)


def _watch(seconds: float) -> dict[str, Any]:
    known = set(descendants(os.getpid()))
    stream = LocalHost().stream(probe_argv(INTERVAL_S, slow=SLOW_S), open_deadline_s=10, stdin=probe_stdin())
    lines: list[bytes] = []
    thread = threading.Thread(target=lambda: lines.extend(stream), daemon=True)
    thread.start()
    try:
        time.sleep(5.0)  # start-up is not what a node pays for
        before, began, first = _cpu_s(known), time.monotonic(), len(lines)
        time.sleep(seconds)
        used_s, took_s = _cpu_s(known) - before, time.monotonic() - began
    finally:
        stream.close()
    samples = [line for line in lines[first:] if b'"k":"s"' in line]
    if not any(b'"g":' in line for line in samples):
        raise ValueError("the probe told nothing of GPUs")
    size = sum(len(line) + 1 for line in lines[first:]) / len(samples)
    return {
        "probe_cpu_pct": round(100 * used_s / took_s, 2),
        "probe_sample_bytes": round(size),
        "probe_gpu_bytes": round(size / GPUS),
    }


def _cpu_s(known: set[int]) -> float:
    """Processor seconds of the probe's processes, those that have ended included."""
    total = 0
    for pid in set(descendants(os.getpid())) - known:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / _TICKS
