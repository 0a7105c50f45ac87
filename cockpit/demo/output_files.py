"""The demo's shared file system as far as jobs write to it: files that grow while somebody looks at them."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from cockpit.demo.job_logs import Event, JobLog, ending, events, job_log, progress
from cockpit.demo.jobs import ENDED, SimJob
from cockpit.demo.programs.jobfields import error_path, output_path
from cockpit.demo.sim import Simulation

ROOT = "/fsx/"
_FILE = re.compile(r"/fsx/\w+/runs/slurm-(\d+)(?:_(\d+))?\.(?:out|err)")


class _Growing:
    """One file and what is still to be written to it."""

    def __init__(self, path: Path, log: JobLog, coming: Iterator[Event]) -> None:
        self.log = log
        self._path, self._coming = path, coming
        self._next = next(coming)
        self._ended = False

    def write(self, now: float, outcome: str) -> None:
        """Write what is due; with an outcome the job has ended by now, and nothing follows."""
        if self._ended:
            return
        due: list[Event] = []
        while self._next[0] <= now:
            due.append(self._next)
            self._next = next(self._coming)
        if outcome:
            due.append((now, ending(self.log, outcome, now)))
            self._ended = True
        if due:
            with self._path.open("ab") as file:
                file.write("".join(text for _, text in due).encode())
            os.utime(self._path, (due[-1][0], due[-1][0]))  # it is told when it has grown, not when somebody looked


class OutputFarm:
    """Keeps the output files that command lines name in step with the simulation, below a folder of their own."""

    def __init__(self, sim: Simulation, folder: Path) -> None:
        self._sim, self._folder = sim, folder
        self._files: dict[str, _Growing] = {}
        self._lock = threading.Lock()

    def localize(self, line: str) -> str:
        """A command line as it has to be run here: the files it names are brought up to date first."""
        if ROOT not in line:
            return line
        for found in _FILE.finditer(line):
            self._update(found[0], int(found[1]), None if found[2] is None else int(found[2]))
        return line.replace(ROOT, f"{self._folder}/")

    def _update(self, path: str, number: int, task: int | None) -> None:
        with self._lock, self._sim.current() as sim:
            job = _find(sim, number, task)
            if job is None or not job.hosts or job.configuring or path not in (output_path(job), error_path(job)):
                return
            if path not in self._files:
                there = self._folder / path.removeprefix(ROOT)
                there.parent.mkdir(parents=True, exist_ok=True)
                log = job_log(sim, job)
                own = path != output_path(job)
                self._files[path] = _Growing(there, log, progress(log) if own else events(log))
            outcome = job.state if job.state in ENDED and path == output_path(job) else ""
            now = sim.now if job.ended_at is None else min(sim.now, job.ended_at)
            self._files[path].write(now, outcome)


def _find(sim: Simulation, number: int, task: int | None) -> SimJob | None:
    if task is None:
        return sim.jobs.get(number)
    tasks = (job for job in sim.jobs.values() if job.array_job_id == number and job.task == task)
    return next(tasks, None)
