"""Stands in for pynvml on the demo's nodes. Python 3.6 and the standard library only; sent as source.

Answers from `state.json` in FOLDER, which the demo rewrites when jobs come and go. In between, values follow
from the time and a seed alone, so that all GPUs of a job move together on every node without being told.
"""

# ruff: noqa: N802, N816 - the names are NVML's own

import ctypes
import json
import math
import os
import time
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Readings = dict[str, float]

FOLDER = ""  # the node's folder; what is appended to this source sets it

NVML_SUCCESS = 0
NVML_ERROR_INVALID_ARGUMENT = 2
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_TIMEOUT = 10
NVML_ERROR_GPU_IS_LOST = 15
NVML_FI_DEV_MEMORY_TEMP = 82
NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
nvmlMemory_v2 = 0x02000028

_WORDS = {
    NVML_ERROR_INVALID_ARGUMENT: "Invalid Argument",
    NVML_ERROR_NOT_SUPPORTED: "Not Supported",
    NVML_ERROR_NOT_FOUND: "Not Found",
    NVML_ERROR_TIMEOUT: "Timeout",
    NVML_ERROR_GPU_IS_LOST: "GPU is lost",
}
_MIB = 2**20
_TOTAL_MIB = 81_559  # H100 80GB HBM3, as nvidia-smi shows it
_LINKS = 18
_LIMIT_W = 700
_EVENT_XID = 0x8
_LOOK_S = 0.4
_TAU_S = 40.0  # how quickly a GPU warms up and cools down
_FIRST_HANDLE = 0xD0000

# mode: utilisation, its swing, memory-controller use, power, its swing, temperature, SM clock
_MODES = {
    "free": (0.0, 0.0, 0.0, 72.0, 0.0, 33.0, 345.0),
    "held": (0.0, 0.0, 0.0, 117.0, 0.0, 37.0, 1980.0),
    "odd": (0.0, 0.0, 0.0, 114.0, 0.0, 37.0, 1980.0),
    "spin": (100.0, 0.0, 1.0, 140.0, 2.0, 41.0, 1980.0),
    "train": (96.8, 2.4, 46.0, 620.0, 40.0, 60.0, 1755.0),
    "serve": (84.0, 5.0, 31.0, 430.0, 35.0, 50.0, 1905.0),
    "burst": (78.0, 14.0, 22.0, 330.0, 60.0, 46.0, 1965.0),
    "hot": (98.0, 1.5, 30.0, 402.0, 15.0, 91.0, 1100.0),
}
_BOUNDS = {"train": (93, 100), "hot": (93, 100)}
_THROTTLE = {"free": 0x1, "hot": 0x48}  # idle; HW slowdown and HW thermal slowdown


class NVMLError(Exception):
    """A return code of NVML that is not success."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return _WORDS.get(self.value, "Unknown Error")


class _Struct:
    """What NVML fills in for a caller."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


