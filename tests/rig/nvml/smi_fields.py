"""The fields that the nvidia-smi stand-in can be asked for, each with how the library tells it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# What a field of the CSV shows instead of a value, by NVML's return code.
REFUSALS = {
    3: "[N/A]",
    4: "[Insufficient Permissions]",
    13: "[N/A]",
    15: "[GPU is lost]",
    16: "[GPU requires reset]",
    26: "[Requested functionality has been deprecated]",
}
# Short names that the header shows in full.
LONG_NAMES = {"used_memory": "used_gpu_memory", "clocks.sm": "clocks.current.sm", "gpu_uuid": "uuid"}
MIB = 1 << 20
Read = Callable[[ctypes.CDLL, Any, Any], str]


class Refused(Exception):  # noqa: N818
    """NVML gave a return code instead of a value."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def shown(self) -> str:
        return REFUSALS.get(self.code, "[Unknown Error]")


@dataclass(frozen=True)
class Field:
    """One column: its header, its unit, and how to read it."""

    name: str
    unit: str
    read: Read


def check(code: int) -> None:
    if code:
        raise Refused(code)


def text(function: Any, *device: Any, size: int = 96) -> str:
    """A string getter's answer."""
    buffer = ctypes.create_string_buffer(size)
    check(function(*device, buffer, size))
    return buffer.value.decode("utf-8", "surrogateescape")


def words(name: str) -> Read:
    return lambda nvml, device, _: text(getattr(nvml, name), device)


def number(name: str, *args: int, divide: float = 1, large: bool = False) -> Read:
    def read(nvml: ctypes.CDLL, device: Any, _: Any) -> str:
        value = ctypes.c_ulonglong() if large else ctypes.c_uint()
        check(getattr(nvml, name)(device, *args, ctypes.byref(value)))
        return f"{value.value / divide:.2f}" if divide != 1 else str(value.value)

    return read


def on_off(name: str, pair: bool = False) -> Read:
    def read(nvml: ctypes.CDLL, device: Any, _: Any) -> str:
        value, pending = ctypes.c_uint(), ctypes.c_uint()
        check(getattr(nvml, name)(device, *map(ctypes.byref, [value, pending] if pair else [value])))
        return "Enabled" if value.value else "Disabled"

    return read


def utilization(place: int) -> Read:
    def read(nvml: ctypes.CDLL, device: Any, _: Any) -> str:
        rates = (ctypes.c_uint * 2)()
        check(nvml.nvmlDeviceGetUtilizationRates(device, rates))
        return str(rates[place])

    return read


class MemoryV2(ctypes.Structure):
    """nvmlMemory_v2_t."""

    _fields_ = [
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    ]


