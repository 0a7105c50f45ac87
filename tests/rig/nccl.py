"""The stand-in for nccl-tests on the rig's nodes: prints what the real one prints, as fast as a test says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from cockpit.demo import nccl_stand_in
from cockpit.demo.nccl_stand_in import Speeds
from tests.rig.machines import Machines

BINARY = "/run/tools/all_reduce_perf"

# Most ranks print nothing; only those that may need an interpreter, eight a node would take seconds here.
_WRAPPER = """#!/bin/sh
[ "${{SLURM_PROCID:-0}}" = 0 ] || [ "${{SLURM_LOCALID:-0}}" = 0 ] || exit 0
NCCL_STAND_IN={speeds} NCCL_STAND_IN_NAME="${{0##*/}}" exec {python} -I -S {program} "$@"
"""


def install(rig: Machines, nodes: Iterable[str]) -> None:
    """Put it on these nodes, at full speed."""
    set_speeds(rig, Speeds())
    text = _WRAPPER.format(speeds=_path(rig), python=sys.executable, program=nccl_stand_in.__file__)
    for node in nodes:
        file = rig.tools(node) / "all_reduce_perf"
        file.write_text(text)
        file.chmod(0o755)


def set_speeds(rig: Machines, speeds: Speeds) -> None:
    """From now on every test runs so."""
    path = _path(rig)
    path.with_suffix(".new").write_text(json.dumps(asdict(speeds)))
    path.with_suffix(".new").rename(path)


def _path(rig: Machines) -> Path:
    return rig.state / "nccl.json"
