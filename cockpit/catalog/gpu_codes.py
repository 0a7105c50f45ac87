"""NVML's small codes in words: clock reasons, recovery actions, return codes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from cockpit.catalog.reader import load
from cockpit.catalog.severity import Remedy, Severity


class ReturnKind(str, Enum):
    """What an NVML return code says about the value that was asked for."""

    OK = "ok"
    UNSUPPORTED = "unsupported"  # a dash; ask again only after a driver change
    DENIED = "denied"  # say so once
    GPU = "gpu"  # the GPU is in trouble
    NODE = "node"  # nothing on this node can be asked
    TIMEOUT = "timeout"  # normal while waiting for events, else as RETRY
    RETRY = "retry"  # failed; ask again next time, and count
    HARDWARE = "hardware"


@dataclass(frozen=True, slots=True)
class NvmlReturn:
    """One return code of NVML."""

    code: int
    word: str
    kind: ReturnKind
    known: bool = True


@dataclass(frozen=True, slots=True)
class ThrottleReason:
    """One bit of the clock reasons; `lasting`: it counts only when it stays."""

    bit: int
    word: str
    severity: Severity
    meaning: str
    lasting: bool = False
    known: bool = True


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    """What the driver says a GPU needs; 0 is nothing."""

    action: int
    word: str
    severity: Severity
    remedy: Remedy
    meaning: str
    known: bool = True


@lru_cache(maxsize=1024)
def nvml_return(code: int) -> NvmlReturn:
    """What a return code means for a value; unknown codes are failures to be tried again."""
    for entry in load("gpu_codes")["returns"]:
        if entry["code"] == code:
            return NvmlReturn(code, entry["word"], ReturnKind(entry["kind"]))
    return NvmlReturn(code, f"NVML error {code}", ReturnKind.RETRY, known=False)


@lru_cache(maxsize=1024)
def throttle_reasons(mask: int) -> tuple[ThrottleReason, ...]:
    """The reasons in a mask of nvmlDeviceGetCurrentClocksEventReasons, lowest bit first; unknown bits are told."""
    known = {entry["bit"]: entry for entry in load("gpu_codes")["throttle"]}
    found = []
    for bit in (1 << place for place in range(max(mask, 0).bit_length()) if mask >> place & 1):
        entry = known.get(bit)
        if entry is None:
            found.append(ThrottleReason(bit, f"reason 0x{bit:x}", Severity.WARN, "not in the catalogue", known=False))
            continue
        severity = Severity(entry["severity"])
        lasting = entry.get("lasting", False)
        found.append(ThrottleReason(bit, entry["word"], severity, entry["means"], lasting))
    return tuple(found)


@lru_cache(maxsize=1024)
def recovery_action(action: int) -> RecoveryAction:
    """The recovery action of NVML's field 230 or of an Xid 154; an unknown one is told as it is."""
    for entry in load("gpu_codes")["recovery"]:
        if entry["action"] == action:
            severity, remedy = Severity(entry["severity"]), Remedy(entry["do"])
            return RecoveryAction(action, entry["word"], severity, remedy, entry["means"])
    word = f"recovery action {action}"
    return RecoveryAction(action, word, Severity.CRITICAL, Remedy.BY_TEXT, "not in the catalogue", known=False)
