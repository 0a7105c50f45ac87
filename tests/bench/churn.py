"""Changes on a rig while something is measured: jobs start, end and change, nodes are drained and resumed."""

from __future__ import annotations

import itertools
import threading

from tests.rig import Rig

PERIOD_S = 1.0
RENAMED = 20  # records of an array that get another name each time


class Churn:
    """Changes some queue entries and two nodes, and starts a job, every second until it is left."""

    def __init__(self, rig: Rig | None) -> None:
        self._rig = rig
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="churn", daemon=True)

    def __enter__(self) -> Churn:
        if self._rig is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._rig is not None:
            self._thread.join()

    def _run(self) -> None:
        assert self._rig is not None
        arrays = self._waiting_arrays(self._rig)
        for turn in itertools.count():
            if self._over.wait(PERIOD_S):
                return
            self._change(self._rig, turn, arrays[turn % len(arrays)])

    def _waiting_arrays(self, rig: Rig) -> list[str]:
        told = rig.slurm("squeue", "-h", "-a", "-t", "PD", "-O", "ArrayJobID:0").stdout.decode().split()
        return sorted(set(told), key=int)

    def _change(self, rig: Rig, turn: int, array: str) -> None:
        first = turn * RENAMED % 400
        drained, resumed = (rig.nodes[(turn + step) % (len(rig.nodes) // 2)] for step in (3, 0))
        commands = [
            ["update", f"jobid={array}_[{first}-{first + RENAMED - 1}]", f"name=renamed-{turn}"],
            ["release", f"{array}_{first}"],
            ["update", f"nodename={drained}", "state=drain", "reason=bench"],
            ["update", f"nodename={resumed}", "state=resume"],
        ]
        for command in commands:
            rig.slurm("scontrol", *command)
