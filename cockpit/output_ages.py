"""How long ago jobs last wrote to their output: whether anything would be lost by ending them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cockpit.formats.job_states import STARTED
from cockpit.formats.output_paths import job_outputs
from cockpit.models import FaultError, Job
from cockpit.sources.remote_file import stamps_of

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

MOST_JOBS = 12  # each is a question to the controller; those with the most GPUs are asked for
TOTAL_S = 6.0


def output_ages(cluster: Cluster, jobs: Iterable[Job]) -> Mapping[int, float]:
    """Job id -> seconds since its files last grew, by the head's clock; what could not be told is left out.

    Waits for the head. Only what the head sees is looked at: a shared filesystem as a rule.
    """
    running = sorted((job for job in jobs if job.state in STARTED), key=lambda job: -(job.gpus or 0))
    paths = _paths(cluster, running[:MOST_JOBS])
    try:
        stamps = stamps_of(cluster.head, paths)
    except FaultError:
        return {}
    now, ages = cluster.head_now(), dict[int, float]()
    for path, stamp in stamps.items():
        job_id, age_s = paths[path], max(0.0, now - stamp)
        ages[job_id] = min(age_s, ages.get(job_id, age_s))
    return ages


def _paths(cluster: Cluster, jobs: Iterable[Job]) -> dict[str, int]:
    """Every file of those jobs -> its job, as far as Slurm tells them in time."""
    found: dict[str, int] = {}
    until = cluster.clock.steady() + TOTAL_S
    for job in jobs:
        if cluster.clock.steady() > until:
            break
        try:
            outputs = job_outputs(cluster.job_detail(job))
        except FaultError:
            continue
        found |= {path: job.job_id for file in outputs.files for path in (file.path, *file.others)}
    return found
