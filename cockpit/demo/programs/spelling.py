"""How Slurm 23.11 spells times, durations, memory, ranges and resources. Shapes as seen on real clusters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from cockpit.demo.machines import GPU_TYPE, SimNode

_DAY = 86400


def stamp(when: float | None, env: Mapping[str, str], unknown: str) -> str:
    """A time as squeue, sinfo and scontrol print it; SLURM_TIME_FORMAT is a strftime pattern."""
    if when is None:
        return unknown
    form = env.get("SLURM_TIME_FORMAT", "standard")
    if form == "%s":
        return str(int(when))
    if form in ("standard", "relative", ""):
        form = "%Y-%m-%dT%H:%M:%S"
    return time.strftime(form, time.localtime(when))


def duration(seconds: float) -> str:
    """squeue's form: `0:04`, `30:22`, `2:00:00`, `1-12:00:00`."""
    total = int(seconds)
    days, hours, minutes, secs = total // _DAY, total // 3600 % 24, total // 60 % 60, total % 60
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{secs:02}"
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def padded(seconds: float) -> str:
    """scontrol's form: `00:01:22`, `1-12:00:00`."""
    total = int(seconds)
    days = f"{total // _DAY}-" if total >= _DAY else ""
    return f"{days}{total // 3600 % 24:02}:{total // 60 % 60:02}:{total % 60:02}"


def memory(mib: int) -> str:
    """Memory in TRES text: `375G`, `187.50G`, `1992294M`; converted only where half units stay exact."""
    number, unit = float(mib), 0
    while number >= 1024 and int(number) % 512 == 0:
        number, unit = number / 1024, unit + 1
    digits = f"{int(number)}" if number == int(number) else f"{number:.2f}"
    return f"{digits}{'MGTP'[unit]}"


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as `0-3,5`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{low}-{high}" if high > low else f"{low}" for low, high in runs)


def array_tasks(rest: Iterable[int], throttle: int, env: Mapping[str, str]) -> str:
    """Waiting array tasks as `4-23%4`; cut at 64 characters unless SLURM_BITSTR_LEN says otherwise."""
    text = ranges(rest)
    limit = env.get("SLURM_BITSTR_LEN", "64")
    if limit.isdigit() and 0 < int(limit) < len(text):
        text = text[: int(limit) - 3].rsplit(",", 1)[0] + ",..."
    return f"{text}%{throttle}" if throttle else text


def gres_used(node: SimNode) -> str:
    """GresUsed of a node: `gpu:h100:7(IDX:0-6)`, `gpu:h100:0(IDX:N/A)`."""
    used = node.gpus_used
    return f"gpu:{GPU_TYPE}:{len(used)}(IDX:{ranges(used) or 'N/A'})"


def tres(cpus: int, mem_mib: int, nodes: int | None) -> str:
    """`cpu=384,mem=375G,node=2,billing=384`; node is left out where it is None (CfgTRES of a node)."""
    count = "" if nodes is None else f",node={nodes}"
    return f"cpu={cpus},mem={memory(mem_mib)}{count},billing={cpus}"
