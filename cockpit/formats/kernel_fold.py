"""From single lines of the kernel's log to incidents: one fault of a GPU prints several lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cockpit.catalog.severity import Severity, worst
from cockpit.catalog.xids import RECOVERY_CHANGED, sxid, xid
from cockpit.formats.kernel_log import KernelEvent, KernelKind

TOGETHER_S = 5.0
_SUFFERS = (45, 74)  # a GPU that lost its work or its link


@dataclass(frozen=True, slots=True)
class Incident:
    """A fault with everything that came with it: the cause, and the other lines in their order."""

    head: KernelEvent
    others: tuple[KernelEvent, ...] = ()

    @property
    def severity(self) -> Severity:
        """The worst that any of its lines says."""
        return worst(event.severity for event in (self.head, *self.others))


def fold(events: Iterable[KernelEvent], together_s: float = TOGETHER_S) -> tuple[Incident, ...]:
    """Incidents in the order in which they began.

    Lines of one GPU belong together when each comes within `together_s` of the one before. The strongest is the
    head; a clean-up (45) or the driver's verdict (154) is one only when it is alone. The same Xid a second time
    begins a new incident. Lines about anything else than GPUs stand alone; some SXids are worse next to an Xid 45
    or 74, whatever GPU it is of.
    """
    events = tuple(events)
    suffering = [event for event in events if event.kind is KernelKind.XID and event.code in _SUFFERS]
    groups: list[list[KernelEvent]] = []
    newest: dict[str, list[KernelEvent]] = {}
    for event in (_raised(event, suffering, together_s) for event in events):
        group = newest.get(event.bus) if _of_a_gpu(event) else None
        if group is not None and _belongs(event, group, together_s):
            group.append(event)
            continue
        groups.append([event])
        if _of_a_gpu(event):
            newest[event.bus] = groups[-1]
    return tuple(_incident(group) for group in groups)


def _of_a_gpu(event: KernelEvent) -> bool:
    return event.kind in (KernelKind.XID, KernelKind.OFF_BUS) and bool(event.bus)


def _belongs(event: KernelEvent, group: Sequence[KernelEvent], together_s: float) -> bool:
    last = group[-1]
    if event.boot != last.boot:
        return False
    # Without times only the order is known, and lines of one fault follow each other.
    if event.at is not None and last.at is not None and not 0 <= event.at - last.at <= together_s:
        return False
    seen = {(other.kind, other.code) for other in group}
    return _follows(event) or (event.kind, event.code) not in seen


def _raised(event: KernelEvent, suffering: Sequence[KernelEvent], together_s: float) -> KernelEvent:
    """The event of a switch, as bad as its code is when traffic really stood still."""
    if event.kind is not KernelKind.SXID or event.code is None or event.severity is not Severity.WARN:
        return event
    near = any(_near(event, other, together_s) for other in suffering)
    return replace(event, severity=sxid(event.code, True).severity) if near else event


def _near(one: KernelEvent, other: KernelEvent, together_s: float) -> bool:
    if one.boot != other.boot:
        return False
    return one.at is None or other.at is None or abs(one.at - other.at) <= together_s


def _follows(event: KernelEvent) -> bool:
    return event.code == RECOVERY_CHANGED or (event.code is not None and xid(event.code).folds)


def _incident(group: Sequence[KernelEvent]) -> Incident:
    # max() takes the first of equals, which is the earliest.
    head = max(group, key=lambda event: (not _follows(event), event.severity.rank))
    return Incident(head, tuple(event for event in group if event is not head))
