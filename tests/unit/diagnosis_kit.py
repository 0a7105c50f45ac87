"""Made-up jobs for the cases of a diagnosis: two nodes of four ranks, each rank as a test wants it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cockpit.diagnosis.diagnose import Diagnosis, diagnose
from cockpit.diagnosis.gathered import Gathered, GatheredGpu, GatheredLog, GatheredNode

NODES = ("p5-1", "p5-2")
RANKS_A_NODE = 4
NOW = 1_796_000_000.0
BARRIER = [["all_reduce", "/x/torch/distributed/distributed_c10d.py", 2501], ["main", "/job/train.py", 90]]
SAVE = [["save_checkpoint", "/job/train.py", 44], ["main", "/job/train.py", 80]]
LOADER = [
    ["get", "/usr/lib/python3.11/queue.py", 171],
    ["_try_get_data", "/x/torch/utils/data/dataloader.py", 1133],
    ["main", "/job/train.py", 70],
]
ELSEWHERE = [["write_summary", "/job/train.py", 30], ["main", "/job/train.py", 81]]


@dataclass(frozen=True)
class R:
    """One rank: states at both looks, wait channel, stacks at both looks (None: no stacks), whether it moves."""

    state: str = "S"
    channel: str = "futex_wait_queue"
    stack: Sequence[Sequence[object]] | None = field(default_factory=lambda: BARRIER)
    later: Sequence[Sequence[object]] | None = None
    moves: bool = False
    file: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    comm: str = "python"
    socks: Sequence[Sequence[object]] | None = None


GONE = None


def job_text(state: str = "RUNNING", **more: str) -> bytes:
    pairs = {"StartTime": str(int(NOW - 3600)), "NumTasks": "8", "ExitCode": "0:0", "Reason": "None", **more}
    rest = "\n".join(f"   {key}={value}" for key, value in pairs.items())
    return (
        f"JobId=77 JobName=train\n   UserId=maria(1000) GroupId=x(1)\n   JobState={state}\n"
        f"   NodeList=p5-[1-2]\n   BatchHost=p5-1\n{rest}\n"
    ).encode()


STEPS = b"StepId=77.0 UserId=0 State=RUNNING Partition=gpu NodeList=p5-[1-2] Nodes=2 CPUs=8 Tasks=%d Name=python\n"


def sweep_lines(node: int, ranks: Mapping[int, R | None], world: int, **extra: Any) -> tuple[bytes, ...]:
    lines: list[dict[str, Any]] = [{"k": "h", "v": 1, "t": NOW, "host": NODES[node], "up": "9999", "tick": 100}]
    processes, looks = [], []
    for rank, one in ranks.items():
        if one is None:
            continue
        pid = 1000 + rank
        env = {"RANK": str(rank), "WORLD_SIZE": str(world), "SLURM_TASKS_PER_NODE": "4(x2)"}
        env |= {"SLURM_JOB_NODELIST": "p5-[1-2]", **one.env}
        processes.append(
            {"pid": pid, "ppid": 1, "comm": one.comm, "s": one.state, "start": 100, "env": env, "cpu": 10, "rank": rank}
            | {"local": rank % RANKS_A_NODE, "lead": 1, "prog": "train.py", "threads": 9}
        )
        looks += _looks(pid, one)
    lines += [{"k": "p", "t": NOW, "ps": processes}, *looks]
    lines += [{"k": "m", "t": NOW, "rows": extra.get("mounts", [["/fsx", "lustre", "fs", 100, 10, 90, 10, 1]])}]
    lines += extra.get("lines", [])
    lines += [{"k": "e", "t": NOW + 2, "no": extra.get("no", [])}]
    return tuple(json.dumps(line, separators=(",", ":")).encode() for line in lines)


def _looks(pid: int, one: R) -> list[dict[str, Any]]:
    first = {"s": one.state, "cpu": 10, "run": 10**9, "sw": 50, "w": one.channel, "file": one.file, "out": {}}
    if one.socks is not None:
        first["socks"] = one.socks
    second = first | ({"run": 10**9 + 5 * 10**8, "sw": 80, "cpu": 60} if one.moves else {})
    looks: list[dict[str, Any]] = [{"k": "c", "t": NOW, "pid": pid, "is": first}]
    looks += [{"k": "a", "t": NOW + 1.5, "pid": pid, "is": second}]
    for number, stack in enumerate((one.stack, one.later or one.stack), 1):
        if stack is not None:
            thread = {"n": "MainThread", "t": pid, "a": 0, "g": 0, "f": stack}
            looks.append({"k": "y", "t": NOW, "pid": pid, "n": number, "is": [thread]})
    return looks


def gathered(
    ranks: Mapping[int, R | None] | None = None,
    *,
    default: R | None = None,
    world: int = 8,
    log: str = "",
    age_s: float | None = 5.0,
    grown: bool | None = False,
    tasks: int = 8,
    gpus: Sequence[GatheredGpu] = (),
    job: bytes | None = None,
    faults: Mapping[str, str] | None = None,
    extra: Mapping[str, Mapping[str, Any]] | None = None,
) -> Gathered:
    """Ranks as given, all others as `default` (in an all_reduce, still)."""
    given = dict(ranks or {})
    nodes = []
    for place, name in enumerate(NODES):
        own = range(place * RANKS_A_NODE, (place + 1) * RANKS_A_NODE)
        told = {rank: given.get(rank, default or R()) for rank in own if rank < world}
        lines = sweep_lines(place, told, world, **((extra or {}).get(name, {})))
        node = GatheredNode(name, lines, NOW - 0.1, NOW + 0.1, state="allocated")
        if fault := (faults or {}).get(name):
            node = replace(node, lines=(), answered_at=None, fault=fault)
        nodes.append(node)
    logs = (GatheredLog("/fsx/out.txt", "head", "output", log.encode(), len(log), age_s, True, grown),) if log else ()
    return Gathered(
        job="77",
        cluster="prod",
        taken_at=NOW,
        took_s=2.0,
        job_text=job or job_text(),
        step_text=STEPS % tasks,
        nodes=tuple(nodes),
        logs=logs,
        gpus=tuple(gpus),
        whole=True,
    )


def steps(count: int = 20, every_s: float = 2.0, last: str = "") -> str:
    """A log that told a step every so often, up to now."""
    start = NOW - count * every_s
    lines = [
        f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(start + number * every_s))} step {number} loss 1.0"
        for number in range(count)
    ]
    return "\n".join([*lines, last]) + "\n"


def verdict(**about: Any) -> Diagnosis:
    """The diagnosis of such a job."""
    return diagnose(gathered(**about))
