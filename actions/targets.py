"""What a person or a screen names -> frozen targets that exist, and lists short enough for one command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actions.errors import ActionError, Refusal
from actions.spec import Scope, Targets, stale
from cockpit.formats.arrays import share_tasks
from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import brief, count, expand, fold, split_outside
from cockpit.models import Job, Node, QueueReading
from cockpit.sources.slurm import NODES, QUEUE
from cockpit.text import printable

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

MOST_NODES = 10_000
MOST_JOBS = 20_000
LIST_BYTES = 6_000  # of one command line; with program and reason it stays below 8 KiB
IDS_PER_COMMAND = 200
_SHOWN = 200

# 123, 123_7, 123_[1-9,12] (throttle and a trailing _ of a folded row are dropped), 123+1
_JOB = re.compile(r"(?P<id>[0-9]{1,10})(?:_(?P<tasks>[0-9]{1,10}|\[[0-9,%:-]+\])?|\+[0-9]{1,5})?")


def node_targets(cluster: Cluster, text: str) -> Targets:
    """The nodes of a hostlist; raises ActionError naming what cannot be read or is not there."""
    try:
        names = _expanded(text)
    except FormatError as error:
        raise ActionError(Refusal.USAGE, error.fault.line()) from error
    return Targets(Scope.NODE, known_nodes(cluster, names))


def _expanded(text: str) -> list[str]:
    size = count(text)
    if size > MOST_NODES:
        raise ActionError(Refusal.USAGE, f"{_short(text)} names {size:,} nodes; {MOST_NODES:,} at most")
    return expand(text)


def known_nodes(cluster: Cluster, names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once; raises ActionError when the cluster has no such node or its nodes were never read."""
    wanted = tuple(dict.fromkeys(names))
    known = nodes_by_name(cluster)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ActionError(Refusal.USAGE, f"no such node on {cluster.config.name}: {_short(fold(unknown))}")
    return wanted


def nodes_by_name(cluster: Cluster) -> dict[str, Node]:
    """Every node; raises ActionError when they were never read."""
    nodes = cluster.view.nodes
    if nodes is None:
        raise ActionError(Refusal.UNREACHED, stale(cluster, NODES))
    return {node.name: node for node in nodes}


def queue_reading(cluster: Cluster) -> QueueReading:
    """The queue; raises ActionError when it was never read."""
    queue = cluster.view.queue
    if queue is None:
        raise ActionError(Refusal.UNREACHED, stale(cluster, QUEUE))
    return queue


def job_targets(words: Iterable[str]) -> Targets:
    """Job ids, array parts, het components and row keys of the queue pane; raises ActionError for anything else."""
    items = (item.strip() for word in words for item in split_outside(word))
    labels = tuple(dict.fromkeys(label_of(item) for item in items if item))
    if len(labels) > MOST_JOBS:
        raise ActionError(Refusal.USAGE, f"{len(labels):,} jobs at once; {MOST_JOBS:,} at most")
    return Targets(Scope.JOB, labels)


def label_of(word: str) -> str:
    """The form in which Slurm's programs take a job; raises ActionError when it is none."""
    found = _JOB.fullmatch(word)
    if found is None:
        raise ActionError(Refusal.USAGE, f"{_short(word)} is no job id: write 123, 123_7 or 123_[1-9]")
    tasks = (found["tasks"] or "").partition("%")[0].strip("[]")
    if ":" in tasks:
        raise ActionError(Refusal.USAGE, f"{_short(word)}: Slurm takes no steps (`:2`) here; list the tasks")
    if not tasks:  # a het component stands for its whole job: Slurm holds and cancels it as one
        return str(int(found["id"]))
    return f"{int(found['id'])}_{tasks if tasks.isdigit() else f'[{tasks}]'}"


@dataclass(frozen=True, slots=True)
class Label:
    """A job label taken apart."""

    job_id: int
    tasks: str

    @classmethod
    def of(cls, text: str) -> Label:
        job_id, _, tasks = text.partition("_")
        return cls(int(job_id), tasks.strip("[]"))

    def covers(self, job_id: int, array_id: int | None, tasks: str, het_id: int | None) -> bool:
        """True when a record of Slurm's belongs to what this label names."""
        if self.tasks:
            return array_id == self.job_id and share_tasks(self.tasks, tasks)
        return self.job_id in (job_id, array_id, het_id)


def records_of(labels: Sequence[str], queue: QueueReading) -> dict[str, tuple[Job, ...]]:
    """For each label the queue's records that it covers; () where there is none."""
    by_id: dict[int, list[Job]] = {}
    for job in queue.jobs:
        for number in {job.job_id, job.array_job_id, job.het_job_id}:
            if number is not None:
                by_id.setdefault(number, []).append(job)
    found = {}
    for text in labels:
        label = Label.of(text)
        found[text] = tuple(
            job
            for job in by_id.get(label.job_id, ())
            if label.covers(job.job_id, job.array_job_id, job.array_tasks, job.het_job_id)
        )
    return found


def queue_target(cluster: Cluster, name: str) -> Targets:
    """One queue; raises ActionError when the cluster has none of that name."""
    known = {queue for node in nodes_by_name(cluster).values() for queue in node.partitions}
    site = cluster.view.site
    known |= {partition.name for partition in site.partitions} if site else set()
    if name not in known:
        raise ActionError(
            Refusal.USAGE, f"no queue {_short(name)} on {cluster.config.name}; there are: {', '.join(sorted(known))}"
        )
    return Targets(Scope.QUEUE, (name,))


def host_batches(names: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names as hostlists that each fit a command line, with the names of each."""
    folded = fold(names)
    if len(folded.encode()) <= LIST_BYTES or len(names) == 1:
        if names:
            yield folded, tuple(names)
        return
    middle = len(names) // 2
    yield from host_batches(names[:middle])
    yield from host_batches(names[middle:])


def job_batches(labels: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The labels in groups that each fit a command line."""
    batch: list[str] = []
    room = LIST_BYTES
    for label in labels:
        if batch and (len(batch) >= IDS_PER_COMMAND or len(label) + 1 > room):
            yield tuple(batch)
            batch, room = [], LIST_BYTES
        batch.append(label)
        room -= len(label) + 1
    if batch:
        yield tuple(batch)


def _short(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


def short_list(names: Iterable[str]) -> str:
    """Node names for a sentence."""
    return brief(list(names), 60)
