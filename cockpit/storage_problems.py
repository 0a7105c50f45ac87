"""What is wrong with the FSx file systems by AWS's own words and numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.models import Health, Problem
from cockpit.storage_models import FileSystem, FileSystemUse, StorageReading

LOW, VERY_LOW = 0.10, 0.03
TARGET_LOW = 0.05
_FINE = ("AVAILABLE", "UPDATING", "")


def of_storage(reading: StorageReading | None) -> Iterator[Problem]:
    """Broken file systems, full ones, and single targets that fill up while the rest has room."""
    if reading is None:
        return
    for system in reading.systems.data or ():
        if system.lifecycle not in _FINE:
            health = Health.CRITICAL if "FAILED" in system.lifecycle or "MIS" in system.lifecycle else Health.WARN
            step = "see the file system in the FSx console"
            yield Problem(f"fsx:{system.id}:life", health, system.id, f"is {system.lifecycle}", step, system.why)
        part = reading.use.get(system.id)
        if part is not None and part.data is not None and part.fault is None and system.capacity_gib:
            yield from _room(system, part.data, system.capacity_gib * 2.0**30)


def _room(system: FileSystem, use: FileSystemUse, capacity: float) -> Iterator[Problem]:
    if use.free_bytes is not None and (share := use.free_bytes / capacity) < LOW:
        health = Health.CRITICAL if share < VERY_LOW else Health.WARN
        title = f"{share:.0%} free: {use.free_bytes / 2**40:.1f} TiB of {capacity / 2**40:.1f}"
        step = "free space now: jobs die of a full file system at their next checkpoint"
        yield Problem(f"fsx:{system.id}:full", health, system.id, title, step)
        return
    least, targets = use.fullest_target_free_bytes, use.targets
    if least is not None and targets and (share := least * targets / capacity) < TARGET_LOW:
        title = f"one of its {targets} storage targets has {share:.0%} free, though the whole has more"
        step = "writes of files on it fail already; move or restripe large files (`lfs df` on a node names it)"
        yield Problem(f"fsx:{system.id}:target", Health.WARN, system.id, title, step)