class _Card:
    """One simulated GPU: what the state file says of it, and its values at a time."""

    def __init__(self, index: int, told: "dict[str, Any]") -> None:
        self.index = index
        self.told = told
        self._at = 0.0
        self._values: Readings = {}

    def check(self) -> None:
        """Raise what a call on a card that fell off the bus gets."""
        lost_at = self.told.get("lost_at")
        if lost_at is not None and time.time() >= lost_at:
            raise NVMLError(NVML_ERROR_GPU_IS_LOST)

    def values(self) -> "Readings":
        """All readings of this moment; one call of NVML in a tick sees the same as the next."""
        self.check()
        now = time.time()
        if not 0 <= now - self._at < _LOOK_S:
            self._at, self._values = now, self._reckon(now)
        return self._values

    def _reckon(self, now: float) -> "Readings":
        modes = self.told["modes"]
        place = max([0] + [n for n, (since, _) in enumerate(modes) if since <= now])
        since, mode = modes[place]
        found = self._of_mode(mode, now)
        before = _MODES[modes[place - 1][1] if place else "free"][5] + self._warmth()
        found["temp"] += (before - found["temp"]) * math.exp(-max(0.0, now - since) / _TAU_S)
        found["hbm"] = found["temp"] + (4.0 if mode in ("free", "hot") else 8.0)
        return found

    def _warmth(self) -> float:
        # Cards further back in the air stream are warmer, and no two are alike.
        return 2.4 * (self.index % 4) + 0.3 * (self.index // 4) + self._own("temp", 1.0)

    def _own(self, what: str, spread: float) -> float:
        """How much this very card differs from others, the same at any time."""
        return spread * (2 * (zlib.crc32((what + self.told["uuid"]).encode()) % 1000) / 999 - 1)

    def _of_mode(self, mode: str, now: float) -> "Readings":
        seed = self.told["seed"]
        calm = mode == "burst" and _noise(seed, now, 31.0) > -0.1
        util, util_swing, mem_util, power, power_swing, temp, clock = _MODES["held" if calm else mode]
        wave = math.sin(2 * math.pi * now / (18 + seed % 14) + seed)
        own = _noise(seed * 31 + self.index, now, 2.0)
        low, high = _BOUNDS.get(mode, (0, 100))
        return {
            "util": float(min(high, max(low, round(util + util_swing * wave + 0.9 * own * (util_swing > 0))))),
            "mem_util": round(max(0.0, mem_util * (1 + 0.12 * wave))),
            "power": power + power_swing * wave + 5 * own * (power > 200) + self._own("power", 4 + power / 60),
            "temp": temp + (self._warmth() + 1.0 * wave * (power_swing > 20) if mode != "hot" else 0.5 * own),
            "clock": clock if power_swing < 10 else 15 * round((clock - 25 * wave) / 15),
            "throttle": float(_THROTTLE.get(mode, 0)),
        }


class _Node:
    """The node's state file, read again when it has changed, and the small files that follow it."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.cards: list[_Card] = []
        self.events_from = time.time()
        self._looked = 0.0
        self._stamp = -1

    def look(self) -> "_Node":
        """Bring it up to date."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_S:
            self._looked = now
            path = os.path.join(FOLDER, "state.json")
            stamp = os.stat(path).st_mtime_ns
            if stamp != self._stamp:
                self._stamp = stamp
                with open(path, encoding="utf-8") as file:
                    self.told = json.load(file)
                self.cards = [_Card(index, card) for index, card in enumerate(self.told["gpus"])]
        return self

    def breathe(self) -> None:
        """Write what the kernel of this node would tell now: up time, load, memory, EFA's counters."""
        now = time.time()
        uptime = now - self.told["boot"]
        load = self.told["load"] * (1 + 0.03 * math.sin(now / 47))
        _overwrite("proc/uptime", f"{uptime:.2f} {uptime * 150:.2f}", 48)
        _overwrite("proc/loadavg", f"{load:.2f} {load * 0.99:.2f} {load * 0.97:.2f} 3/2871 99999", 64)
        net = self.told["net"]
        carried = net["bytes"] + net["per_s"] * max(0.0, now - net["at"])
        for kind in range(4):
            for counter, share in self.told["counters"].items():
                _overwrite(
                    f"efa/{kind}/ports/1/hw_counters/{counter}", str(int(carried * share * (1 + 0.004 * kind))), 24
                )


def _overwrite(name: str, text: str, width: int) -> None:
    # In place and of one width: whoever reads meanwhile sees the old text or the new one.
    fd = os.open(os.path.join(FOLDER, name), os.O_WRONLY)
    try:
        os.write(fd, text.ljust(width - 1)[: width - 1].encode() + b"\n")
    finally:
        os.close(fd)


def _noise(seed: int, now: float, every_s: float) -> float:
    """A number from -1 to 1 that changes every so often; the same for the same seed and time."""
    wild = math.sin(seed * 12.9898 + (now // every_s) % 100000 * 78.233) * 43758.5453
    return 2 * (wild - math.floor(wild)) - 1


_node = _Node()


def _card(handle: "Any") -> _Card:
    index = int(handle.value - _FIRST_HANDLE) // 0x100
    cards = _node.look().cards
    if not 0 <= index < len(cards):
        raise NVMLError(NVML_ERROR_INVALID_ARGUMENT)
    return cards[index]


def _there(handle: "Any") -> "dict[str, Any]":
    card = _card(handle)
    card.check()
    return card.told


def nvmlInit() -> None:
    _node.look()


def nvmlSystemGetDriverVersion() -> str:
    return "570.133.20"


def nvmlSystemGetNVMLVersion() -> str:
    return "12.570.133.20"


def nvmlSystemGetCudaDriverVersion_v2() -> int:
    return 12080


def nvmlDeviceGetCount() -> int:
    return len(_node.look().cards)


def nvmlDeviceGetHandleByIndex(index: int) -> "Any":
    handle = ctypes.c_void_p(_FIRST_HANDLE + 0x100 * index)
    _there(handle)
    return handle


def _nvmlGetFunctionPointer(name: str) -> "Callable[[Any, Any, Any], int]":
    """Calls that fill a buffer, as the library itself has them."""
    keys = {"nvmlDeviceGetName": "name", "nvmlDeviceGetUUID": "uuid", "nvmlDeviceGetSerial": "serial"}

    def call(handle: "Any", buffer: "Any", size: "Any") -> int:
        try:
            buffer.value = str(_there(handle)[keys[name]]).encode()[: size.value - 1]
        except NVMLError as error:
            return error.value
        return NVML_SUCCESS

    if name not in keys:
        raise NVMLError(13)
    return call


def nvmlDeviceGetMinorNumber(handle: "Any") -> int:
    _there(handle)
    return _card(handle).index


def nvmlDeviceGetPciInfo(handle: "Any") -> _Struct:
    bus = int(_there(handle)["pci"].split(":")[1], 16)
    return _Struct(busId=f"00000000:{bus:02X}:00.0", domain=0, bus=bus, device=0)


def nvmlDeviceGetMaxClockInfo(handle: "Any", kind: int) -> int:
    _there(handle)
    return 1980 if kind == 1 else 2619


def nvmlDeviceGetMaxPcieLinkGeneration(handle: "Any") -> int:
    _there(handle)
    return 5


def nvmlDeviceGetMaxPcieLinkWidth(handle: "Any") -> int:
    _there(handle)
    return 16


nvmlDeviceGetCurrPcieLinkGeneration = nvmlDeviceGetMaxPcieLinkGeneration
nvmlDeviceGetCurrPcieLinkWidth = nvmlDeviceGetMaxPcieLinkWidth


def nvmlDeviceGetMigMode(handle: "Any") -> "list[int]":
    _there(handle)
    return [0, 0]


def nvmlDeviceGetUtilizationRates(handle: "Any") -> _Struct:
    values = _card(handle).values()
    return _Struct(gpu=int(values["util"]), memory=int(values["mem_util"]))


def nvmlDeviceGetMemoryInfo(handle: "Any", version: "int | None" = None) -> _Struct:
    used = int(_there(handle)["mem_mib"])
    return _Struct(total=_TOTAL_MIB * _MIB, used=used * _MIB, free=(_TOTAL_MIB - used) * _MIB, reserved=0)


def nvmlDeviceGetTemperature(handle: "Any", sensor: int) -> int:
    return round(_card(handle).values()["temp"])


def nvmlDeviceGetPowerUsage(handle: "Any") -> int:
    return int(_card(handle).values()["power"] * 1000)


def nvmlDeviceGetPowerManagementLimit(handle: "Any") -> int:
    _there(handle)
    return _LIMIT_W * 1000


def nvmlDeviceGetClockInfo(handle: "Any", kind: int) -> int:
    return int(_card(handle).values()["clock"]) if kind == 1 else 2619


def nvmlDeviceGetCurrentClocksEventReasons(handle: "Any") -> int:
    return int(_card(handle).values()["throttle"])


nvmlDeviceGetCurrentClocksThrottleReasons = nvmlDeviceGetCurrentClocksEventReasons


def nvmlDeviceGetTotalEccErrors(handle: "Any", kind: int, counter: int) -> int:
    told = _there(handle)
    return int(told.get("corrected", 0)) if kind == 0 else 0


def nvmlDeviceGetRemappedRows(handle: "Any") -> "tuple[int, int, int, int]":
    """Rows remapped for corrected and for uncorrected errors, whether one is pending, whether one failed."""
    pending_at = _there(handle).get("remap_at")
    pending = int(pending_at is not None and time.time() >= pending_at)
    return (pending, 0, pending, 0)


def nvmlDeviceGetNvLinkState(handle: "Any", link: int) -> int:
    _there(handle)
    if link >= _LINKS:
        raise NVMLError(NVML_ERROR_INVALID_ARGUMENT)
    return 1


def nvmlDeviceGetFieldValues(handle: "Any", fields: "list[int]") -> "list[_Struct]":
    values = _card(handle).values()
    known = {
        NVML_FI_DEV_MEMORY_TEMP: round(values["hbm"]),
        NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: 0,
    }
    return [_field(known.get(number)) for number in fields]


def _field(value: "int | None") -> _Struct:
    code = NVML_ERROR_NOT_SUPPORTED if value is None else NVML_SUCCESS
    return _Struct(nvmlReturn=code, valueType=1, value=_Struct(uiVal=value))


def nvmlDeviceGetComputeRunningProcesses(handle: "Any") -> "list[_Struct]":
    told = _there(handle)
    # Asked for every few seconds, just before /proc is read: the moment to bring that up to date.
    if _card(handle).index == _node.look().told["clock_card"]:
        _node.breathe()
    return [
        _Struct(pid=pid, usedGpuMemory=mem_mib * _MIB, gpuInstanceId=0xFFFFFFFF, computeInstanceId=0xFFFFFFFF)
        for pid, mem_mib in told["processes"]
    ]


def nvmlDeviceGetGraphicsRunningProcesses(handle: "Any") -> "list[_Struct]":
    _there(handle)
    return []


def nvmlEventSetCreate() -> _Struct:
    return _Struct(told=set())


def nvmlDeviceRegisterEvents(handle: "Any", kinds: int, events: _Struct) -> None:
    _there(handle)
    if kinds & ~_EVENT_XID & ~0x4000 & ~0x8000:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)


def nvmlEventSetWait_v2(events: "Any", timeout_ms: int) -> _Struct:
    """The next Xid since the library was loaded; never waits."""
    for at, index, code in _node.look().told["xids"]:
        if _node.events_from <= at <= time.time() and (at, index, code) not in events.told:
            events.told.add((at, index, code))
            handle = ctypes.c_void_p(_FIRST_HANDLE + 0x100 * index)
            return _Struct(device=handle, eventType=_EVENT_XID, eventData=code)
    raise NVMLError(NVML_ERROR_TIMEOUT)
