"""The rig's nodes have GPUs: the real nvidia-ml-py sees them over SSH, and sees what a test does to them."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from tests.rig import Rig, RigError
from tests.rig.nvml import missing

pytestmark = [
    pytest.mark.rig,
    pytest.mark.xdist_group("rig"),
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]

LOOK = """
import json
nvmlInit()
def look(i):
    try: return nvmlDeviceGetTemperature(nvmlDeviceGetHandleByIndex(i), 0)
    except NVMLError as error: return str(error)
print(json.dumps([look(i) for i in range(nvmlDeviceGetCount())]))
"""


def look(rig: Rig, node: str) -> Any:
    """What nvidia-ml-py's own source, sent to the node, tells there."""
    import pynvml

    program = inspect.getsource(pynvml) + LOOK
    done = rig.ssh(node, ["python3", "-"], stdin=program.encode())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_eight_gpus_over_ssh_and_a_fault(rig: Rig) -> None:
    node, other = rig.static_nodes[:2]
    rig.nvml(node).values(temp=40)
    assert look(rig, node) == [40] * 8
    rig.nvml(node).lost(3)
    assert look(rig, node) == [40, 40, 40, "GPU is lost", 40, 40, 40, 40]
    assert "GPU is lost" not in look(rig, other)


def test_nvidia_smi_on_nodes_and_not_on_the_head(rig: Rig) -> None:
    one, other = (rig.ssh(node, ["nvidia-smi", "-L"]).stdout.splitlines() for node in rig.static_nodes[:2])
    assert len(one) == len(other) == 8
    assert not set(one) & set(other)
    assert rig.head_ssh(["nvidia-smi"]).returncode == 127
    with pytest.raises(RigError, match="no GPUs"):
        rig.nvml("head")


def test_a_job_sees_the_gpus_of_its_own_node(rig: Rig) -> None:
    node = rig.static_nodes[2]
    rig.nvml(node).lost(0)
    rig.submit("nvidia-smi -L; echo status $?", nodelist=node, output="smi.txt")
    out = rig.state / "home" / "root" / "smi.txt"
    rig.wait_for(lambda: out.exists() and "status" in out.read_text(), 30)
    assert out.read_text().splitlines()[-1] == "status 15"


def test_settle_makes_the_gpus_well_again(rig: Rig) -> None:
    node = rig.static_nodes[0]
    rig.nvml(node).lost(None)
    rig.nvml(node).count(4)
    rig.settle()
    assert len(look(rig, node)) == 8
