"""nvidia-smi's CSV text (`--query-gpu --format=csv,noheader,nounits`) as the probe's entries and rows.

Texts and exit codes as in NVIDIA's nvidia-smi manual and seen on drivers 470 to 580.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from cockpit.gpu_models import Driver, DriverState
from cockpit.text import printable

_UNSUPPORTED = ("n/a", "not supported", "requested functionality has been deprecated")
_WORDS = {
    "insufficient permissions": "p",
    "gpu is lost": "e15",
    "err!": "e15",
    "gpu requires reset": "e16",
    "unknown error": "e999",
    "": "?empty field",
}
_FAST = (
    "utilization.gpu", "utilization.memory", "memory.used", "temperature.gpu", "temperature.memory", "power.draw",
    "clocks.current.sm", "throttle",
)  # fmt: skip
_SLOW = (
    "power.limit", "ecc.errors.corrected.volatile.total", "ecc.errors.uncorrected.volatile.total", "", "", "", "",
    "pcie.link.gen.current", "pcie.link.width.current", "",
)  # fmt: skip
_MAX = ("memory.total", "clocks.max.sm", "pcie.link.gen.max", "pcie.link.width.max")
_THROTTLE_NAMES = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_NO_HANDLE = re.compile(r"Unable to determine the device handle for GPU\s?:? ?([0-9A-Fa-f:.]+?)(?:\.0)?:? ", re.I)
# Texts that stand for the whole node, NVML's return code for each, and nvidia-smi's exit codes.
_NODE_TEXTS = (
    ("driver/library version mismatch", 18),
    ("couldn't communicate with the nvidia driver", 9),
    ("no devices were found", 6),
    ("couldn't find libnvidia-ml.so", 12),
)
_EXIT_CODES = {
    4: "no permission", 6: "no GPU found", 8: "external power cables are missing", 9: "driver not loaded",
    10: "interrupt problem", 12: "libnvidia-ml not found", 13: "nvidia-smi and library do not fit",
    14: "InfoROM is corrupt", 15: "a GPU fell off the bus or cannot be reached", 126: "nvidia-smi cannot be run",
    124: "nvidia-smi did not end in time", 137: "nvidia-smi did not end in time", 255: "driver error",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SmiReading:
    """One answer: entries as in a hello with their rows, and what it says of the driver."""

    driver: Driver
    entries: list[dict[str, Any]] = field(default_factory=list)
    fast: list[list[Any]] = field(default_factory=list)
    slow: list[list[Any]] = field(default_factory=list)
    lost: tuple[str, ...] = ()  # bus ids of GPUs that gave no handle
    complete: bool = False  # every GPU that the driver has is among the entries


def read_smi(fields: list[str], rc: int, out: str) -> SmiReading:
    """Read one answer; a row with another number of columns is dropped, never shifted."""
    entries: list[dict[str, Any]] = []
    fast: list[list[Any]] = []
    slow: list[list[Any]] = []
    version, odd = "", []
    for line in out.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(fields):
            odd.append(line.strip())
            continue
        told = dict(zip(fields, cells, strict=True))
        told["throttle"] = next((told[name] for name in _THROTTLE_NAMES if name in told), "N/A")
        version = version or told.get("driver_version", "")
        entries.append(_entry(told))
        fast.append(_row([_cell(told, name) for name in _FAST]))
        slow.append(_row([_cell(told, name) for name in _SLOW]))
    lost = tuple(pci for match in map(_NO_HANDLE.search, odd) if match and (pci := bus_id(match[1])))
    # A line that is no row, such as a cut one, may stand for a GPU.
    complete = bool(entries) and rc == 0 and not any(odd)
    return SmiReading(_driver(rc, out, odd, version, bool(entries)), entries, fast, slow, lost, complete)


def bus_id(raw: str) -> str:
    """`00000000:61:00.0` as domain:bus:device in lower-case hex; empty when it is none."""
    parts = raw.strip().split(".")[0].split(":")
    if len(parts) == 2:
        parts.insert(0, "0")
    try:
        domain, bus, device = (int(part, 16) for part in parts)
    except ValueError:
        return ""
    return f"{domain:04x}:{bus:02x}:{device:02x}"


def _driver(rc: int, out: str, odd: list[str], version: str, rows: bool) -> Driver:
    lowered = out.lower()
    for words, code in _NODE_TEXTS:
        if words in lowered:
            return Driver(DriverState.FAILED, why=_first(out), code=code)
    if rows and rc in (0, 14, 15):
        return Driver(DriverState.SMI, why=_EXIT_CODES.get(rc, ""), version=printable(version[:40]))
    said = _first("\n".join(odd)) or _first(out)
    reason = _EXIT_CODES.get(rc, f"nvidia-smi ended with status {rc}")
    return Driver(DriverState.FAILED, why=f"{reason}: {said}" if said else reason)


def _first(out: str) -> str:
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    return printable(lines[0][:160]) if lines else ""


def _entry(told: dict[str, str]) -> dict[str, Any]:
    index = told.get("index", "")
    return {
        "i": int(index) if index.isdecimal() and len(index) < 6 else None,
        "uuid": told.get("uuid", "") if told.get("uuid", "").startswith("GPU-") else "",
        "pci": bus_id(told.get("pci.bus_id", "")),
        "name": told.get("name", "") if _cell(told, "name") != "-" else "",
        "serial": told.get("serial", "") if told.get("serial", "").isalnum() else "",
        "mig": {"enabled": 1, "disabled": 0}.get(told.get("mig.mode.current", "").lower(), "-"),
        "max": [_cell(told, name) for name in _MAX],
    }


def _cell(told: dict[str, str], name: str) -> int | float | str:
    """A cell as a value of the protocol."""
    if name not in told:
        return "?not asked of nvidia-smi"
    raw = told[name]
    word = raw.strip("[]() ").lower()
    if word in _UNSUPPORTED:
        return "-"
    if word in _WORDS:
        return _WORDS[word]
    try:
        return int(raw, 16) if raw.startswith("0x") else float(raw)
    except ValueError:
        return f"?{raw[:60]}"


def _row(cells: list[Any]) -> list[Any]:
    # "Unknown Error" in most fields of one GPU is a lost GPU; in a single field it is that field.
    for word in ("e15", "e16", "e999"):
        if cells.count(word) > len(cells) // 2:
            return [word]
    return cells
