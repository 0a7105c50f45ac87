"""Real output of sinfo, read as its collectors say it must be read."""

from __future__ import annotations

from collections import Counter

import pytest

from cockpit.formats.hostlist import count, expand, fold
from cockpit.formats.node_state import explain_state, judge, parse_state
from cockpit.formats.sinfo import parse_nodes
from cockpit.formats.slurm_errors import classify
from cockpit.formats.times import duration_s
from cockpit.models import FaultKind, Health
from tests.formats.slurm_samples import (
    LATE,
    MARKS,
    NODES_24,
    OLD,
    RECOMMENDED,
    VERSIONS,
    nodes_of,
    read,
    tally,
)

pytestmark = MARKS


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


DRAINED = Health.DRAINED
WORDS = {
    "cpu-st-c6i-1": ("reboot pending", DRAINED),
    "cpu-st-c6i-2": ("maintenance", DRAINED),
    "cpu-st-c6i-3": ("unknown", Health.WARN),
    "gpu-dy-p5-1": ("powering up", Health.OK),
    "gpu-dy-p5-2": ("powering up", Health.OK),
    "gpu-dy-p5-3": ("powering down", Health.OK),
    "gpu-dy-p5-5": ("drained", DRAINED),
    "gpu-dy-p5-6": ("powered down", Health.OK),
    "gpu-dy-p5-7": ("powered down", Health.OK),
    "gpu-dy-p5-8": ("powered down", Health.OK),
    "gpu-st-p5-1": ("mixed", Health.OK),
    "gpu-st-p5-2": ("allocated", Health.OK),
    "gpu-st-p5-3": ("allocated", Health.OK),
    "gpu-st-p5-4": ("draining", DRAINED),
    "gpu-st-p5-5": ("drained", DRAINED),
    "gpu-st-p5-6": ("planned", Health.OK),
    "gpu-st-p5-7": ("down", Health.CRITICAL),
    "gpu-st-p5-8": ("unknown", Health.WARN),
}
USED = {
    "gpu-st-p5-1": range(7),
    "gpu-st-p5-2": range(8),
    "gpu-st-p5-3": range(8),
    "gpu-st-p5-4": range(2),
    "gpu-dy-p5-1": range(8),
}


def test_every_node_once_with_its_word_and_health(version: str) -> None:
    nodes = nodes_of(version)
    assert len(nodes) == 19
    late = version in LATE
    expected = WORDS | {"gpu-dy-p5-4": ("powered down" if late else "powering up", Health.OK)}
    assert {name: (node.word, node.health) for name, node in nodes.items()} == expected
    assert nodes["cpu-st-c6i-1"].state.base == ("allocated" if version in OLD else "mixed")


def test_gpus_of_the_nodes(version: str) -> None:
    nodes = nodes_of(version)
    used = USED | {"gpu-dy-p5-2" if version in LATE else "gpu-dy-p5-4": range(3)}
    assert sum(node.gpus_total or 0 for node in nodes.values()) == 128
    assert sum(node.gpus_used or 0 for node in nodes.values()) == 36
    for name, node in nodes.items():
        if name.startswith("cpu"):
            assert (node.gpus_total, node.gpus_used, node.gpu_type) == (None, None, "")
        else:
            assert (node.gpus_total, node.gpus_used) == (8, len(used.get(name, ())))
            assert node.gpu_type == "h100"
        assert node.gpu_indices in (None, tuple(used.get(name, ())))


def test_reasons_and_queues_of_the_nodes(version: str) -> None:
    nodes = nodes_of(version)
    assert nodes["gpu-st-p5-4"].reason == "ECC uncorrectable [auto-remediation] retire pages"
    assert nodes["gpu-st-p5-5"].reason == "Xid 79 GPU 3 fell off the bus: NVRM = x (case 1234)"
    assert nodes["gpu-dy-p5-5"].reason == "ice: InsufficientInstanceCapacity"
    assert nodes["gpu-st-p5-7"].reason == "Not responding"
    assert nodes["gpu-st-p5-6"].reason == ("" if version in OLD else "efa ports missing Gres=gpu:h100:7")
    assert nodes["gpu-st-p5-5"].reason_by == "root"
    assert sorted(nodes["cpu-st-c6i-1"].partitions) == ["cpu", "old", "test"]
    assert nodes["gpu-st-p5-1"].mem_mib == 2_000_000
    assert nodes["gpu-st-p5-8"].mem_free_mib is None


# What each of Slurm's own words is for us.
OURS = {
    "reboot": ("reboot pending", Health.DRAINED),
    "draining@": ("reboot pending", Health.DRAINED),
    "maint": ("maintenance", Health.DRAINED),
    "unknown*": ("unknown", Health.WARN),
    "down~": ("failed power-up", Health.CRITICAL),
    "idle~": ("powered down", Health.OK),
    "drained~": ("drained", Health.DRAINED),
    "mixed#": ("powering up", Health.OK),
    "allocated#": ("powering up", Health.OK),
    "allocated!": ("allocated", Health.OK),
    "draining!": ("draining", Health.DRAINED),
    "draining$": ("draining", Health.DRAINED),
    "draining": ("draining", Health.DRAINED),
    "drained": ("drained", Health.DRAINED),
    "down*": ("down", Health.CRITICAL),
    "inval": ("invalid registration", Health.CRITICAL),
    **{word: (word, Health.OK) for word in ("idle", "mixed", "allocated", "planned")},
}


def test_the_recommended_node_call(version: str) -> None:
    reading = parse_nodes(read("recommended", f"sinfo_N_O24_{version}.bin"), NODES_24.split())
    expected: Counter[tuple[str, Health]] = Counter()
    for word, number in tally(RECOMMENDED[version][1]).items():
        expected[OURS[word]] += number
    assert Counter((node.word, node.health) for node in reading.nodes) == expected
    assert sum(node.gpus_total or 0 for node in reading.nodes) == 128
    assert sum(node.gpus_used or 0 for node in reading.nodes) == RECOMMENDED[version][2]
    assert sum(len(partition.nodes) for partition in reading.partitions) == 33
    assert {partition.name: partition.available for partition in reading.partitions} == {
        "gpu": "up",
        "prio": "up",
        "cpu": "up",
        "old": "inactive",
        "test": "up",
    }
    for node in reading.nodes:
        assert "not known here" not in " ".join(explain_state(node.state, node.reason))
        assert bool(node.reason_at) <= bool(node.reason)


def test_tables_for_people(version: str) -> None:
    for line in read(version, "sinfo_default.txt").decode().splitlines()[1:]:
        _, _, limit, number, state, hostlist = line.split()
        assert count(hostlist) == int(number)
        assert sorted(expand(fold(expand(hostlist)))) == sorted(expand(hostlist))
        assert limit == "infinite" or duration_s(limit) is not None
        assert judge(parse_state(state))[1] is not Health.UNKNOWN
    for line in read(version, "sinfo_N_long.txt").decode().splitlines()[2:]:
        name, _, _, state = line.split()[:4]
        # One word hides the rest: base and flags are those of the full state as far as it shows them.
        shown, full = parse_state(state), nodes_of(version)[name].state
        assert "drain" not in shown.flags or "drain" in full.flags
    for name in ("squeue_default.txt", "squeue_start.txt"):
        assert len(read(version, name).splitlines()) > 5
    fault = classify(1, b"", read(version, "sacct_disabled.txt"), what="asking sacct")
    assert fault.kind is FaultKind.MISSING
