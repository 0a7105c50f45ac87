"""A queue of single jobs: the rig's arrays fold to few lines, these do not. It is a real answer, changed."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace

from cockpit.formats.squeue import QUEUE_FIELDS, queue_args
from tests.bench.targets import Target

CHANGED_EVERY = 100  # each so many-th job has another name in every other answer
_OTHERS = ("sinfo", "scontrol", "sbatch")
# What stands behind the last record separator of the format is the mark that has to end each record.
_SCRIPT = """#!/bin/sh
end=$(printf '\\036')
case "$*" in
*-O*) exec sed "s/$end\\$/$end${{*##*$end}}/" {folder}/queue.$(($(date +%s) / 4 % 2)) ;;
*) exec {squeue} "$@" ;;
esac
"""
_FIELD, _END = b"\x1f", b"\x1e\n"


@contextlib.contextmanager
def flat_queue(target: Target) -> Iterator[Target]:
    """The target with stand-ins first in its head's PATH, while inside; only for one that is read over SSH."""
    assert target.rig is not None
    folder = target.rig.tools("head")
    records = target.rig.slurm("squeue", *queue_args()).stdout.split(_END)[:-1]
    for number in range(2):
        jobs = (_single(record, number if place % CHANGED_EVERY == 0 else 0) for place, record in enumerate(records))
        (folder / f"queue.{number}").write_bytes(b"".join(job + _END for job in jobs))
    real = {name: shutil.which(name) for name in ("squeue", *_OTHERS)}
    made = [folder / name for name in real]
    made[0].write_text(_SCRIPT.format(folder=folder, squeue=real["squeue"]))
    made[0].chmod(0o755)
    for name in _OTHERS:
        (folder / name).symlink_to(str(real[name]))
    try:
        yield replace(target, name=f"{target.name}, single jobs", rig=None)  # nothing else is asked of it
    finally:
        for path in made:
            path.unlink()


def _single(record: bytes, change: int) -> bytes:
    """The record as that of a job outside any array."""
    fields = record.split(_FIELD)
    fields[QUEUE_FIELDS.index("ArrayJobID")] = fields[QUEUE_FIELDS.index("JobID")]
    fields[QUEUE_FIELDS.index("ArrayTaskID")] = b"N/A"
    fields[QUEUE_FIELDS.index("Name")] += b"-again" * change
    return _FIELD.join(fields)
