"""What a node's GPUs and kernel complained about lately: Xids and the like, each counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from cockpit.catalog.xids import xid
from cockpit.formats.kernel_lines import KernelLine
from cockpit.formats.kernel_log import OFF_BUS_CODE, KernelEvent, KernelKind, read_lines
from cockpit.gpu_models import DriverState, KernelMessage, NodeReading

WINDOW_S = 2 * 3600.0
KEEP = 200  # of GPUs and switches, and as many of all else: a chatty file system pushes out no Xid
KEEP_LINES = 2000
PAIR_S = 5.0  # the kernel tells a lost GPU by an Xid 79 and in plain words
SAME_S = 4.0  # NVML and the kernel tell the same Xid within this time and what the reader of NVML was late
LATE_MAX_S = 120.0
_GPU_KINDS = (KernelKind.XID, KernelKind.OFF_BUS, KernelKind.SXID)


@dataclass(frozen=True, slots=True)
class Told:
    """One fault as one teller told it; `late_s` is how long before `at` it may have been when NVML told it."""

    event: KernelEvent
    by_nvml: bool = False
    late_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Line:
    """A kernel line that was read already; every new stream reads the last two hours of the log again."""

    at: float
    mark: int  # of boot and text
    gpu: bool


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """Faults of the last two hours, oldest first. The same Xid twice is two; `told` are they before matching."""

    events: tuple[KernelEvent, ...] = ()
    told: tuple[Told, ...] = ()
    lines: tuple[_Line, ...] = field(default=(), repr=False)

    def of_gpu(self, pci: str) -> tuple[KernelEvent, ...]:
        """Xids of one GPU by its bus id."""
        return tuple(event for event in self.events if event.bus == pci and event.code is not None)

    def after(self, reading: NodeReading) -> NodeEvents:
        """With what this reading brought; events older than the window are let go."""
        oldest = reading.taken_at - WINDOW_S
        new = [line for line in _unread(reading, self.lines) if line[0].at >= oldest]
        fresh = [*_from_kernel(message for _, message in new), *_from_nvml(reading)]
        first = self.told[0].event.at if self.told else None
        if not new and not fresh and (first is None or first >= oldest):
            return self
        lines = _kept_lines([*self.lines, *(line for line, _ in new)], oldest)
        told = sorted(
            (one for one in (*self.told, *fresh) if one.event.at is None or one.event.at >= oldest),
            key=lambda one: one.event.at or 0.0,
        )
        kept = _kept(told)
        return NodeEvents(_matched(kept), kept, lines)


def _unread(reading: NodeReading, known: Iterable[_Line]) -> list[tuple[_Line, KernelMessage]]:
    """Messages that no reading before this one has brought."""
    if not reading.messages:
        return []
    # Only the journal keeps wall times; those of the ring buffer are worked out anew, from a clock that is set.
    near_s = 0.002 if reading.log_source == "journal" else 2.0
    times: dict[int, list[float]] = {}
    for line in known:
        times.setdefault(line.mark, []).append(line.at)
    found = []
    for message in reading.messages:
        mark = hash((message.boot_id, message.text))
        before = times.get(mark, [])
        same = min(before, key=lambda at: abs(at - message.at), default=None)
        if same is not None and abs(same - message.at) <= near_s:
            before.remove(same)  # stands for one message only
        else:
            found.append((_Line(message.at, mark, "NVRM" in message.text or "SXid" in message.text), message))
    return found


def _kept_lines(lines: list[_Line], oldest: float) -> tuple[_Line, ...]:
    young = [line for line in lines if line.at >= oldest]
    if len(young) <= KEEP_LINES:
        return tuple(young)
    gpu = [line for line in young if line.gpu][-KEEP_LINES:]
    return (*[line for line in young if not line.gpu][-KEEP_LINES:], *gpu)


def _kept(told: list[Told]) -> tuple[Told, ...]:
    """The newest, in time order."""
    gpu = [one for one in told if one.event.kind in _GPU_KINDS][-2 * KEEP :]
    rest = [one for one in told if one.event.kind not in _GPU_KINDS][-KEEP:]
    return tuple(sorted((*gpu, *rest), key=lambda one: one.event.at or 0.0))


def _from_kernel(messages: Iterable[KernelMessage]) -> Iterator[Told]:
    lines = (KernelLine(message.text, message.at, message.boot_id) for message in messages)
    return (Told(event) for event in read_lines(lines).events)


def _from_nvml(reading: NodeReading) -> Iterator[Told]:
    buses = {sample.gpu.key: sample.gpu.pci for sample in reading.gpus}
    late_s = SAME_S + _late_s(reading)
    for event in reading.events:
        if event.kind == "xid":
            fact = xid(event.data)
            text = f"Xid {event.data}: {fact.title} (told by NVML)"
            bus = buses.get(event.gpu, "")
            found = KernelEvent(
                KernelKind.XID, fact.severity, text, event.at, boot=reading.boot_id, code=event.data, bus=bus
            )
            yield Told(found, by_nvml=True, late_s=late_s)


def _late_s(reading: NodeReading) -> float:
    """How long NVML's events may have lain unread: they bear the time at which they were collected."""
    driver = reading.driver
    waits = [reading.interval_s or 0.0, (driver.answer_ms or 0.0) / 1000]
    if driver.since is not None and driver.state in (DriverState.SILENT, DriverState.SLOW, DriverState.HUNG):
        waits.append(reading.taken_at - driver.since)
    return min(LATE_MAX_S, max(0.0, sum(waits)))


def _matched(told: tuple[Told, ...]) -> tuple[KernelEvent, ...]:
    """One event a fault: each line of the kernel stands for one other teller at most."""
    events = _without_pairs([one.event for one in told if not one.by_nvml])
    partners = [event for event in events if event.kind in (KernelKind.XID, KernelKind.OFF_BUS)]
    for one in told:
        if one.by_nvml:
            partner = next((event for event in partners if _same(one, event)), None)
            if partner is None:
                events.append(one.event)
            else:
                partners = [event for event in partners if event is not partner]
    events.sort(key=lambda event: event.at or 0.0)
    gpu = [event for event in events if event.kind in _GPU_KINDS]
    dropped = {id(event) for event in gpu[:-KEEP]}
    return tuple(event for event in events if id(event) not in dropped)


def _same(nvml: Told, line: KernelEvent) -> bool:
    """Whether the kernel's line is about what NVML told; a GPU that NVML cannot name may be any."""
    event = nvml.event
    if line.code != event.code or (event.bus and line.bus != event.bus):
        return False
    return -SAME_S <= (event.at or 0.0) - (line.at or 0.0) <= nvml.late_s


def _without_pairs(events: list[KernelEvent]) -> list[KernelEvent]:
    """A GPU off the bus goes with the Xid 79 of the same bus and boot."""
    found = [event for event in events if event.kind is not KernelKind.OFF_BUS]
    free = {place for place, event in enumerate(found) if (event.kind, event.code) == (KernelKind.XID, OFF_BUS_CODE)}
    for event in events:
        if event.kind is not KernelKind.OFF_BUS:
            continue
        gaps = {
            place: abs((found[place].at or 0.0) - (event.at or 0.0))
            for place in free
            if (found[place].bus, found[place].boot) == (event.bus, event.boot)
        }
        place = min(gaps, key=lambda place: gaps[place], default=None)
        if place is None or gaps[place] > PAIR_S:
            found.append(event)
            continue
        free.discard(place)
        found[place] = replace(found[place], more=(*found[place].more, event.text))
    return found
