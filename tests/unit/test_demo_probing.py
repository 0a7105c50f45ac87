"""How the demo gets between the probe and its node: what is swapped, and that nothing else is."""

from __future__ import annotations

import ast
import re
import time
import types
from pathlib import Path

import pytest

from cockpit.demo import fake_kernel, fake_nvml
from cockpit.demo.gpu_state import node_ranks, node_state
from cockpit.demo.node_files import NodeFiles
from cockpit.demo.probing import GpuFarm, PynvmlSwap
from cockpit.demo.sim import Simulation
from cockpit.hosts.base import command_line
from cockpit.probe.agent import nvml_gpu
from cockpit.probe.bundle import probe_argv, probe_stdin
from tests.unit.test_demo_gpus import lead_nodes


@pytest.mark.parametrize("module", [fake_nvml, fake_kernel])
def test_what_runs_in_the_probe_is_python_3_6(module: types.ModuleType) -> None:
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    assert "from __future__" not in source


def test_the_stand_in_has_every_call_that_the_probe_makes() -> None:
    agent = Path(nvml_gpu.__file__).parent
    sources = [agent.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in ("nvml", "nvml_gpu")]
    called = {
        name for source in sources for name in re.findall(r"\bnvml(?:Device|System|Event|Init)\w*[a-z]\w*", source)
    }
    of_mig = {name for name in called if "Mig" in name or "InstanceId" in name} - {"nvmlDeviceGetMigMode"}
    assert len(called) > 20
    filled = ("nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetSerial")  # a buffer is filled
    assert all(fake_nvml._nvmlGetFunctionPointer(name) for name in filled)
    # `nvmlDeviceGet` is where a name is put together; those of MIG are never asked for where it is off.
    missing = {name for name in called - of_mig if not hasattr(fake_nvml, name)}
    assert missing - set(filled) <= {"nvmlDeviceGet"}


def test_the_swap_changes_nothing_but_the_last_part() -> None:
    sent = probe_stdin() + b"..."
    swap = PynvmlSwap(b"other")
    got = b"".join(swap.feed(sent[at : at + 4099]) for at in range(0, len(sent), 4099))
    sizes, swapped = [int(sent[at : at + 8]) for at in (0, 8, 16)], [int(got[at : at + 8]) for at in (0, 8, 16)]
    assert swapped == [sizes[0], sizes[1], 5]
    assert got[24:] == sent[24 : 24 + sizes[0] + sizes[1]] + b"other..."
    assert swap.feed(b".") == b"."


def test_the_swap_leaves_alone_what_is_no_probe() -> None:
    data = b"hello, this is not what a probe is fed with"
    assert PynvmlSwap(b"other").feed(data) == data
    assert PynvmlSwap(b"other").feed(b"-1      0       0       rest") == b"-1      0       0       rest"


def test_only_the_probe_itself_is_recognised(tmp_path: Path) -> None:
    farm = GpuFarm(Simulation(), tmp_path)
    try:
        line = command_line(probe_argv(1.0, heartbeat=9.0), deadline_s=None)
        for node, other in (("gpu-st-p5-1", "sh -c 'echo $0' x"), ("gpu-st-p5-1", "'"), ("demo-head", line)):
            with farm.probe(node, other) as run:
                assert run is None
        with farm.probe("gpu-st-p5-1", line) as run:
            assert run is not None
            assert f"proc={tmp_path}/gpu-st-p5-1/proc" in run.line
    finally:
        farm.stop()


def test_efa_counters_only_grow_and_only_between_nodes(tmp_path: Path) -> None:
    sim = Simulation()
    host = lead_nodes(sim)[0]
    node = sim.nodes[host]
    files = NodeFiles(tmp_path / host, host, node.index, node.boot_at or 0.0)
    files.put_ranks(node_ranks(sim, node))
    net = {"bytes": 5e9, "at": time.time(), "per_s": 9e9}
    files.put_state({**node_state(sim, node), "net": net})
    source = Path(fake_nvml.__file__).read_text(encoding="utf-8")
    module = types.ModuleType("pynvml")
    exec(compile(f"{source}\nFOLDER = {str(tmp_path / host)!r}\n", "pynvml", "exec"), module.__dict__)
    counter = tmp_path / host / "sys/class/infiniband/rdmap79s0/ports/1/hw_counters/tx_bytes"
    quiet = counter.with_name("retrans_timeout_events")
    seen = [int(counter.read_text())]
    for _ in range(3):
        module.nvmlDeviceGetComputeRunningProcesses(module.nvmlDeviceGetHandleByIndex(0))
        seen.append(int(counter.read_text()))
    assert seen[0] == 0
    assert seen == sorted(set(seen))
    assert seen[1] >= 5e9
    assert int(quiet.read_text()) == 0
