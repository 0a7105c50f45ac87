"""The columns of the queue pane: pure functions from a queue row to a cell. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cockpit.formats.job_states import HOLDING, STARTED, job_state, order
from cockpit.formats.reasons import explain_reason, is_stuck
from cockpit.joins import nodes_of
from cockpit.models import Health, QueueRow
from cockpit.words import MISSING, count, moment, span
from screens.grid_model import Cell, Column
from themes import state_token

_KIND_HEALTH = {"bad": Health.CRITICAL, "unknown": Health.UNKNOWN}


@dataclass(frozen=True, slots=True)
class QueueTable:
    """Columns and filter fields over queue rows; `now` is the time on the head's clock."""

    now: Callable[[], float]

    def columns(self) -> tuple[Column[QueueRow], ...]:
        """Every column, in order; the narrowest screen keeps id, state, name, user and why or where."""
        return (
            Column("job", "job", label, lambda r: r.lead.job_id, 6, 22, down_first=True),
            Column("state", "state", _state, _state_order, 7, 26, note="sorts running first"),
            Column("name", "name", lambda r: r.lead.name, lambda r: r.lead.name.casefold(), 8, 28, drop=2, cut=True),
            Column("user", "user", lambda r: r.lead.user, lambda r: r.lead.user, 6, 14, drop=1, cut=True),
            Column("queue", "queue", _queues, lambda r: sorted(r.lead.partitions), 5, 16, drop=5, cut=True),
            Column("nodes", "nodes", _nodes, node_count, 5, 5, "right", 4, down_first=True, note="held, or asked for"),
            Column("gpus", "gpus", _gpus, gpu_count, 4, 6, "right", 3, down_first=True, note="held, or asked for"),
            Column("elapsed", "elapsed", self._elapsed, _started, 7, 7, "right", 6, live=True),
            Column("left", "left", self._left, _ends, 6, 9, "right", 7, live=True, note="until its time limit"),
            Column("where", "where or why", why_or_where, None, 24, 90, cut=True, note="its nodes, or why it waits"),
            Column("account", "account", lambda r: r.lead.account or MISSING, lambda r: r.lead.account, 6, 16,
                   wide=True, cut=True),
            Column("qos", "qos", lambda r: r.lead.qos or MISSING, lambda r: r.lead.qos, 4, 14, wide=True, cut=True),
            Column("priority", "priority", lambda r: count(r.lead.priority), lambda r: r.lead.priority, 5, 10, "right",
                   wide=True, down_first=True, note="higher starts earlier"),
            Column("submitted", "submitted", self._submitted, lambda r: r.lead.submitted_at, 5, 12, wide=True),
            Column("starts", "may start", self._starts, _estimate, 5, 12, wide=True, note="Slurm's own estimate"),
            Column("cpus", "cpus", lambda r: count(r.lead.cpus), lambda r: r.lead.cpus, 4, 8, "right", wide=True),
            Column("depends", "depends on", lambda r: r.lead.dependency or MISSING, None, 8, 30, wide=True, cut=True),
            Column("comment", "comment", lambda r: r.lead.comment or MISSING, None, 8, 60, wide=True, cut=True),
        )  # fmt: skip

    def fields(self) -> Mapping[str, Callable[[QueueRow], str]]:
        """What `field:value` in a filter may name."""
        return {
            "job": lambda r: f"{label(r)} {r.lead.job_id}",
            "state": lambda r: " ".join(f"{code} {job_state(code).word}" for code, _ in r.tally),
            "name": lambda r: r.lead.name,
            "user": lambda r: r.lead.user,
            "account": lambda r: r.lead.account,
            "queue": lambda r: " ".join(r.lead.partitions),
            "node": lambda r: " ".join(name for job in r.jobs if job.hostlist for name in nodes_of(job.hostlist)),
            "reason": lambda r: " ".join(job.reason for job in r.jobs if job.reason),
            "gpu": lambda r: r.lead.gpu_type,
            "qos": lambda r: r.lead.qos,
            "comment": lambda r: r.lead.comment,
        }

    def _elapsed(self, row: QueueRow) -> Cell:
        started = _started(row)
        return "" if started is None else span(self.now() - started)

    def _left(self, row: QueueRow) -> Cell:
        if row.lead.state not in STARTED:
            return (row.lead.limit_word and span(row.lead.limit_s), "dim") if row.lead.limit_s else ""
        ends = _ends(row)
        if ends is None:
            return "no limit" if row.lead.limit_word == "UNLIMITED" else MISSING
        return span(ends - self.now())

    def _submitted(self, row: QueueRow) -> Cell:
        return moment(row.lead.submitted_at, self.now())

    def _starts(self, row: QueueRow) -> Cell:
        return moment(_estimate(row), self.now())