def memory(name: str) -> Read:
    def read(nvml: ctypes.CDLL, device: Any, _: Any) -> str:
        found = MemoryV2(version=0x02000028)
        check(nvml.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(found)))
        if found.total == 0:
            raise Refused(3)
        return str(getattr(found, name) // MIB)

    return read


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t; the value as eight bytes, of which small types use the first."""

    _fields_ = [
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("code", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    ]


def field_value(field: int, yes_no: bool = False) -> Read:
    def read(nvml: ctypes.CDLL, device: Any, _: Any) -> str:
        found = FieldValue(id=field)
        check(nvml.nvmlDeviceGetFieldValues(device, 1, ctypes.byref(found)))
        check(found.code)
        return ("Yes" if found.value else "No") if yes_no else str(found.value)

    return read


def bus_id(nvml: ctypes.CDLL, device: Any, _: Any) -> str:
    info = ctypes.create_string_buffer(68)
    check(nvml.nvmlDeviceGetPciInfo_v3(device, info))
    return info.raw[36:].split(b"\0")[0].decode()


def throttle(nvml: ctypes.CDLL, device: Any, _: Any) -> str:
    return f"0x{int(number('nvmlDeviceGetCurrentClocksEventReasons', large=True)(nvml, device, None)):016X}"


def used_memory(_nvml: ctypes.CDLL, _device: Any, process: Any) -> str:
    if process.bytes == 0xFFFF_FFFF_FFFF_FFFF:
        raise Refused(3)
    return str(process.bytes // MIB)


def ecc(type_: int, span: int) -> Read:
    return number("nvmlDeviceGetTotalEccErrors", type_, span, large=True)


def _named(*fields: tuple[str, str, Read]) -> dict[str, Field]:
    return {name: Field(LONG_NAMES.get(name, name), unit, read) for name, unit, read in fields}


GPU_FIELDS = _named(
    ("index", "", number("nvmlDeviceGetIndex")),
    ("name", "", words("nvmlDeviceGetName")),
    ("uuid", "", words("nvmlDeviceGetUUID")),
    ("gpu_uuid", "", words("nvmlDeviceGetUUID")),
    ("serial", "", lambda nvml, device, _: text(nvml.nvmlDeviceGetSerial, device, size=30)),
    ("pci.bus_id", "", bus_id),
    ("gpu_bus_id", "", bus_id),
    ("driver_version", "", lambda nvml, _device, _: text(nvml.nvmlSystemGetDriverVersion)),
    ("vbios_version", "", words("nvmlDeviceGetVbiosVersion")),
    ("persistence_mode", "", on_off("nvmlDeviceGetPersistenceMode")),
    ("mig.mode.current", "", on_off("nvmlDeviceGetMigMode", pair=True)),
    ("ecc.mode.current", "", on_off("nvmlDeviceGetEccMode", pair=True)),
    ("temperature.gpu", "", number("nvmlDeviceGetTemperature", 0)),
    ("temperature.memory", "", field_value(82)),
    ("utilization.gpu", "%", utilization(0)),
    ("utilization.memory", "%", utilization(1)),
    ("memory.total", "MiB", memory("total")),
    ("memory.reserved", "MiB", memory("reserved")),
    ("memory.used", "MiB", memory("used")),
    ("memory.free", "MiB", memory("free")),
    ("power.draw", "W", number("nvmlDeviceGetPowerUsage", divide=1000)),
    ("power.limit", "W", number("nvmlDeviceGetPowerManagementLimit", divide=1000)),
    ("enforced.power.limit", "W", number("nvmlDeviceGetEnforcedPowerLimit", divide=1000)),
    ("clocks.current.sm", "MHz", number("nvmlDeviceGetClockInfo", 1)),
    ("clocks.sm", "MHz", number("nvmlDeviceGetClockInfo", 1)),
    ("clocks.max.sm", "MHz", number("nvmlDeviceGetMaxClockInfo", 1)),
    ("clocks.current.memory", "MHz", number("nvmlDeviceGetClockInfo", 2)),
    ("pcie.link.gen.current", "", number("nvmlDeviceGetCurrPcieLinkGeneration")),
    ("pcie.link.gen.max", "", number("nvmlDeviceGetMaxPcieLinkGeneration")),
    ("pcie.link.width.current", "", number("nvmlDeviceGetCurrPcieLinkWidth")),
    ("pcie.link.width.max", "", number("nvmlDeviceGetMaxPcieLinkWidth")),
    ("ecc.errors.corrected.volatile.total", "", ecc(0, 0)),
    ("ecc.errors.uncorrected.volatile.total", "", ecc(1, 0)),
    ("ecc.errors.corrected.aggregate.total", "", ecc(0, 1)),
    ("ecc.errors.uncorrected.aggregate.total", "", ecc(1, 1)),
    ("clocks_event_reasons.active", "", throttle),
    ("clocks_throttle_reasons.active", "", throttle),
    ("fan.speed", "%", number("nvmlDeviceGetFanSpeed")),
)
REMAP_FIELDS = _named(
    ("gpu_bus_id", "", bus_id),
    ("gpu_uuid", "", words("nvmlDeviceGetUUID")),
    ("remapped_rows.correctable", "", field_value(142)),
    ("remapped_rows.uncorrectable", "", field_value(143)),
    ("remapped_rows.pending", "", field_value(144)),
    ("remapped_rows.failure", "", field_value(145)),
)
PROCESS_FIELDS = _named(
    ("pid", "", lambda _nvml, _device, process: str(process.pid)),
    ("used_memory", "MiB", used_memory),
    ("used_gpu_memory", "MiB", used_memory),
    ("gpu_uuid", "", words("nvmlDeviceGetUUID")),
    ("gpu_bus_id", "", bus_id),
)
