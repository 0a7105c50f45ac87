"""A job's output on a cluster: which files Slurm names, and the machines that may have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from cockpit.cluster import Cluster
from cockpit.config import ConfigError
from cockpit.formats.output_paths import JobOutputs, job_outputs
from cockpit.formats.scontrol_show import JobDetail, parse_job_details
from cockpit.models import Fault, FaultError, FaultKind, Job
from cockpit.sources.output_file import Where
from cockpit.sources.output_reader import OutputReader

_JOB = re.compile(r"(\d{1,10})(?:_(\d{1,10})|\+\d{1,6})?")


def open_output(
    cluster: Cluster,
    job: Job,
    detail: JobDetail | None,
    changed: Callable[[], object],
    *,
    stream: str = "stdout",
) -> OutputReader:
    """A reader of what a job writes, not started yet. `detail` saves asking Slurm the first time."""
    known = [] if detail is None else [detail]

    def ask() -> JobOutputs:
        return job_outputs(known.pop() if known else cluster.job_detail(job))

    def places(outputs: JobOutputs) -> Sequence[Where]:
        return output_places(cluster, outputs)

    return OutputReader(ask, places, changed, stream=stream, clock=cluster.clock)


def output_places(cluster: Cluster, outputs: JobOutputs) -> list[Where]:
    """The head first, which shares the file system as a rule, then the node that ran the batch script."""
    facts, head = cluster.slurm.known_facts(), cluster.config.head
    places = [Where(facts.hostname if facts and head == "local" else head, lambda: cluster.head)]
    host = outputs.batch_host
    if host and not outputs.pending:
        places.append(Where(host, lambda: cluster.node_host(host), host))
    return places


def find_outputs(cluster: Cluster, job: str) -> JobOutputs:
    """The files of a job that somebody names: 123, 123_7 or 123+1. Raises ConfigError and FaultError."""
    return job_outputs(find_job(cluster, job)[0])


def find_job(cluster: Cluster, job: str) -> tuple[JobDetail, bytes]:
    """Slurm's record of a job that somebody names, read and as it came. Raises ConfigError and FaultError."""
    named = _JOB.fullmatch(job)
    if named is None:
        raise ConfigError(f"{job!r} is no job: write 123, 123_7 for a task of an array, or 123+1")
    raw = cluster.slurm.read("scontrol", ["-d", "show", "job", job], f"reading job {job}")
    details = parse_job_details(raw)
    own = [detail for detail in details if len(details) == 1 or detail.job_id == int(named[1])]
    if not own:
        raise FaultError(Fault(FaultKind.MISSING, f"job {job}", "Slurm knows no such job"))
    if len(details) > 1 and own[0].get("ArrayJobId"):
        tasks = [detail.get("ArrayTaskId") for detail in details if detail.get("ArrayTaskId").isdigit()]
        named_ones = " ".join(f"{named[1]}_{task}" for task in tasks[:4]) or f"{named[1]}_1"
        raise ConfigError(f"job {job} is an array, and each task is a job of its own; name one, such as {named_ones}")
    return own[0], raw
