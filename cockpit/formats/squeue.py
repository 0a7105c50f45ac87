"""One `squeue -O` call to jobs, fast enough for 20,000 records every few seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from sys import intern
from typing import Any

from cockpit.formats.arrays import count_tasks
from cockpit.formats.columns import Column, each, instants, numbers
from cockpit.formats.gres import Gpus, job_gpus
from cockpit.formats.job_states import compact_state
from cockpit.formats.records import format_args, split_fields, split_records
from cockpit.formats.times import duration_s
from cockpit.formats.words import NO_TEXT_QUEUE, digits, word
from cockpit.models import Job
from cockpit.text import cut, printable

# Nothing that changes each second (TimeUsed, State) and no long paths; free text last. These names print the
# same columns on Slurm 22.05 to 25.11; one that a version does not know stays empty.
_FIELDS = """
    JobID ArrayJobID ArrayTaskID HetJobID HetJobOffset StateCompact Partition UserName Account QOS NumNodes
    NumCPUs NumTasks tres-alloc tres-per-node tres-per-job tres-per-task SubmitTime EligibleTime StartTime
    EndTime TimeLimit PriorityLong NodeList SchedNodes Dependency Reservation RestartCnt Requeue BatchHost
    Feature Reason Comment admin_comment system_comment Name
