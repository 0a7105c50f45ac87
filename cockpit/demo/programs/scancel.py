"""scancel of the demo: ids, parts of arrays, signals; as quiet as Slurm's about jobs that are over."""

from __future__ import annotations

import signal

from cockpit.demo import changes
from cockpit.demo.machines import SLURM_VERSION
from cockpit.demo.programs.asked_jobs import LOGIN, listed, records
from cockpit.demo.programs.call import Call
from cockpit.demo.programs.table import Answer, WrongUse, encode, options

_SHORTS = "bfs:vVu:p:t:n:"
_LONGS = "batch full signal= verbose version user= partition= state= name= quiet"
_DENIED_RC = 210


def scancel(call: Call) -> Answer:
    """Answer one call of scancel. Raises WrongUse for what the real one refuses."""
    pairs, words = options("scancel", call.argv, _SHORTS, _LONGS)
    given = dict(pairs)
    if "-V" in given or "--version" in given:
        return Answer(0, encode(f"slurm {SLURM_VERSION}\n"))
    if not words:
        raise WrongUse("scancel: error: No job identification provided\n")
    name = given.get("-s", given.get("--signal", ""))
    if name and not _is_signal(name):
        raise WrongUse(f"Unknown job signal: {name}\n")
    errors = [line for asked in listed(words) if (line := _one(call, asked, name))]
    return Answer(_DENIED_RC if errors else 0, b"", encode("".join(errors)))


def _one(call: Call, asked: str, name: str) -> str:
    """Cancel or signal one id; the error line, "" when there is none (also for a job that is not there)."""
    if not asked[:1].isdigit():
        raise WrongUse(f"scancel: error: Invalid job id {asked}\n")
    try:
        jobs = records(call, asked)
    except changes.Denied:
        return ""
    if not call.root and any(job.ask.user != LOGIN for job in jobs):
        return f"scancel: error: Kill job error on job id {asked}: Access/permission denied\n"
    if not name or name.upper().removeprefix("SIG") in ("KILL", "9"):
        for job in jobs:
            changes.cancel(call.sim, job)
    return ""


def _is_signal(name: str) -> bool:
    if name.isdecimal():
        return 0 < int(name) < signal.NSIG
    return f"SIG{name.upper().removeprefix('SIG')}" in signal.Signals.__members__
