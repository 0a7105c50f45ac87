"""What jobs do with their GPUs over minutes: idle ones, little used ones, and those that lag behind their peers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TypeVar

from cockpit.config import Rules
from cockpit.fleet import GpuRow, about, gpu_freshness
from cockpit.fleet_state import Fleet
from cockpit.formats.hostlist import fold
from cockpit.gpu_means import Means
from cockpit.hang_watch import hung_job
from cockpit.joins import nodes_of
from cockpit.models import Freshness, Health, Job, Problem
from cockpit.words import span

EVERY_S = 10.0  # means over minutes hardly change from one beat to the next, and cost most
GPUS_A_LOOK = 256  # so that a big fleet is spread over several beats
STRAGGLER_OVER_S = 120.0
STRAGGLER_MAD_Z = 3.5
STRAGGLER_SEEN = 0.75  # of a job's GPUs must be known before one of them may be said to lag
IDLE_JOB_PCT = 5.0

K = TypeVar("K", bound=Hashable)


class JobUse:
    """The rules over time. Each job is looked at every EVERY_S, and what was found is told in between."""

    def __init__(self) -> None:
        self._means = Means()
        self._told: dict[int, tuple[float, tuple[Problem, ...]]] = {}

    def problems(self, fleet: Fleet) -> Iterator[Problem]:
        """Jobs whose GPUs idle, are little used, or of which some lag behind their peers."""
        by_job: dict[int, list[GpuRow]] = defaultdict(list)
        for row in fleet.rows:
            if row.job is not None and row.allocated is not False:
                by_job[row.job.job_id].append(row)
        self._told = {job_id: told for job_id, told in self._told.items() if job_id in by_job}
        left = GPUS_A_LOOK
        for job_id in self._due(by_job, fleet.steady):
            if left > 0:
                left -= len(by_job[job_id])
                self._told[job_id] = (fleet.steady, tuple(self._look(by_job[job_id], fleet)))
        self._means.keep(row.node for row in fleet.rows)
        for _, told in self._told.values():
            yield from told

    def _due(self, job_ids: Iterable[int], steady: float) -> list[int]:
        """Jobs whose turn it is, those that wait the longest first."""
        last = {job_id: self._told[job_id][0] if job_id in self._told else -math.inf for job_id in job_ids}
        return sorted((job_id for job_id in last if steady - last[job_id] >= EVERY_S), key=last.__getitem__)

    def _look(self, held: list[GpuRow], fleet: Fleet) -> Iterator[Problem]:
        job = held[0].job
        if job is None:
            return
        fresh = [row for row in held if gpu_freshness(row, fleet.steady) is Freshness.LIVE]
        total = max(job.gpus or 0, len(held))
        if (hung := hung_job(job, fresh, total, self._means, fleet)) is not None:
            yield hung  # which says more than that one of its GPUs is little used
            return
        if len(fresh) == len(held) and _all_seen(job, held):
            yield from self._low_use(job, held, fleet)
        if len(fresh) > 1 and len(fresh) >= STRAGGLER_SEEN * total:
            yield from self._stragglers(job, fresh, total, fleet)

    def _low_use(self, job: Job, held: list[GpuRow], fleet: Fleet) -> Iterator[Problem]:
        means = {row.key: self._means.of(fleet.history, row, "util_pct", fleet.rules.gpu_idle_for_s) for row in held}
        use = {key: value for key, value in means.items() if value is not None}
        if len(use) == len(held):
            yield from _low_use(job, held, use, fleet.rules)

    def _stragglers(self, job: Job, seen: list[GpuRow], total: int, fleet: Fleet) -> Iterator[Problem]:
        for metric, word, unit in (("util_pct", "utilisation", "%"), ("power_w", "power", "W")):
            means = {row.key: self._means.of(fleet.history, row, metric, STRAGGLER_OVER_S) for row in seen}
            values = {key: value for key, value in means.items() if value is not None}
            if len(values) < max(2, STRAGGLER_SEEN * total):
                continue
            slow = late(values, fleet.rules.straggler_pct)
            if slow:
                rows = {row.key: row for row in seen}
                lag = _lag(job, slow, values, total, (metric, word, unit))
                yield replace(lag, about=about(rows[key] for key in slow))


def _all_seen(job: Job, held: Sequence[GpuRow]) -> bool:
    """Whether these are all GPUs of the job: as many as it was given, or some on each of its nodes."""
    if job.gpus is not None:
        return len(held) >= job.gpus
    return {row.node for row in held} >= set(nodes_of(job.hostlist))


def _low_use(job: Job, held: Sequence[GpuRow], use: Mapping[str, float], rules: Rules) -> Iterator[Problem]:
    minutes = span(rules.gpu_idle_for_s)
    low = [row for row in held if use[row.key] < rules.gpu_idle_pct]
    nodes = fold({row.node for row in held})
    if all(value < IDLE_JOB_PCT for value in use.values()):
        gpus = f"{len(held)} GPU{'' if len(held) == 1 else 's'}"
        title = f"holds {gpus} and uses none for {minutes} · {job.user}"
        step = "ask its owner what it waits for; cancelling it frees the GPUs"
        yield Problem(f"job:idle:{job.job_id}", Health.WARN, f"job {job.label}", title, step, nodes,
                      count=len(held), about=about(held))  # fmt: skip
    elif low:
        which = f"{len(low)} of its {len(held)} GPUs" if len(held) > 1 else "its GPU"
        title = (
            f"{which} {'is' if len(low) == 1 else 'are'} used under {rules.gpu_idle_pct:.0f} % for {minutes}"
            f" · {job.user}"
        )
        evidence = ", ".join(f"{row.key} {use[row.key]:.0f} %" for row in low[:8])
        step = "enter on the job: which ranks they are, and what these do"
        yield Problem(f"job:low:{job.job_id}", Health.WARN, f"job {job.label}", title, step, evidence,
                      count=len(low), about=about(low))  # fmt: skip


def late(values: Mapping[K, float], straggler_pct: float) -> list[K]:
    """The keys far under the median, always less than half of them.

    Median and MAD with a floor of 1 % of the median, and never for less than the rule's distance: in a job
    whose GPUs all wait, small differences mean nothing. Of two GPUs the slower is held against the faster.
    """
    numbers = list(values.values())
    middle = max(numbers) if len(numbers) == 2 else median(numbers)
    if min(numbers) >= middle * (1 - straggler_pct / 100):
        return []
    spread = max(median(abs(value - middle) for value in numbers), 0.01 * middle)
    limit = middle * (1 - straggler_pct / 100)
    few = len(numbers) < 5  # too few for a spread to mean anything
    slow = [
        key
        for key, value in values.items()
        if value < limit and (few or 0.6745 * (middle - value) / spread > STRAGGLER_MAD_Z)
    ]
    return slow if len(slow) * 2 < len(numbers) or (len(numbers) == 2 and len(slow) == 1) else []


def _lag(
    job: Job, late: Sequence[str], values: Mapping[str, float], total: int, metric: tuple[str, str, str]
) -> Problem:
    name, word, unit = metric
    numbers = list(values.values())
    pair = len(numbers) == 2
    against = f"the other has {max(numbers):.0f} {unit}" if pair else f"job median {median(numbers):.0f} {unit}"
    seen = f" seen (it holds {total})" if len(numbers) < total else ""
    return Problem(
        key=f"job:lag:{job.job_id}:{name}",
        health=Health.WARN,
        subject=f"job {job.label} {late[0]}" + (f" and {len(late) - 1} more" if len(late) > 1 else ""),
        title=f"{len(late)} of {len(numbers)} GPUs{seen} lag in {word}: {against}",
        next_step="compare clocks, temperature and throttling of these GPUs with their peers",
        evidence=", ".join(f"{key} {values[key]:.0f} {unit}" for key in late[:8]),
    )