def label(row: QueueRow) -> str:
    """The id of the row as people type it."""
    return f"{row.lead.array_job_id}_*" if row.key.endswith("_") else row.lead.label


def health(row: QueueRow) -> Health:
    """What deserves a look: failed states, and jobs that wait for something that will not come by itself."""
    kind = job_state(row.lead.state).kind
    if kind in _KIND_HEALTH:
        return _KIND_HEALTH[kind]
    reasons = {job.reason for job in row.jobs if job.state == "PD"}  # an array's tasks share a few
    if any(reason and is_stuck(reason) for reason in reasons):
        return Health.WARN
    return Health.OK


def held_nodes(row: QueueRow) -> set[str]:
    """The nodes that the row's jobs hold now."""
    return {name for job in row.jobs if job.state in HOLDING for name in nodes_of(job.hostlist)}


def node_count(row: QueueRow) -> int | None:
    """Nodes of the row: those held now, each once, or what the waiting job asks for."""
    held = held_nodes(row)
    return len(held) if held else row.lead.node_count


def show_jobs(rows: Sequence[QueueRow]) -> Sequence[str]:
    """How Slurm itself shows these jobs; an array by its own id."""
    ids = (str(row.lead.job_id) if "+" in row.key else row.key.rstrip("_") for row in rows)
    return ("squeue", "-j", ",".join(ids))


def gpu_count(row: QueueRow) -> int | None:
    """GPUs of the row in the same sense; None when Slurm's text does not tell them."""
    counts = [job.gpus for job in row.jobs if job.state in HOLDING or len(row.jobs) == 1]
    return sum(number or 0 for number in counts) if counts and None not in counts else None


def why_or_where(row: QueueRow) -> Cell:
    """Where a job runs, or why it does not."""
    lead = row.lead
    if lead.hostlist:
        return ",".join(dict.fromkeys(job.hostlist for job in row.jobs if job.hostlist))
    if not lead.reason:
        return ""
    told = explain_reason(lead.reason)
    return " · ".join(f"{one.code}: {one.title}" if one.title != one.code else one.code for one in told)


def _state(row: QueueRow) -> Cell:
    found = health(row)
    folded = row.key.endswith("_")  # an array: Slurm's short codes, so that the tally fits
    text = "  ".join(f"{code} {tasks}" for code, tasks in row.tally) if folded else job_state(row.lead.state).word
    return text, state_token(found)


def _state_order(row: QueueRow) -> tuple[int, float]:
    return order(row.lead.state), -(row.lead.started_at or row.lead.submitted_at or 0)


def _queues(row: QueueRow) -> Cell:
    return ",".join(sorted(row.lead.partitions))


def _nodes(row: QueueRow) -> Cell:
    return count(node_count(row))


def _gpus(row: QueueRow) -> Cell:
    return count(gpu_count(row))


def _started(row: QueueRow) -> float | None:
    return row.lead.started_at if row.lead.state in STARTED else None


def _ends(row: QueueRow) -> float | None:
    return row.lead.ends_at if row.lead.state in STARTED and row.lead.limit_word != "UNLIMITED" else None


def _estimate(row: QueueRow) -> float | None:
    return row.lead.started_at if row.lead.state == "PD" else None
