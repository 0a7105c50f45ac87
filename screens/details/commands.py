"""The exact commands that show a thing, with its names filled in. Imports no Textual."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow
from cockpit.joins import find_row, job_spec
from cockpit.models import Job, Problem
from screens.details.parts import command, find_gpu
from screens.lines import Line

_PLACE = re.compile(r"\{([a-z]+)\}")


def fill(argv: Sequence[str], words: Mapping[str, str]) -> tuple[str, ...]:
    """The argv with every `{word}` replaced; () when one of them is not known."""
    if any(not words.get(name) for word in argv for name in _PLACE.findall(word)):
        return ()
    return tuple(_PLACE.sub(lambda found: words[found[1]], word) for word in argv)


def commands(show: Iterable[tuple[str, Sequence[str]]], words: Mapping[str, str]) -> list[Line]:
    """A line for each (here, head or node, argv) whose words are all known; here is where the cockpit runs."""
    lines: list[Line] = []
    for where, argv in show:
        filled = fill(argv, words)
        if filled and (where in ("here", "head") or words.get("node")):
            lines.append(command(where if where in ("here", "head") else words["node"], *filled))
    return lines


def job_words(job: Job) -> dict[str, str]:
    """What commands about a job need."""
    queue = job.partitions[0] if job.partitions else ""
    return {"job": job_spec(job), "queue": queue, "user": job.user, "account": job.account, "qos": job.qos}


def gpu_words(row: GpuRow) -> dict[str, str]:
    """What commands about a GPU need; nvidia-smi knows it by its own index or bus id."""
    gpu = row.sample.gpu if row.sample else None
    index = "" if gpu is None or gpu.index is None else str(gpu.index)
    return {"node": row.node, "gpu": index or (gpu.pci if gpu else "")}


def problem_words(cluster: Cluster, problem: Problem) -> dict[str, str]:
    """The same for the first node, job, GPU and queue that a problem names."""
    first: dict[str, str] = {}
    for kind, key in problem.about:
        first.setdefault(kind, key)
    words = {"cluster": cluster.config.name}
    row = find_row(cluster.view.queue, first["job"]) if "job" in first else None
    if row is not None:
        words |= job_words(row.lead)
    gpu = find_gpu(cluster, first["gpu"]) if "gpu" in first else None
    if gpu is not None:
        words |= gpu_words(gpu)
    words |= {kind: first[kind] for kind in ("node", "queue") if kind in first and kind not in words}
    if problem.key.startswith("mount:"):
        words["path"] = problem.key.split(":")[2]
    return words
