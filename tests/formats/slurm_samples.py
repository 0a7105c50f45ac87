"""Where real output of seven Slurm versions and of public clusters lies, and how its files are laid out.

The outputs lie outside the repository: $COCKPIT_SAMPLES, or shared/samples beside the checkout.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from cockpit.formats.sinfo import parse_nodes
from cockpit.formats.squeue import parse_queue
from cockpit.models import Job, Node

BESIDE = Path(__file__).parents[3] / "shared" / "samples"
SAMPLES = Path(os.environ.get("COCKPIT_SAMPLES") or BESIDE) / "slurm"
MARKS = [
    pytest.mark.samples,
    pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples of Slurm output here"),
]

VERSIONS = ["22.05.8", "23.02.8", "23.11.11", "24.05.8", "24.11.7", "25.05.9", "25.11.8"]
OLD = VERSIONS[:2]  # print gres:gpu, and ALLOCATED for a node that is partly used and draining
LATE = VERSIONS[-2:]

NODES_24 = """
    NodeList PartitionName Available StateLong StateComplete Gres GresUsed CPUsState CPUsLoad Memory AllocMem
    FreeMem Version NodeAddr NodeHost Features features_act Weight Reservation User Timestamp Comment Extra
    Reason
"""
NODES_15 = """
    NodeList PartitionName StateLong StateComplete StateCompact Gres GresUsed CPUsState Memory AllocMem
    FreeMem Features User Timestamp Reason
"""
QUEUE_39 = """
    JobID ArrayJobID ArrayTaskID HetJobID HetJobOffset StateCompact State Partition UserName Account QOS
    NumNodes NumCPUs tres-alloc tres-per-node tres-per-job tres-per-task SubmitTime EligibleTime StartTime
    EndTime TimeLimit TimeUsed PriorityLong NodeList SchedNodes Dependency Reservation RestartCnt Requeue
    BatchHost Feature WorkDir StdOut Reason Comment admin_comment system_comment Name
"""
QUEUE_19 = """
    JobArrayID JobID ArrayJobID ArrayTaskID StateCompact State Reason Partition UserName NumNodes tres-alloc
    tres-per-node tres-per-job NodeList SchedNodes EndTime TimeLimit Name Comment
"""
# The letters of -o under the names of -O; ? stands for a letter that the product does not ask for.
LETTERS = {
    "%A": "JobID",
    "%F": "ArrayJobID",
    "%K": "ArrayTaskID",
    "%t": "StateCompact",
    "%T": "State",
    "%r": "Reason",
    "%P": "Partition",
    "%u": "UserName",
    "%D": "NumNodes",
    "%C": "NumCPUs",
    "%b": "tres-per-node",
    "%V": "SubmitTime",
    "%S": "StartTime",
    "%e": "EndTime",
    "%l": "TimeLimit",
    "%Q": "PriorityLong",
    "%N": "NodeList",
    "%Y": "SchedNodes",
    "%E": "Dependency",
    "%j": "Name",
    "%k": "Comment",
    "%i": "JobArrayID",
    "%M": "?M",
    "%L": "?L",
    "%n": "?n",
}
QUEUE_25 = "%i %A %F %K %t %T %r %P %u %D %C %b %V %S %e %l %M %L %Q %N %n %Y %E %j %k"
QUEUE_7 = "%A %T %i %r %u %k %j"


def read(*parts: str) -> bytes:
    return SAMPLES.joinpath(*parts).read_bytes()


def nodes_of(version: str) -> dict[str, Node]:
    reading = parse_nodes(read(version, "sinfo_ctrl_N_O.txt"), NODES_15.split())
    return {node.name: node for node in reading.nodes}


def queue_of(version: str, name: str = "squeue_ctrl_O.txt") -> tuple[Job, ...]:
    letters = [LETTERS[letter] for letter in QUEUE_25.split()]
    return parse_queue(read(version, name), QUEUE_19.split() if name.endswith("_O.txt") else letters)


# What the collectors of the recommended calls say is in them: jobs by state, nodes by StateLong, GPUs used.
RECOMMENDED = {
    "22.05.8": (
        "30: PD 13, R 6, CF 1, S 1, CA 5, CD 1, F 2, TO 1",
        "reboot 1, maint 1, unknown* 2, down~ 4, idle~ 2, drained~ 1, mixed# 1, mixed 1, allocated 2, "
        "draining 1, drained 1, planned 1, down* 1",
        28,
    ),
    "23.02.8": (
        "26: PD 13, R 6, S 1, CA 2, CD 1, F 2, TO 1",
        "reboot 1, maint 1, unknown* 1, down~ 3, idle~ 4, drained~ 1, mixed 1, draining 2, allocated 1, "
        "drained 1, planned 1, down* 1, inval 1",
        24,
    ),
    "23.11.11": (
        "26: PD 13, R 6, CF 1, S 1, CA 1, CD 1, F 2, TO 1",
        "draining@ 1, maint 1, down* 3, down~ 4, idle~ 2, drained~ 1, mixed# 1, mixed 1, allocated 2, "
        "draining 1, drained 1, planned 1",
        28,
    ),
    "24.05.8": (
        "27: PD 14, R 7, S 1, CA 1, CD 1, F 2, TO 1",
        "draining@ 1, maint 1, down* 3, down~ 5, idle~ 3, drained~ 1, mixed 2, planned 2, draining 1",
        12,
    ),
    "24.11.7": (
        "28: PD 10, R 9, CF 1, S 1, CA 1, CD 1, F 4, TO 1",
        "mixed 2, idle 1, unknown* 2, down~ 5, drained~ 1, allocated# 1, idle~ 1, draining! 1, allocated 3, "
        "draining 1, down* 1",
        44,
    ),
    "25.05.9": (
        "26: PD 14, R 6, S 1, CA 1, CD 1, F 2, TO 1",
        "draining@ 1, maint 1, unknown* 2, down~ 4, idle~ 3, drained~ 1, mixed 1, allocated 2, draining 1, "
        "drained 1, planned 1, down* 1",
        25,
    ),
    "25.11.8": (
        "32: PD 14, R 6, S 1, CA 6, CD 1, F 3, TO 1",
        "draining@ 1, maint 1, down* 2, down~ 2, idle~ 5, drained~ 1, mixed 1, allocated! 1, allocated 1, "
        "draining$ 1, drained 1, planned 1, inval 1",
        24,
    ),
}


def tally(text: str) -> Counter[str]:
    return Counter({word: int(number) for word, number in (part.rsplit(" ", 1) for part in text.split(", "))})
