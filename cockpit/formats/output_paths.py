"""Which files a job's output goes to, from Slurm's record of the job.

`scontrol show job` fills in %j, %A, %a, %x and %u where no number stands before the letter, and leaves the rest of
a pattern as it was submitted; what slurmstepd does with that was seen on Slurm 22.05.8. For a batch script the
task and the node are always 0, and the step is `batch`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.formats.scontrol_show import JobDetail

NO_TASK = "4294967294"  # what Slurm writes for the task of a job that is no array, or has not started
NULL = "/dev/null"
STEPS_NOTE = "steps started with `srun --output` write elsewhere; Slurm does not tell where"

_LETTER = re.compile(r"%(\d*)([%A-Za-z])")
_WIDEST = 10


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file. `stream` is stdout, stderr or output (both); `others` are spellings to try when `path` is not there."""

    stream: str
    path: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobOutputs:
    """Where a job writes. `why` says why there is no file when `files` is empty; `batch_host` may be empty."""

    files: tuple[OutputFile, ...] = ()
    why: str = ""
    batch_host: str = ""
    state: str = ""  # Slurm's word, such as RUNNING

    @property
    def pending(self) -> bool:
        """True while the job has not begun, so that its files are not there yet."""
        return self.state in ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")


def job_outputs(detail: JobDetail) -> JobOutputs:
    """The files of a job's batch script, standard output first; one when both streams go to the same."""
    state, host = detail.get("JobState"), detail.get("BatchHost")
    if not detail.std_out:
        why = "Slurm tells no file for this job"
        if detail.get("BatchFlag") == "0":
            why = "it has no batch script: what it writes goes to the terminal or program that started it"
        return JobOutputs((), why, host, state)
    if NO_TASK in detail.std_out and not detail.get("ArrayTaskId").isdigit() and detail.get("ArrayJobId"):
        return JobOutputs(
            (), "these tasks of the array have not started: each will have a file of its own", host, state
        )
    values = _values(detail)
    out = _file("stdout", detail.std_out, detail.work_dir, values)
    # Since Slurm 25.11 an error file that was not asked for is empty here; it is the one of standard output.
    err = _file("stderr", detail.std_err or detail.std_out, detail.work_dir, values)
    found = (OutputFile("output", out.path, out.others),) if out.path == err.path else (out, err)
    files = tuple(file for file in found if file.path != NULL)
    why = "" if files else "its output is thrown away: it goes to /dev/null"
    return JobOutputs(files, why, host, state)


def _file(stream: str, shown: str, work_dir: str, values: Mapping[str, str]) -> OutputFile:
    older = {letter: value for letter, value in values.items() if letter != "b"}
    # A job's name may hold a percent sign itself: then what is shown is the name already.
    spellings = [expand_pattern(shown, values), expand_pattern(shown, older), shown]
    paths = list(dict.fromkeys(_absolute(path, work_dir) for path in spellings))
    return OutputFile(stream, paths[0], tuple(paths[1:]))


def _absolute(path: str, work_dir: str) -> str:
    return path if path.startswith("/") or not work_dir else posixpath.join(work_dir, path)


def expand_pattern(pattern: str, values: Mapping[str, str]) -> str:
    """Fill in a file name pattern as slurmstepd does: `%4j` with zeros to four digits (at most ten), `%%` is `%`.

    Letters that are not in `values` stay as they are.
    """

    def value(found: re.Match[str]) -> str:
        width, letter = found[1], found[2]
        if letter == "%":
            return "%"
        if letter not in values:
            return found[0]
        text = values[letter]
        return text.zfill(min(int(width[-3:]), _WIDEST)) if width and text.isdigit() else text

    return _LETTER.sub(value, pattern)


def _values(detail: JobDetail) -> dict[str, str]:
    job = detail.get("JobId") or str(detail.job_id)
    task = detail.get("ArrayTaskId")
    task = task if task.isdigit() else NO_TASK
    host = detail.get("BatchHost")
    values = {
        "j": job,
        "J": job,
        "A": detail.get("ArrayJobId") or job,
        "a": task,
        "x": detail.get("JobName"),
        "u": detail.get("UserId").partition("(")[0],
        "n": "0",
        "t": "0",
        "s": "batch",
    }
    if task != NO_TASK:
        values["b"] = str(int(task) % 10)
    if host:
        values["N"] = host.partition(".")[0]
    return values
