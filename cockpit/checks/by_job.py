"""The same look through Slurm instead of SSH: one srun on many idle nodes, where a head would carry too many logins.

Nothing is written: the look goes to all nodes over srun's stdin, and the answers come by its stdout.
"""

from __future__ import annotations

import base64
import math
import re
import secrets
from binascii import Error as BadBase64
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from cockpit.formats.hostlist import fold

NAME_PREFIX = "cockpit-look-"
WAIT_S = 60  # for nodes that were idle a moment ago
STARTS_S = 60  # the step, and the first words of the slowest node
PROLOGS_S = 300  # before Slurm's limit begins to count; ParallelCluster's GPU health check takes minutes there
_MARK = "cockpit-look"
# As lines: srun cuts what is longer than 1,024 bytes, and mixes what several tasks say in one.
_TASK = f"""echo "{_MARK} ${{SLURMD_NODENAME:-$(uname -n)}}"
t=$1; shift
timeout -k 5 "$t" "$@" 2>/dev/null | head -c 1000000 | base64
"""
_LINE = re.compile(rb"\s{0,8}(\d{1,6}): ([ -~]{0,200})")
_NODE = re.compile(r"[A-Za-z0-9_.-]{1,253}")


@dataclass(frozen=True, slots=True)
class JobLook:
    """One srun: nodes of one partition with equally many GPUs, which it takes whole for the time of the look."""

    nodes: tuple[str, ...]
    partition: str
    gpus: int
    look_s: float
    name: str = field(default_factory=lambda: NAME_PREFIX + secrets.token_hex(4))

    @property
    def limit_min(self) -> int:
        """Slurm ends it then, whatever hangs."""
        return math.ceil((self.look_s + STARTS_S) / 60)

    @property
    def deadline_s(self) -> float:
        """When srun has ended for certain, with what Slurm needs to notice its limit."""
        return WAIT_S + PROLOGS_S + 60.0 * self.limit_min + 90


def srun_args(look: JobLook, argv: Sequence[str]) -> tuple[str, ...]:
    """srun's arguments for running `argv` once on each node."""
    count = len(look.nodes)
    return (
        f"--job-name={look.name}",
        f"--nodes={count}",
        f"--nodelist={fold(look.nodes)}",
        f"--ntasks={count}",
        "--ntasks-per-node=1",
        *((f"--partition={look.partition}",) if look.partition else ()),
        *((f"--gpus-per-node={look.gpus}",) if look.gpus else ()),
        "--exclusive",
        f"--immediate={WAIT_S}",
        f"--time={look.limit_min}",
        "--kill-on-bad-exit=0",
        "--mpi=none",
        "--label",
        "sh",
        "-c",
        _TASK,
        "sh",
        f"{look.look_s:.0f}",
        *argv,
    )


def answers(said: bytes, nodes: Sequence[str]) -> dict[str, bytes]:
    """What each of these nodes answered, by its name; one that said nothing whole is missing.

    So are two that call themselves alike: a node that lies about its name must not speak for another one.
    """
    names: dict[bytes, str] = {}
    packed: dict[bytes, list[bytes]] = defaultdict(list)
    for line in said.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        task, text = found[1], found[2]
        if task not in names:
            mark, _, name = text.decode().partition(" ")
            if mark == _MARK and _NODE.fullmatch(name):
                names[task] = name
        else:
            packed[task].append(text)
    claims = Counter(names.values())
    own = {name: task for task, name in names.items() if name in nodes and claims[name] == 1}
    found_by_node = {name: _unpacked(packed[task]) for name, task in own.items()}
    return {name: raw for name, raw in found_by_node.items() if raw}


def _unpacked(lines: Sequence[bytes]) -> bytes:
    try:
        return base64.b64decode(b"".join(lines), validate=True)
    except BadBase64:
        return b""
