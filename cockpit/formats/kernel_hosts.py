"""Kernel messages that are not about GPUs: EFA cards, memory, hung tasks, network file systems, disks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from cockpit.catalog.severity import Severity


@dataclass(frozen=True, slots=True)
class HostEvent:
    """What one line says; `kind` is a value of KernelKind."""

    kind: str
    severity: Severity
    device: str = ""
    pid: int | None = None
    name: str = ""
    clears: bool = False


# The EFA driver speaks as `efa 0000:51:00.0:` and, once the card has a name, as `infiniband rdmap16s27:`.
_EFA = re.compile(r"\b(?:efa|infiniband) ([\w:.]{1,40}): (.*)")
_EFA_DEAD = re.compile(
    r"didn't send any completion|didn't receive any MSI-X|Admin queue is closed|Reading register timed out"
)
_EFA_REFUSED = re.compile(r"Failed to process command \w+ .*err -?\d+")
_OOM_ASKED = re.compile(r"^(.{1,64}?) invoked oom-killer")
_OOM_KILLED = re.compile(r"[Oo]ut of memory: Kill(?:ed)? process (\d{1,10}) \((.{0,64}?)\)")
_HUNG = re.compile(r"INFO: task (.{1,64}):(\d{1,10}) blocked for more than \d+ seconds")
_LOCKUP = re.compile(r"soft lockup - CPU#\d+ stuck for \d+s!(?: \[(.{1,64}):(\d{1,10})\])?|hard LOCKUP")
_NFS = re.compile(r"nfs: server (\S{1,128}) (not responding|timed out|OK)")
_LUSTRE = re.compile(r"\bLustre(?:Error)?: ")
_LUSTRE_PEER = re.compile(r"(?:Connection (?:restored )?to|by) ([\w.@:-]{1,128})")
_LUSTRE_BAD = re.compile(r"LustreError|was lost|evicted|timed out")
_DISK = re.compile(
    r"Remounting filesystem read-only|nvme\S* .*I/O .*timeout|Disabling device after reset failure|Buffer I/O error"
)
_DISK_NAME = re.compile(r"\b(nvme\d+(?:n\d+)?(?:p\d+)?|sd[a-z]+\d*|xvd[a-z]+\d*|dm-\d+)\b")


def host_event(text: str) -> HostEvent | None:
    """The event in one message, None for all other messages."""
    for look in _LOOKS:
        if found := look(text):
            return found
    return None


def _efa(text: str) -> HostEvent | None:
    found = _EFA.search(text)
    if not found:
        return None
    if _EFA_DEAD.search(found[2]):
        return HostEvent("efa", Severity.REPLACE, found[1])
    # Too many of something: what earlier jobs left, or a limit; the card itself is well.
    return HostEvent("efa", Severity.WARN, found[1]) if _EFA_REFUSED.search(found[2]) else None


def _oom(text: str) -> HostEvent | None:
    if found := _OOM_KILLED.search(text):
        return HostEvent("oom", Severity.WARN, pid=int(found[1]), name=found[2])
    found = _OOM_ASKED.search(text)
    return HostEvent("oom", Severity.WARN, name=found[1]) if found else None


def _stuck(text: str) -> HostEvent | None:
    if found := _HUNG.search(text):
        return HostEvent("hung_task", Severity.CRITICAL, pid=int(found[2]), name=found[1])
    found = _LOCKUP.search(text)
    if not found:
        return None
    return HostEvent("lockup", Severity.CRITICAL, pid=int(found[2]) if found[2] else None, name=found[1] or "")


def _nfs(text: str) -> HostEvent | None:
    found = _NFS.search(text)
    if not found:
        return None
    fine = found[2] == "OK"
    return HostEvent("nfs", Severity.INFO if fine else Severity.WARN, found[1], clears=fine)


def _lustre(text: str) -> HostEvent | None:
    if not _LUSTRE.search(text):
        return None
    peer = _LUSTRE_PEER.search(text)
    device = peer[1] if peer else ""
    if "Connection restored" in text:
        return HostEvent("lustre", Severity.INFO, device, clears=True)
    return HostEvent("lustre", Severity.WARN, device) if _LUSTRE_BAD.search(text) else None


def _disk(text: str) -> HostEvent | None:
    if not _DISK.search(text):
        return None
    name = _DISK_NAME.search(text)
    return HostEvent("disk", Severity.DRAIN, name[1] if name else "")


_LOOKS: tuple[Callable[[str], HostEvent | None], ...] = (_efa, _oom, _stuck, _nfs, _lustre, _disk)
