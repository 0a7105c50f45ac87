"""A narrow look at a few jobs: what an action watches after it has changed them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.formats.job_states import compact_state
from cockpit.formats.records import format_args, split_fields, split_records
from cockpit.formats.words import NO_TEXT_QUEUE, digits, word

# Ids first, the reason (free text) last; the same columns on Slurm 22.05 to 25.11.
_NAMES = "JobID ArrayJobID ArrayTaskID HetJobID StateCompact RestartCnt PriorityLong Nice Reason"
_FIELDS = tuple(_NAMES.split())
_START = re.compile(rb"[0-9]+\x1f")


@dataclass(frozen=True, slots=True)
class JobNow:
    """One record of a job as it is now; `array_tasks` is "" when it is no array."""

    job_id: int
    array_job_id: int | None
    array_tasks: str
    het_job_id: int | None
    state: str
    restarts: int | None
    priority: int | None
    nice: int | None
    reason: str

    @property
    def held(self) -> bool:
        """True when nothing of this record may start before it is released.

        squeue joins the reasons of an array's waiting tasks, so that a hold on some hides among others; the
        launch failures that hold a job say so in words.
        """
        parts = [part for part in self.reason.split(",") if part]
        return bool(parts) and all(part.startswith("JobHeld") or "held" in part for part in parts)


def job_now_args(labels: Sequence[str], mark: str, *, each_task: bool) -> list[str]:
    """What follows `squeue` to look at these jobs; `each_task` lists every array task on its own."""
    return ["-h", "-a", "-t", "all", *(["-r"] if each_task else []), "-j", ",".join(labels), *_form(mark)]


def on_nodes_args(hostlist: str, mark: str) -> list[str]:
    """What follows `squeue` to look at the jobs on these nodes."""
    return ["-h", "-a", "-w", hostlist, *_form(mark)]


def named_args(name: str, mark: str) -> list[str]:
    """What follows `squeue` to look at the jobs of that very name, ended ones too."""
    return ["-h", "-a", "-t", "all", f"--name={name}", *_form(mark)]


def waiting_args(user: str, mark: str) -> list[str]:
    """What follows `squeue` to look at a user's waiting jobs."""
    return ["-h", "-a", "-t", "PD", "-u", user, *_form(mark)]


def _form(mark: str) -> list[str]:
    return ["-O", format_args(_FIELDS, mark)]


def parse_jobs_now(raw: bytes, mark: str) -> tuple[JobNow, ...]:
    """Every record; raises FormatError when the output is cut off."""
    trusted = len(_FIELDS) - 1
    records = split_records(raw, start=_START, trusted=trusted, what="reading the jobs", mark=mark)
    return tuple(_job(split_fields(record.decode("utf-8", "replace"), len(_FIELDS))) for record in records)


def _job(fields: Sequence[str]) -> JobNow:
    job_id, array_id, tasks, het_id, state, restarts, priority, nice, reason = fields
    shown = word(tasks, NO_TEXT_QUEUE)
    return JobNow(
        job_id=digits(job_id) or 0,
        array_job_id=digits(array_id) if shown else None,
        array_tasks=shown,
        het_job_id=digits(het_id),
        state=compact_state(state),
        restarts=digits(restarts),
        priority=digits(priority),
        nice=_signed(nice),
        reason=word(reason, NO_TEXT_QUEUE),
    )


def _signed(text: str) -> int | None:
    value = digits(text.removeprefix("-"))
    return -value if value is not None and text.startswith("-") else value
