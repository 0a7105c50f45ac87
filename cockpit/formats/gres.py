"""Generic resources and TRES as Slurm writes them: `gpu:h100:8(IDX:0-7)`, `cpu=9,gres/gpu=4,mem=375G`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cockpit.formats.hostlist import split_outside
from cockpit.formats.words import NO_VALUE, digits
from cockpit.models import Gres
from cockpit.text import printable

_NUMBER = re.compile(r"([0-9]{1,18})([KMGTP]?)")
_MEMORY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([KMGTP]?)i?B?[nc]?", re.IGNORECASE)
_IDX_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_MAX_INDICES = 4096
_NOT_SET = 4_294_967_290  # 4294967294 and 4294967295 are Slurm's "not set" and "infinite"


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that a GRES or TRES text tells; None where it tells no count or no indices."""

    count: int | None = None
    type: str = ""
    indices: tuple[int, ...] | None = None


def parse_gres(text: str, *, implied: int | None = None) -> tuple[Gres, ...]:
    """Every resource of a GRES or TRES text; the prefix `gres:` or `gres/` and socket parts are dropped.

    `implied` is the count of an entry without one: None in node lists, where it means that the text was
    cut, 1 in requests, where `gpu` alone asks for one (Slurm's sbatch manual).
    """
    text = printable(text.strip())
    if text in NO_VALUE:
        return ()
    items = split_outside(text.replace(":(null)", ":"), "([", ")]")
    return tuple(_gres(item.strip(), implied) for item in items if item.strip())


def gpus_of(gres: Iterable[Gres]) -> Gpus:
    """The GPUs among resources: counts added, types joined by commas, indices merged.

    Slurm may list a total (`gres/gpu=4`) beside the same GPUs by type (`gres/gpu:h100=4`): then the total
    alone is counted. MIG slices under the name `gpu` count as GPUs, as they do for Slurm. The count is None
    as soon as one of the entries to be added tells none.
    """
    entries = [entry for entry in gres if entry.name == "gpu"]
    counted = [entry for entry in entries if entry.type is None] or entries
    counts = [entry.count for entry in counted]
    told = [number for number in counts if number is not None]
    known = [entry.indices for entry in entries if entry.indices is not None]
    return Gpus(
        sum(told) if told and len(told) == len(counts) else None,
        ",".join(dict.fromkeys(entry.type for entry in entries if entry.type)),
        tuple(sorted({index for indices in known for index in indices})) if known else None,
    )


def job_gpus(
    *,
    tres_alloc: str = "",
    per_node: str = "",
    per_job: str = "",
    per_task: str = "",
    nodes: int | None = None,
    tasks: int | None = None,
) -> Gpus:
    """How many GPUs a job holds or asks for; the count is None when none of its texts tells it.

    Slurm's `tres-alloc` counts GPUs only on sites with accounting that track them, so the requests are the
    rule on ParallelCluster. Per socket requests and whole-node allocations cannot be counted from here.
    """
    found = gpus_of(parse_gres(tres_alloc))
    requests = ((per_job, 1), (per_node, nodes), (per_task, tasks))
    for text, times in requests:
        if "gpu" not in text:
            continue
        asked = gpus_of(parse_gres(text, implied=1))
        if found.count is not None:
            return Gpus(found.count, found.type or asked.type)
        if asked.count is not None and times is not None:
            return Gpus(asked.count * times, asked.type)
    return Gpus(found.count, found.type)


def memory_mib(text: str) -> int | None:
    """`375G`, `37.50G` or `2000000` (Slurm's bare numbers are MiB) in MiB, rounded up; None when not told."""
    found = _MEMORY.fullmatch(text.strip())
    if found is None:
        return None
    mib = math.ceil(float(found[1]) * _MIB[found[2].upper()])
    return mib if mib < _NOT_SET else None


def number(text: str) -> int | None:
    """A count as Slurm prints it, `2K` being 2048; None for `N/A`, `(null)` and the not-set values.

    More than 18 digits are no number either.
    """
    value = digits(text)
    if value is not None:
        return value if value < _NOT_SET else None
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    return int(found[1]) * int(1024 ** " KMGTP".index(found[2] or " "))


def _gres(item: str, implied: int | None) -> Gres:
    body, bracket, inside = item.partition("(")
    body = body.removeprefix("gres:").removeprefix("gres/")
    indices = _indices(inside.partition(")")[0]) if bracket else None
    body, equals, counted = body.partition("=")
    parts = [part for part in body.split(":") if part and part != "no_consume"] or [""]
    # Digits that are too many for a number are still no type: their count is not known.
    if not equals and len(parts) > 1 and (number(parts[-1]) is not None or parts[-1].isdecimal()):
        counted = parts.pop()
    total = number(counted) if counted else implied
    return Gres(parts[0], ":".join(parts[1:]) or None, total, indices)


def _indices(inside: str) -> tuple[int, ...] | None:
    """`IDX:0,2,5-6` as numbers, `IDX:N/A` as (); None for a socket part or what cannot be read."""
    if not inside.startswith("IDX:"):
        return None
    numbers: list[int] = []
    for part in inside[4:].split(","):
        if part in NO_VALUE:
            continue
        found = _IDX_RANGE.fullmatch(part)
        if found is None or len(numbers) > _MAX_INDICES:
            return None
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return tuple(numbers)