"""
QUEUE_FIELDS: tuple[str, ...] = tuple(_FIELDS.split())
FREE_TEXT = frozenset({"Reason", "Comment", "admin_comment", "system_comment", "Name"})

_WHAT = "reading squeue's answer"
_JOB_START = re.compile(rb"[0-9]+\x1f")
_ANY_START = re.compile(rb"[0-9][^\x1f\n]*\x1f")
_BATCH = 500  # few enough that what is only needed on the way stays in the processor's cache
_MOST_TEXT = 1000  # of a name or a comment; the rest would only slow every screen down
_NULLS = "\x1f(null)\x1f(null)\x1f"  # admin_comment and system_comment, between a job's comment and its name


def queue_args(mark: str = "") -> list[str]:
    """What follows `squeue`: every queue entry of every partition, as `parse_queue` reads it with the same `mark`.

    Without a mark (hex digits from `secrets`) a job's name could forge whole records.
    """
    return ["-h", "-a", "-O", format_args(QUEUE_FIELDS, mark)]


def parse_queue(
    raw: bytes,
    fields: Sequence[str] = QUEUE_FIELDS,
    cache: dict[bytes, Job] | None = None,
    *,
    mark: str = "",
) -> tuple[Job, ...]:
    """Every record of squeue's output as a job, in Slurm's order; `fields` begins with an id.

    `cache` is filled with this answer's records and emptied of all others: a record whose bytes are the same
    as last time gives the same Job object again. Raises FormatError when the output is cut off or is not
    squeue's.
    """
    fields = tuple(fields)
    trusted = next((at for at, name in enumerate(fields) if name in FREE_TEXT), len(fields) - 1)
    start = _JOB_START if fields[0] == "JobID" else _ANY_START
    known = dict(cache) if cache else {}
    records = split_records(raw, start=start, trusted=trusted, what=_WHAT, mark=mark, known=known)
    new = [record for record in records if record not in known]
    for at in range(0, len(new), _BATCH):
        batch = new[at : at + _BATCH]
        known.update(zip(batch, _jobs(batch, fields, trusted), strict=True))
    jobs = tuple([known[record] for record in records])
    if cache is not None:
        cache.clear()
        cache.update(zip(records, jobs, strict=True))
    return jobs


def _jobs(records: Sequence[bytes], fields: tuple[str, ...], trusted: int) -> list[Job]:
    """The jobs of whole records, read column by column: three times as fast as job by job."""
    if not records:
        return []
    anchor = _NULLS if fields[-5:] == QUEUE_FIELDS[-5:] else None
    decoded = [record.decode("utf-8", "replace") for record in records]
    rows = [split_fields(text, len(fields), trusted, anchor) for text in decoded]
    texts = dict(zip(fields, zip(*rows, strict=True), strict=True))
    if "StateCompact" not in texts and "State" in texts:
        texts["StateCompact"] = texts["State"]
    absent = ("",) * len(rows)
    c = {name: read(texts.get(name, absent)) for name, read in _COLUMNS.items()}
    tasks, limits = c["ArrayTaskID"], c["TimeLimit"]
    array_ids = [array if task[0] else None for array, task in zip(c["ArrayJobID"], tasks, strict=True)]
    gpus = each(_gpus)([*zip(*(c[name] for name in _GPU_COLUMNS), strict=True)])
    columns: dict[str, Sequence[Any]] = {attribute: c[name] for attribute, name in _ATTRIBUTES.items()}
    columns |= {
        "array_job_id": array_ids,
        "array_tasks": [task[0] for task in tasks],
        "task_count": [task[1] for task in tasks],
        "gpus": [found.count for found in gpus],
        "gpu_type": [found.type for found in gpus],
        "limit_s": [limit[0] for limit in limits],
        "limit_word": [limit[1] for limit in limits],
    }
    # By position, in Job's own order: by keyword each job would cost half as much again.
    return list(map(Job, *(columns[name] for name in Job.__dataclass_fields__)))


def _gpus(key: tuple[str, str, str, str, int | None, int | None]) -> Gpus:
    alloc, per_node, per_job, per_task, nodes, tasks = key
    return job_gpus(tres_alloc=alloc, per_node=per_node, per_job=per_job, per_task=per_task, nodes=nodes, tasks=tasks)


def _id(text: str) -> int:
    return digits(text) or 0


def _word(text: str) -> str:
    return word(text, NO_TEXT_QUEUE)


def _name(text: str) -> str:
    return printable(cut(text, _MOST_TEXT))


def _said(text: str) -> str:
    return _word(cut(text, _MOST_TEXT))


def _names(text: str) -> tuple[str, ...]:
    return tuple(intern(name) for name in _word(text).split(",") if name)


def _tasks(text: str) -> tuple[str, int]:
    shown = _word(text)
    return shown, count_tasks(shown) if shown else 1


def _limit(text: str) -> tuple[float | None, str]:
    return duration_s(text), _word(text)


def _flag(text: str) -> bool | None:
    return {"0": False, "1": True}.get(text)


_GPU_COLUMNS = ("tres-alloc", "tres-per-node", "tres-per-job", "tres-per-task", "NumNodes", "NumTasks")

# Attributes of Job that are one column of squeue as it is read.
_ATTRIBUTES: dict[str, str] = {
    "job_id": "JobID",
    "state": "StateCompact",
    "name": "Name",
    "het_job_id": "HetJobID",
    "het_offset": "HetJobOffset",
    "partitions": "Partition",
    "user": "UserName",
    "account": "Account",
    "qos": "QOS",
    "node_count": "NumNodes",
    "cpus": "NumCPUs",
    "submitted_at": "SubmitTime",
    "eligible_at": "EligibleTime",
    "started_at": "StartTime",
    "ends_at": "EndTime",
    "priority": "PriorityLong",
    "hostlist": "NodeList",
    "scheduled_hostlist": "SchedNodes",
    "batch_host": "BatchHost",
    "dependency": "Dependency",
    "reservation": "Reservation",
    "restarts": "RestartCnt",
    "requeueable": "Requeue",
    "features": "Feature",
    "reason": "Reason",
    "comment": "Comment",
    "admin_comment": "admin_comment",
    "system_comment": "system_comment",
}

# How each column is read; what is not named here is a word.
_READERS: dict[str, Column] = {
    "JobID": each(_id),
    "Name": each(_name),
    **dict.fromkeys(("Comment", "admin_comment", "system_comment", "Reason", "Dependency"), each(_said)),
    "StateCompact": each(compact_state),
    "ArrayTaskID": each(_tasks),
    "Partition": each(_names),
    "TimeLimit": each(_limit),
    "Requeue": each(_flag),
    **dict.fromkeys(("SubmitTime", "EligibleTime", "StartTime", "EndTime"), instants),
    **dict.fromkeys(("ArrayJobID", "HetJobID", "HetJobOffset", "PriorityLong", "RestartCnt"), numbers),
    **dict.fromkeys(("NumNodes", "NumCPUs", "NumTasks"), numbers),
}
_COLUMNS: dict[str, Column] = {
    name: _READERS.get(name, each(_word)) for name in (*_ATTRIBUTES.values(), *_READERS, *_GPU_COLUMNS)
}
