"""What a part of a look does, as a person would type it: shown beside the evidence."""

from __future__ import annotations

import shlex
from functools import cache

from cockpit.catalog.reader import load


@cache
def shown_command(part: str) -> str:
    """One line to repeat the look by hand; the part's name for a site's own."""
    asked = load("checks")["parts"].get(part)
    if asked is None:
        return part
    kind = asked["kind"]
    if kind == "run":
        return shlex.join([*(asked.get("paths") or asked["argv"])[:1], *asked["argv"][1:]])
    if kind == "counters":
        return f"grep -H . /sys/class/infiniband/*/ports/1/hw_counters/*, twice, {asked['window_s']} s apart"
    if kind == "stuck":
        return f"ps -eo state,pid,wchan:32,etimes,comm, twice, {asked['gap_s']} s apart"
    if kind == "limits":
        return "grep 'Max locked memory' /proc/PID/limits of slurmd and of job processes"
    words = {"files": "grep -H .", "links": "readlink -f", "list": "ls -l", "grep": "grep -E ...", "strings": "strings"}
    return f"{words[kind]} {' '.join(asked['globs'][:4])}{' ...' if len(asked['globs']) > 4 else ''}"
