"""Which simulated programs there are, and how one is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from cockpit.demo.programs.call import Call
from cockpit.demo.programs.lfs import lfs
from cockpit.demo.programs.scancel import scancel
from cockpit.demo.programs.scontrol import scontrol
from cockpit.demo.programs.sinfo import sinfo
from cockpit.demo.programs.squeue import squeue
from cockpit.demo.programs.table import Answer, WrongUse, encode
from cockpit.demo.sim import Simulation

Handler = Callable[[Call], Answer]


def _hostname(call: Call) -> Answer:
    return Answer(0, encode(f"{call.host}\n"))


def _sacct(call: Call) -> Answer:
    return Answer(1, b"", b"Slurm accounting storage is disabled\n")


PROGRAMS: Mapping[str, Handler] = {
    "squeue": squeue,
    "sinfo": sinfo,
    "scontrol": scontrol,
    "scancel": scancel,
    "sacct": _sacct,
    "hostname": _hostname,
    "lfs": lfs,
}


def is_simulated(program: str) -> bool:
    """True for a bare name or a path whose last part is a simulated program."""
    return os.path.basename(program) in PROGRAMS


def run(sim: Simulation, argv: Sequence[str], env: Mapping[str, str], host: str, *, root: bool = False) -> Answer:
    """Run a simulated program against the cluster as it is now."""
    handler = PROGRAMS[os.path.basename(argv[0])]
    with sim.current():
        try:
            return handler(Call(tuple(argv[1:]), env, host, sim, root))
        except WrongUse as wrong:
            return wrong.answer
