"""Which row is which GPU: a GPU that was seen keeps its place while its node stays booted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from cockpit.formats.probe_values import nvml_missing
from cockpit.gpu_models import Gpu, GpuSample, Lack, Missing

MAX_GPUS = 64
NOT_LISTED = 28  # NVML's "GPU not found"
ON_BUS_ONLY = Missing(Lack.LOST, "GPU lost: on the bus, and the driver does not list it", NOT_LISTED)
HIDDEN = Missing(Lack.DENIED, "not visible to this login")


def merge(
    before: Sequence[GpuSample], listed: Sequence[Gpu], bus: Sequence[str], hidden: Sequence[int] = ()
) -> tuple[list[GpuSample], list[int | None]]:
    """The samples after a list of the driver, and where each GPU of that list stands among them.

    `bus` are the bus ids of GPUs as the kernel sees them. Those that the driver does not list are lost, or hidden
    when the probe may not open as many devices (`hidden`, their minors).
    """
    matched = _matches(before, listed)
    buses = {gpu.pci for gpu in listed if gpu.pci}
    missing = unlisted(set(bus) - buses, hidden)
    found: list[tuple[GpuSample, int | None]] = []
    for place, sample in enumerate(before):
        number = matched.get(place)
        if number is not None:
            found.append((_renamed(sample, listed[number]), number))
        elif (sample.gpu.uuid or sample.gpu.pci) and sample.gpu.pci not in buses:
            found.append((replace(sample, lost=_gone(sample, bus, missing)), None))
    old = set(matched.values())
    found += [(GpuSample(gpu), number) for number, gpu in enumerate(listed) if number not in old]
    if all(gpu.pci for gpu in listed):  # one without an address may be any of those on the bus
        found += [(sample, None) for sample in bus_only([sample for sample, _ in found], bus, missing)]
        if not before and [gpu.pci for gpu in listed] == sorted(gpu.pci for gpu in listed):
            found.sort(key=lambda pair: pair[0].gpu.pci)
    found = _bounded(found)
    places: list[int | None] = [None] * len(listed)
    for place, (_, number) in enumerate(found):
        if number is not None:
            places[number] = place
    return [sample for sample, _ in found], places


def bus_only(known: Iterable[GpuSample], bus: Iterable[str], missing: Missing = ON_BUS_ONLY) -> list[GpuSample]:
    """A GPU without readings for each bus id that none of the known ones has; `missing` says why."""
    seen = {name for sample in known for name in (sample.gpu.pci, sample.gpu.key)}
    return [GpuSample(Gpu(key=pci, pci=pci), lost=missing) for pci in dict.fromkeys(bus) if pci and pci not in seen]


def unlisted(buses: Collection[str], hidden: Sequence[int]) -> Missing:
    """What is to be said of GPUs on the bus that the driver does not list.

    When there are more of them than devices that are kept from the probe, one at least is lost; which one, nobody
    can tell, and a lost one must not be taken for hidden.
    """
    return HIDDEN if hidden and len(buses) <= len(hidden) else ON_BUS_ONLY


def _matches(before: Sequence[GpuSample], listed: Sequence[Gpu]) -> dict[int, int]:
    """Place among `before` -> place in `listed`: by key, else by bus id, else by number for one without a name."""
    keys = {sample.gpu.key: place for place, sample in enumerate(before)}
    found = {keys[gpu.key]: number for number, gpu in enumerate(listed) if gpu.key in keys}
    for number, gpu in enumerate(listed):
        if number in found.values():
            continue
        free = [place for place in range(len(before)) if place not in found]
        if gpu.pci:
            same = [place for place in free if before[place].gpu.pci == gpu.pci]
        elif not gpu.uuid and gpu.index is not None:
            # A GPU that gives no handle tells only its number.
            same = [place for place in free if before[place].gpu.index == gpu.index and before[place].gpu.uuid]
        else:
            same = []
        if same:
            found[same[0]] = number
    return found


def _renamed(sample: GpuSample, gpu: Gpu) -> GpuSample:
    if sample.gpu == gpu or (not gpu.uuid and not gpu.pci and sample.gpu.uuid):
        return sample
    if not gpu.uuid and sample.gpu.uuid and sample.gpu.pci == gpu.pci:
        return sample
    return replace(sample, gpu=gpu)


def _gone(sample: GpuSample, bus: Sequence[str], missing: Missing) -> Missing:
    return missing if sample.gpu.pci in bus else nvml_missing(NOT_LISTED)


def _bounded(found: list[tuple[GpuSample, int | None]]) -> list[tuple[GpuSample, int | None]]:
    """At most MAX_GPUS; what the driver lists goes first, as a node may name new GPUs without end."""
    spare = MAX_GPUS - sum(number is not None for _, number in found)
    kept = []
    for pair in found:
        if pair[1] is None:
            spare -= 1
            if spare < 0:
                continue
        kept.append(pair)
    return kept
