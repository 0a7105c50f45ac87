"""`scontrol listpids`: the processes of a job on the node it runs on, with their ranks."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.formats.errors import FormatError
from cockpit.formats.words import digits
from cockpit.text import printable

_COLUMNS = ("PID", "JOBID", "STEPID", "LOCALID", "GLOBALID")
_NONE = (b"does not exist on node", b"There are no steps for job")


@dataclass(frozen=True, slots=True)
class JobPid:
    """One process. `rank` and `local` are those of a task that srun started; a task's own children have none.

    `step` is a number, batch, extern or interactive: numbers start the ranks, the script itself has no rank.
    """

    pid: int
    job_id: int
    step: str
    local: int | None = None
    rank: int | None = None


def listpids_args(job_id: int) -> list[str]:
    """What follows `scontrol`."""
    return ["listpids", str(job_id)]


def parse_listpids(raw: bytes) -> tuple[JobPid, ...]:
    """Every process in Slurm's order, on 22.05 and later; raises FormatError for a table of another shape.

    The batch script is task 0 of its own step: it is told without a rank.
    """
    lines = [line.split() for line in raw.decode("utf-8", "replace").split("\n") if line.strip()]
    if not lines or tuple(lines[0][: len(_COLUMNS)]) != _COLUMNS:
        raise FormatError("reading scontrol's answer", "it is no table of processes", raw)
    return tuple(found for words in lines[1:] if (found := _process(words)) is not None)


def says_none(stdout: bytes, stderr: bytes) -> bool:
    """True for an answer that says, in words and with exit status 1, that the job has no process there."""
    return any(words in stdout + stderr for words in _NONE)


def _process(words: list[str]) -> JobPid | None:
    if len(words) < len(_COLUMNS):
        return None
    pid, job_id, step = digits(words[0]), digits(words[1]), printable(words[2])
    if pid is None or job_id is None:
        return None
    task = step.isdecimal()
    return JobPid(pid, job_id, step, digits(words[3]) if task else None, digits(words[4]) if task else None)
