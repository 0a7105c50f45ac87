"""Job ids as scontrol and scancel take them, found in the simulation; a part of an array gets a record of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from cockpit.demo import changes
from cockpit.demo.jobs import SimJob
from cockpit.demo.programs.call import Call
from cockpit.formats.arrays import task_ranges

_ID = re.compile(r"([0-9]+)(?:_([0-9]+|\[[0-9,%-]+\])|\+([0-9]+))?")
LOGIN = "demo"
NO_JOB = "Invalid job id specified"


def listed(words: Sequence[str]) -> list[str]:
    """The ids of a comma list or of several words; commas inside brackets belong to the id."""
    return [item for word in words for item in re.split(r",(?![^\[]*\])", word) if item]


def records(call: Call, asked: str) -> list[SimJob]:
    """The records behind an id, in order; raises Denied for one that is not there."""
    found = _ID.fullmatch(asked)
    if found is None:
        raise changes.Denied(NO_JOB)
    own, tasks, offset = int(found[1]), found[2], found[3]
    jobs = [job for job in call.sim.jobs.values() if own in (job.job_id, job.array_job_id, job.het_job_id)]
    if tasks:
        jobs = _with_tasks(call, jobs, {task for each in task_ranges(tasks) for task in each})
    elif offset:
        jobs = [job for job in jobs if job.het_offset == int(offset)]
    elif any(job.job_id == own and job.array_job_id not in (None, own) for job in jobs):
        jobs = [job for job in jobs if job.job_id == own]
    if not jobs:
        raise changes.Denied(NO_JOB)
    return sorted(jobs, key=lambda job: job.job_id)


def _with_tasks(call: Call, jobs: Sequence[SimJob], wanted: set[int]) -> list[SimJob]:
    found = []
    for job in jobs:
        if job.task in wanted:
            found.append(job)
        elif wanted & set(job.rest):
            found.append(changes.part_of(call.sim, job, wanted))
    return found


def for_each(
    call: Call, ids: Sequence[str], change: Callable[[SimJob], None], denied: str, *, forgiving: bool = True
) -> list[str]:
    """Change every record behind the ids; the error lines. `denied` is said of others' jobs without root.

    Of several records behind one id those that cannot be changed are passed over when `forgiving`.
    """
    errors = []
    for asked in ids:
        try:
            jobs = records(call, asked)
            if not call.root and any(job.ask.user != LOGIN for job in jobs):
                raise changes.Denied(denied)
            _change_all(jobs, change, forgiving=forgiving)
        except changes.Denied as why:
            errors.append(f"{why} for job {asked}")
    return errors


def _change_all(jobs: Sequence[SimJob], change: Callable[[SimJob], None], *, forgiving: bool) -> None:
    refused: changes.Denied | None = None
    done = 0
    for job in jobs:
        try:
            change(job)
            done += 1
        except changes.Denied as why:
            refused = why
    if refused is not None and not (done and forgiving):
        raise refused
