"""What a node's GPUs and kernel complained about lately: Xids and the like, each counted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cockpit.catalog.severity import Severity
from cockpit.catalog.xids import xid
from cockpit.formats.kernel_lines import KernelLine
from cockpit.formats.kernel_log import KernelEvent, KernelKind, read_lines
from cockpit.gpu_models import NodeReading

WINDOW_S = 2 * 3600.0
KEEP = 200
SAME_S = 4.0  # NVML and the kernel tell the same Xid within this time: each is collected at its own pace


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """Faults of the last two hours, oldest first. The same Xid twice is two."""

    events: tuple[KernelEvent, ...] = ()

    def of_gpu(self, pci: str) -> tuple[KernelEvent, ...]:
        """Xids of one GPU by its bus id."""
        return tuple(event for event in self.events if event.bus == pci and event.code is not None)

    def after(self, reading: NodeReading) -> NodeEvents:
        """With what this reading brought; events older than the window are let go."""
        fresh = [*_from_kernel(reading), *_from_nvml(reading)]
        oldest = reading.taken_at - WINDOW_S
        if not fresh and (not self.events or (self.events[0].at or oldest) >= oldest):
            return self
        kept = [event for event in self.events if event.at is None or event.at >= oldest]
        for event in fresh:
            if not _told(event, kept):
                kept.append(event)
        return NodeEvents(tuple(sorted(kept, key=lambda event: event.at or 0.0)[-KEEP:]))


def _from_kernel(reading: NodeReading) -> Iterable[KernelEvent]:
    lines = (KernelLine(message.text, message.at, message.boot_id) for message in reading.messages)
    return read_lines(lines).events


def _from_nvml(reading: NodeReading) -> Iterable[KernelEvent]:
    buses = {sample.gpu.key: sample.gpu.pci for sample in reading.gpus}
    for event in reading.events:
        if event.kind == "xid":
            fact = xid(event.data)
            text = f"Xid {event.data}: {fact.title} (told by NVML)"
            yield KernelEvent(
                KernelKind.XID, fact.severity, text, event.at, code=event.data, bus=buses.get(event.gpu, "")
            )


def _told(event: KernelEvent, known: Iterable[KernelEvent]) -> bool:
    """NVML's event and the kernel's line about the same fault are one; two lines of the kernel are two."""
    by_nvml = event.text.endswith("(told by NVML)")
    return any(
        other.kind in (KernelKind.XID, KernelKind.OFF_BUS)
        and (other.code, other.bus) == (event.code, event.bus)
        and abs((other.at or 0) - (event.at or 0)) <= SAME_S
        and by_nvml != other.text.endswith("(told by NVML)")
        for other in known
    )


def worst_of(events: Iterable[KernelEvent]) -> Severity:
    """The worst severity among events that have not been cleared since."""
    return max((event.severity for event in events if not event.clears), key=lambda s: s.rank, default=Severity.INFO)
