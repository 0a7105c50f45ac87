"""Faults in the kernel's log: Xids, SXids, GPUs off the bus, EFA, memory, hung tasks, file systems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from enum import Enum

from cockpit.catalog.gpu_codes import recovery_action
from cockpit.catalog.severity import Severity
from cockpit.catalog.xids import NVLINK5, RECOVERY_CHANGED, nvlink5, sxid, xid
from cockpit.formats.kernel_hosts import host_event
from cockpit.formats.kernel_lines import KernelLine, kernel_lines
from cockpit.models import Health
from cockpit.text import printable

OFF_BUS_CODE = 79
_SHOWN = 500
_MORE = 20  # lines kept of what follows an event

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{1,32})([^)]{0,64})\): (\d{1,6})(?:, (.*))?")
_PID = re.compile(r"pid='?(\d{1,10}|<unknown>)'?(?:, name=([^,]*))?")
_RECOVERY = re.compile(
    r"GPU recovery action changed from 0x([0-9a-fA-F]{1,8}) \((.*?)\) to 0x([0-9a-fA-F]{1,8}) \((.*?)\)"
)
_NVLINK5 = re.compile(
    r"([A-Z0-9_/]{1,40})\s+(Fatal|Nonfatal)\s+XC(\d)\s+i(\d+)\s+Link\s+(-?\d+)\s+"
    r"\(0x([0-9a-fA-F]{1,8})\s+0x([0-9a-fA-F]{1,8})"
)
_OFF_BUS = re.compile(r"NVRM: GPU ([0-9A-Fa-f:.]{1,32}): GPU has fallen off the bus")
_OFF_BUS_HEAD = re.compile(r"NVRM: The NVIDIA GPU ([0-9A-Fa-f:.]{1,32})")
_SXID = re.compile(
    r"(nvidia-nvswitch\d{1,4}): SXid \((?:PCI:)?([0-9A-Fa-f:.]{1,32})\): (\d{1,6}), "
    r"(?:(Fatal|Non-fatal), (?:Link (\d{1,4}) )?)?(.*)"
)
_UUID = re.compile(r"NVRM: GPU at (?:PCI:)?([0-9A-Fa-f:.]{1,32}): (GPU-[0-9A-Fa-f-]{8,64})")
_BUS = re.compile(r"(?:([0-9A-Fa-f]{1,8}):)?([0-9A-Fa-f]{1,2}):([0-9A-Fa-f]{1,2})(?:\.[0-7])?")


class KernelKind(str, Enum):
    """What a line is about."""

    XID = "xid"
    OFF_BUS = "off_bus"  # a GPU, told without an Xid; its code is 79
    SXID = "sxid"
    EFA = "efa"
    OOM = "oom"
    HUNG_TASK = "hung_task"
    LOCKUP = "lockup"
    LUSTRE = "lustre"
    NFS = "nfs"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """One fault. Texts are printable; what the line does not tell is None or empty.

    `bus` is domain:bus:device in lower case (`0000:61:00`). `device` is the switch, the EFA card, the NFS or
    Lustre server. `more` holds the lines that go on with it. `clears`: the line says that the fault is over.
    """

    kind: KernelKind
    severity: Severity
    text: str
    at: float | None = None
    boot: str = ""
    code: int | None = None  # Xid or SXid; None for an Xid whose line cannot be read
    bus: str = ""
    mig: str = ""  # GPU-I:05 GPU-CI:02
    pid: int | None = None
    name: str = ""
    device: str = ""
    link: int | None = None
    action: int | None = None  # what an Xid 154 says is needed now; see catalog.gpu_codes.recovery_action
    hint: str = ""
    clears: bool = False
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelReading:
    """All faults of a log in its order, and the UUIDs of the GPUs by bus id, as far as the log names them."""

    events: tuple[KernelEvent, ...] = ()
    uuids: Mapping[str, str] = field(default_factory=dict)
    lines: int = 0  # how many messages there were; 0 is an empty log, which is not "no faults"


def parse_kernel_log(raw: bytes, *, tz: tzinfo | None = None, booted_at: float | None = None) -> KernelReading:
    """Read a log as kernel_lines() does, and find its faults. Never raises; the same Xid twice is two events."""
    return read_lines(kernel_lines(raw, tz=tz, booted_at=booted_at))


def read_lines(lines: Iterable[KernelLine]) -> KernelReading:
    """The same for messages that are already apart."""
    reader = _Reader()
    count = 0
    for line in lines:
        reader.read(line)
        count += 1
    return KernelReading(tuple(reader.events), reader.uuids, count)


def bus_id(text: str) -> str:
    """`00000000:61:00.0`, `0000:61:00`, `61:00.0` -> `0000:61:00`; empty for what is no PCI place."""
    found = _BUS.fullmatch(text.strip())
    if not found:
        return ""
    return f"{int(found[1] or '0', 16):04x}:{int(found[2], 16):02x}:{int(found[3], 16):02x}"


def health_of(severity: Severity) -> Health:
    """The state on the screen: what asks for a drain or more is critical, whatever the next step."""
    if severity is Severity.INFO:
        return Health.OK
    return Health.WARN if severity is Severity.WARN else Health.CRITICAL


class _Reader:
    """Goes through a log; some events need more than one line."""

    def __init__(self) -> None:
        self.events: list[KernelEvent] = []
        self.uuids: dict[str, str] = {}
        self._falling: tuple[KernelLine, str] | None = None  # "The NVIDIA GPU ...", until it says what happened
        self._open = False  # whether the last message was an event, which indented lines go on with

    def read(self, line: KernelLine) -> None:
        if line.continued:
            if self._open:
                self._extend(len(self.events) - 1, line.text)
            return
        before = len(self.events)
        if "NVRM" in line.text:
            self._nvrm(line)
        elif "SXid" in line.text:
            self._sxid(line)
        else:
            self._host(line)
        self._open = len(self.events) > before

    def _nvrm(self, line: KernelLine) -> None:
        if "Xid (" in line.text:
            self.events.append(_xid_event(line))
        elif found := _OFF_BUS.search(line.text):
            self._off_bus(line, found[1])
        elif found := _UUID.search(line.text):
            self.uuids[bus_id(found[1])] = found[2]
        elif found := _OFF_BUS_HEAD.search(line.text):
            self._falling = (line, found[1])
        elif self._falling and "fallen off the bus" in line.text:
            head, bus = self._falling
            self._off_bus(head, bus, line.text)
            self._falling = None

    def _off_bus(self, line: KernelLine, bus: str, *more: str) -> None:
        event = KernelEvent(
            kind=KernelKind.OFF_BUS,
            severity=xid(OFF_BUS_CODE).severity,
            text=_shown(" ".join((line.text, *more))),
            at=line.at,
            boot=printable(line.boot),
            code=OFF_BUS_CODE,
            bus=bus_id(bus),
        )
        self.events.append(event)

    def _sxid(self, line: KernelLine) -> None:
        found = _SXID.search(line.text)
        if not found:
            return
        code, device = int(found[3]), found[1]
        if not found[4] and found[6].startswith(("Severity", "Data")):
            self._follow_up(device, code, line.text)
            return
        fact = sxid(code, {"Fatal": True, "Non-fatal": False}.get(found[4]))
        event = KernelEvent(
            kind=KernelKind.SXID,
            severity=fact.severity,
            text=_shown(line.text),
            at=line.at,
            boot=printable(line.boot),
            code=code,
            bus=bus_id(found[2]),
            device=device,
            link=int(found[5]) if found[5] else None,
            hint=fact.name,
        )
        self.events.append(event)

    def _follow_up(self, device: str, code: int, text: str) -> None:
        for place in range(len(self.events) - 1, max(-1, len(self.events) - 50), -1):
            if (self.events[place].device, self.events[place].code) == (device, code):
                self._extend(place, text)
                return

    def _extend(self, place: int, text: str) -> None:
        event = self.events[place]
        if len(event.more) < _MORE:
            self.events[place] = replace(event, more=(*event.more, _shown(text)))

    def _host(self, line: KernelLine) -> None:
        found = host_event(line.text)
        if found is None:
            return
        event = KernelEvent(
            kind=KernelKind(found.kind),
            severity=found.severity,
            text=_shown(line.text),
            at=line.at,
            boot=printable(line.boot),
            bus=bus_id(found.device),
            pid=found.pid,
            name=printable(found.name),
            device=printable(found.device),
            clears=found.clears,
        )
        last = self.events[-1] if self.events else None
        # The kernel first says who asked for memory, and then whom it killed: one event.
        asked = event.kind is KernelKind.OOM and event.pid is not None and last is not None
        if asked and last is not None and last.kind is KernelKind.OOM and last.pid is None:
            self.events[-1] = replace(event, at=last.at, more=(last.text,))
        else:
            self.events.append(event)


def _xid_event(line: KernelLine) -> KernelEvent:
    event = KernelEvent(
        KernelKind.XID, Severity.WARN, _shown(line.text), line.at, printable(line.boot), hint="this line cannot be read"
    )
    found = _XID.search(line.text)
    if not found:
        return event
    code, rest = int(found[3]), found[4] or ""
    event = replace(event, code=code, bus=bus_id(found[1]), mig=printable(found[2].strip()), hint="")
    event = replace(event, severity=xid(code).severity)
    if told := _PID.search(rest):
        pid = int(told[1]) if told[1].isdigit() else None
        name = (told[2] or "").strip().strip("'")
        event = replace(event, pid=pid, name="" if name == "<unknown>" else printable(name))
    if code == RECOVERY_CHANGED:
        return _recovery_event(event, rest)
    return _link_event(event, rest) if code in NVLINK5 else event


def _recovery_event(event: KernelEvent, rest: str) -> KernelEvent:
    changes = _RECOVERY.findall(rest)
    if not changes:
        return event
    action = int(changes[-1][2], 16)
    severity = recovery_action(action).severity
    return replace(event, action=action, severity=severity, hint=printable(changes[-1][3]), clears=action == 0)


def _link_event(event: KernelEvent, rest: str) -> KernelEvent:
    found = _NVLINK5.search(rest)
    if not found or event.code is None:
        return event
    fatal = found[2] == "Fatal"
    told = nvlink5(event.code, found[1], int(found[6], 16), int(found[7], 16), fatal=fatal)
    injected = int(found[4]) == 1
    severity = Severity.INFO if injected else told.severity
    hint = "an injected test" if injected else told.hint
    return replace(event, severity=severity, hint=hint, link=int(found[5]))


def _shown(text: str) -> str:
    return printable(text.strip()[:_SHOWN])
