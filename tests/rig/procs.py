"""Processes as /proc shows them, so that only descendants of a rig are ever signalled."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot: with the pid it names one process for good."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def alive(pid: int, ticks: int) -> bool:
    """Whether this very process exists and is no zombie."""
    fields = _stat(pid)
    return fields is not None and int(fields[19]) == ticks and fields[0] not in ("Z", "X")


def descendants(root: int) -> list[int]:
    """Children, grandchildren and so on, not root itself."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            children[int(fields[1])].append(int(entry.name))
    found: list[int] = []
    queue = [root]
    while queue:
        queue += children[queue[0]]
        found += children[queue.pop(0)]
    return found


def pid_namespace(pid: int) -> str | None:
    """The namespace's name as readlink shows it (`pid:[4026532187]`), None when the process is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def inner_pid(pid: int) -> int | None:
    """The pid that the process has inside its own namespace."""
    for line in _read(pid, "status").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return None


def program(pid: int) -> str:
    """The kernel's name of the program, at most 15 characters; empty when the process is gone."""
    return _read(pid, "comm").strip()


def parent(pid: int) -> int | None:
    """The parent's pid; None when the process is gone."""
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def command_line(pid: int) -> str:
    """Its words with blanks between them; empty for a zombie and when the process is gone."""
    return _read(pid, "cmdline").replace("\0", " ").strip()


def _stat(pid: int) -> list[str] | None:
    # The program name in parentheses may hold blanks and parentheses; what follows has fixed places.
    text = _read(pid, "stat")
    return text.rpartition(")")[2].split() if text else None


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""
