"""GPU entries and rows of the probe's protocol as models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cockpit.catalog.gpu_codes import recovery_action, throttle_reasons
from cockpit.formats.probe_slots import MAX_GPUS
from cockpit.formats.probe_values import at, items, text, value, wall_time, whole
from cockpit.gpu_models import NOT_READ, Gpu, GpuProcess, GpuSample, Lack, MigInstance, Missing, Value

_MAX_INSTANCES = 16
_MAX_PROCESSES = 512
_MAX_MASK = 0xFFFF
_FAST = 8
_SLOW = 10


def gpus(raw: object) -> list[Gpu]:
    """The entries of a hello, each with a key of its own."""
    found: list[Gpu] = []
    taken: set[str] = set()
    for entry in items(raw, MAX_GPUS):
        gpu = _gpu(entry if isinstance(entry, dict) else {}, len(found))
        # A hostile or confused node may name one GPU twice; rows are told apart by their key.
        key, count = gpu.key, 1
        while key in taken:
            count += 1
            key = f"{gpu.key} ({count})"
        taken.add(key)
        found.append(gpu if key == gpu.key else replace(gpu, key=key))
    return found


def _gpu(entry: dict[str, Any], place: int) -> Gpu:
    index, uuid, pci = whole(entry.get("i")), text(entry.get("uuid"), 80), text(entry.get("pci"), 20)
    memory, clock, gen, width = (value(at(items(entry.get("max"), 4), place)) for place in range(4))
    mig = entry.get("mig")
    return Gpu(
        key=uuid or pci or f"#{place if index is None else index}",
        index=index,
        minor=whole(entry.get("minor")),
        uuid=uuid,
        pci=pci,
        name=text(entry.get("name"), 80),
        serial=text(entry.get("serial"), 40),
        mem_total_mib=memory,
        sm_clock_max_mhz=clock,
        pcie_gen_max=gen,
        pcie_width_max=width,
        mig=mig == 1 if type(mig) is int else None,
        unified_memory=memory == 0.0,
    )


def with_fast(sample: GpuSample, row: list[Any], taken_at: float) -> GpuSample:
    """The sample after a FAST row: new readings, or the reason why the GPU gives none beside the old ones."""
    if (lost := row_error(row, _FAST)) is not None:
        return replace(sample, lost=lost)
    util, mem_util, memory, temp, hbm, power, clock, mask = map(value, row)
    return replace(
        sample,
        taken_at=taken_at,
        lost=None,
        util_pct=util,
        mem_util_pct=mem_util,
        mem_used_mib=memory,
        temp_c=temp,
        hbm_temp_c=hbm,
        power_w=power,
        sm_clock_mhz=clock,
        throttle_mask=mask,
        throttle=throttle_words(mask),
    )


def with_slow(sample: GpuSample, row: list[Any], taken_at: float) -> GpuSample:
    """The sample after a SLOW row, with the rate of corrected ECC errors since the row before it."""
    if row_error(row, _SLOW) is not None:
        return sample
    limit, corrected, uncorrected, pending, failed, down, links, gen, width, action = map(value, row)
    return replace(
        sample,
        slow_at=taken_at,
        power_limit_w=limit,
        ecc_corrected=corrected,
        ecc_uncorrected=uncorrected,
        ecc_corrected_per_s=_rate(sample, corrected, taken_at),
        remap_pending=pending,
        remap_failed=failed,
        nvlinks_down=down,
        nvlinks=links,
        pcie_gen=gen,
        pcie_width=width,
        recovery_action=action,
        recovery=recovery_words(action),
    )


def row_error(row: list[Any], size: int) -> Missing | None:
    """Why the row as a whole holds no readings, None when it does."""
    if len(row) == 1 and isinstance(found := value(row[0]), Missing):
        return found
    return None if len(row) == size else Missing(Lack.FAILED, "unreadable row")


def _rate(before: GpuSample, now: Value, taken_at: float) -> float | None:
    old, old_at = before.ecc_corrected, before.slow_at
    if isinstance(old, Missing) or isinstance(now, Missing) or old_at is None or taken_at <= old_at:
        return None
    # Lower than before: the driver was loaded anew or the GPU reset, and counting starts again.
    return (now - old) / (taken_at - old_at) if now >= old else None


def throttle_words(mask: Value) -> tuple[str, ...]:
    """The reasons in a throttle mask, lowest bit first."""
    if isinstance(mask, Missing) or not 0 < mask <= _MAX_MASK:
        return ()
    return tuple(reason.word for reason in throttle_reasons(int(mask)))


def recovery_words(action: Value) -> str:
    """A recovery action as NVIDIA words it."""
    if isinstance(action, Missing) or not 0 <= action < 256:
        return ""
    return str(recovery_action(int(action)).word)


def instances(named: object, used: object) -> tuple[MigInstance, ...]:
    """MIG devices: `named` [[gi, ci, uuid, name, MiB], ...] of a hello, `used` [[gi, ci, MiB used], ...]."""
    memory: dict[tuple[int | None, int | None], Value] = {}
    for row in items(used, _MAX_INSTANCES):
        cells = items(row, 3)
        memory[whole(at(cells, 0)), whole(at(cells, 1))] = value(at(cells, 2))
    found = []
    for row in items(named, _MAX_INSTANCES):
        cells = items(row, 5)
        place = (whole(at(cells, 0)), whole(at(cells, 1)))
        uuid, name = text(at(cells, 2), 80), text(at(cells, 3), 80)
        found.append(MigInstance(*place, uuid, name, value(at(cells, 4)), memory.get(place, NOT_READ)))
    return tuple(found)


def processes(rows: object, known: Sequence[Gpu | None], now: float) -> tuple[GpuProcess, ...]:
    """The processes of a sample; rows that name no GPU of the hello are left out."""
    found = []
    for row in items(rows, _MAX_PROCESSES):
        cells = items(row, 20)
        place, pid = whole(at(cells, 0)), whole(at(cells, 1))
        gpu = known[place] if place is not None and 0 <= place < len(known) else None
        if gpu is not None and pid is not None:
            found.append(_process(gpu.key, pid, cells, now))
    return tuple(found)


def _process(gpu: str, pid: int, cells: list[Any], now: float) -> GpuProcess:
    exists = {0: False, 1: True}.get(at(cells, 4)) if type(at(cells, 4)) is int else None
    rank, local_rank, procid, world = (value(at(cells, place)) for place in range(11, 15))
    return GpuProcess(
        gpu=gpu,
        pid=pid,
        mem_mib=value(at(cells, 2)),
        gpu_instance=whole(at(cells, 3)),
        exists=exists,
        user=text(at(cells, 5), 64),
        command=text(at(cells, 6), 64),
        started_at=wall_time(at(cells, 7), now),
        job_id=whole(at(cells, 8)),
        step=text(at(cells, 9), 40),
        task=text(at(cells, 10), 40),
        rank=rank,
        local_rank=local_rank,
        procid=procid,
        world_size=world,
    )
