"""Who is behind a pid: user, program, Slurm job and rank. Read in a child, since /proc/PID may block.

The memory of a process that hangs in the driver can be locked: reading its environ then hangs the reader.
"""

import os
import pwd
import re
import time

from cockpit.probe.agent.node import stat_fields
from cockpit.probe.agent.values import DENIED, UNSUPPORTED, decode, read_file, read_text

# Paths of cgroup v1 and v2; the step is a number, batch, extern or interactive.
_CGROUP = re.compile(r"job_(\d+)(?:/step_([^/\s]+))?(?:/user)?(?:/task_(\w+))?")
_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "WORLD_SIZE")
_MAX_ENVIRON = 2**20


def describe(proc: str, pids: "list[int]", with_environ: bool) -> "dict[str, object]":
    """For every pid: [user, comm, started at, job, step, task, rank, local rank, procid, world size] or None.

    None: no such process here (gone, or of another pid namespace).
    """
    ticks = os.sysconf("SC_CLK_TCK")
    booted = _booted_at(proc)
    return {str(pid): _one(proc, pid, with_environ, ticks, booted) for pid in pids}


def _booted_at(proc: str) -> "float | None":
    try:
        return time.time() - float(read_text(f"{proc}/uptime").split()[0])
    except (ValueError, IndexError):
        return None


def _one(proc: str, pid: int, with_environ: bool, ticks: int, booted: "float | None") -> "list[object] | None":
    base = f"{proc}/{pid}"
    comm, _, start, _ = stat_fields(read_file(f"{base}/stat", 512))
    if not start:
        return None
    started = None if booted is None else round(booted + int(start) / ticks)
    job, step, task = cgroup_job(read_text(f"{base}/cgroup"))
    ranks = _ranks(base) if with_environ else ["?not read"] * len(_RANKS)
    return [_user(base), comm, started, job, step, task, *ranks]


def cgroup_job(text: str) -> "tuple[int | None, str, str]":
    """Slurm job, step and task of a /proc/PID/cgroup; the line that tells most wins."""
    best: tuple[int | None, str, str] = (None, "", "")
    for match in _CGROUP.finditer(text):
        found = (int(match.group(1)), match.group(2) or "", match.group(3) or "")
        if best[0] is None or (not best[1] and found[1]) or (not best[2] and found[2]):
            best = found
    return best


def _user(base: str) -> str:
    try:
        number = os.stat(base).st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _ranks(base: str) -> "list[object]":
    try:
        with open(f"{base}/environ", "rb", 0) as file:
            raw = b"".join(iter(lambda: file.read(65536), b""))[:_MAX_ENVIRON]
    except PermissionError:
        return [DENIED] * len(_RANKS)
    except OSError:
        return ["?gone"] * len(_RANKS)
    found: dict[str, str] = {}
    for entry in raw.split(b"\0"):
        name, _, value = entry.partition(b"=")
        found[decode(name)] = decode(value)
    # Only these four names leave the node: an environment holds secrets.
    return [_number(found.get(name)) for name in _RANKS]


def _number(text: "str | None") -> object:
    return int(text) if text is not None and text.isdigit() and len(text) < 10 else UNSUPPORTED
