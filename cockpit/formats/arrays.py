"""Job arrays: how many tasks a record stands for, and the queue folded to one line for each array."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from operator import is_

from cockpit.formats.job_states import order
from cockpit.models import Job, QueueRow

_RANGE = re.compile(r"([0-9]{1,10})-([0-9]{1,10})(?::([0-9]{1,10}))?")
_MOST_DIGITS = 10


def count_tasks(text: str) -> int:
    """How many array tasks `7`, `1-100%5` or `1,3,7-9,20-30:2%7` names; at least one.

    A list that Slurm cut (`...`, when SLURM_BITSTR_LEN was not 0) counts for what is still to be seen.
    """
    if text.isdecimal():
        return 1
    total = 0
    for part in text.partition("%")[0].strip("[]").split(","):
        part = part.strip().rstrip(".")
        if found := _RANGE.fullmatch(part):
            low, high, step = int(found[1]), int(found[2]), int(found[3] or 1)
            total += max(0, (high - low) // max(step, 1) + 1)
        elif part.isdecimal():
            total += 1
    return max(total, 1)


def fold_queue(jobs: Iterable[Job], cache: dict[str, QueueRow] | None = None) -> tuple[QueueRow, ...]:
    """The lines of the queue, in the order of each line's first record: a line for a job or a whole array.

    `cache` is filled with these rows and emptied of others; a row whose jobs are the same objects as last
    time is the same row again.
    """
    known = {} if cache is None else cache
    groups: dict[str, Job | list[Job]] = {}
    for job in jobs:
        if job.array_job_id is None:
            groups[_single_key(job)] = job
        else:
            group = groups.setdefault(f"{job.array_job_id}_", [])
            if isinstance(group, list):
                group.append(job)
    rows = {key: _row(key, group, known.get(key)) for key, group in groups.items()}
    if cache is not None:
        cache.clear()
        cache.update(rows)
    return tuple(rows.values())


def count_states(jobs: Iterable[Job]) -> dict[str, int]:
    """Jobs by compact state, every array task counted singly: in the order of `job_states.order`."""
    counts: Counter[str] = Counter()
    for job in jobs:
        counts[job.state] += job.task_count
    return dict(sorted(counts.items(), key=lambda item: _rank(item[0])))


def _single_key(job: Job) -> str:
    return str(job.job_id) if job.het_job_id is None else f"{job.het_job_id}+{job.het_offset or 0}"


def _row(key: str, group: Job | list[Job], known: QueueRow | None) -> QueueRow:
    if isinstance(group, Job):
        if known is not None and known.jobs[0] is group:
            return known
        return QueueRow(key, (group,), ((group.state, group.task_count),))
    ranks = {state: _rank(state) for state in {job.state for job in group}}
    members = tuple(group) if len(ranks) == 1 else tuple(sorted(group, key=lambda job: ranks[job.state]))
    if known is not None and len(known.jobs) == len(members) and all(map(is_, known.jobs, members)):
        return known
    return QueueRow(key, members, tuple(count_states(members).items()))


def _rank(state: str) -> tuple[int, str]:
    return order(state), state


def task_ranges(text: str) -> tuple[range, ...]:
    """The tasks that `7`, `1-100%5` or `1,3,7-9,20-30:2%7` names, as ranges; () for what cannot be read."""
    found: list[range] = []
    for part in text.partition("%")[0].strip("[]").split(","):
        if match := _RANGE.fullmatch(part.strip()):
            found.append(range(int(match[1]), int(match[2]) + 1, max(1, int(match[3] or 1))))
        elif part.strip().isdecimal() and len(part.strip()) <= _MOST_DIGITS:
            found.append(range(int(part), int(part) + 1))
    return tuple(found)


def share_tasks(one: str, other: str) -> bool:
    """True when both texts name at least one task in common."""
    wanted = task_ranges(other)
    return any(_overlap(mine, theirs) for mine in task_ranges(one) for theirs in wanted)


def _overlap(one: range, other: range) -> bool:
    if not one or not other or one[-1] < other[0] or other[-1] < one[0]:
        return False
    few, many = sorted((one, other), key=len)
    return any(task in many for task in few)
