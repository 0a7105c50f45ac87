"""One GPU as NVML tells it. Every value is a number or a word of values.py."""

import ctypes

from cockpit.probe.agent.values import UNSUPPORTED, code_word, decode, failed, mib, pci_id, shrink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# GPU is lost, reset required, not found, unknown: that GPU is in trouble (NVML's header).
LOST_CODES = (15, 16, 28, 999)
_MAX_LINKS = 18
_HBM_TEMPERATURE, _RECOVERY_ACTION = 82, 230
_INVALID_ARGUMENT, _MISSING_FUNCTION = 2, 13
_VALUE_KINDS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
_MAX_PROCESSES = 64
_NO_INSTANCE = 0xFFFFFFFF


class Gpu:
    """Readings of one device. What it does not support is not asked for again."""

    def __init__(self, pynvml: "Any", index: int, handle: "Any", error: str = "") -> None:
        self.index = index
        self.handle = handle
        self.error = error
        self._n = pynvml
        self._absent: set[str] = set()
        self._name, self._uuid, self._serial = "", "", ""
        self._pci, self._minor = "", None  # type: str, object
        if handle is not None:
            self._identify()

    def _identify(self) -> None:
        self._name = self._text("nvmlDeviceGetName", 96)
        self._uuid = self._text("nvmlDeviceGetUUID", 96)
        self._serial = self._text("nvmlDeviceGetSerial", 30)
        minor = self._ask("nvmlDeviceGetMinorNumber")
        self._minor = minor if isinstance(minor, int) else None
        info = self._ask("nvmlDeviceGetPciInfo")
        if not isinstance(info, str):
            raw = info.busId if isinstance(info.busId, bytes) else str(info.busId).encode()
            self._pci = pci_id(decode(raw)) or f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}"

    def identity(self) -> "dict[str, object]":
        """What a person knows the GPU by, and its limits; `err` when it gave no handle."""
        if self.handle is None:
            return {"i": self.index, "err": self.error}
        maxima = [
            self._memory()[1],
            self._ask("nvmlDeviceGetMaxClockInfo", 1),
            self._ask("nvmlDeviceGetMaxPcieLinkGeneration"),
            self._ask("nvmlDeviceGetMaxPcieLinkWidth"),
        ]
        mode = self._ask("nvmlDeviceGetMigMode")
        found: dict[str, object] = {
            "i": self.index,
            "minor": self._minor,
            "uuid": self._uuid,
            "pci": self._pci,
            "name": self._name,
            "serial": self._serial,
            "max": maxima,
            "mig": mode[0] if isinstance(mode, list) else mode,
        }
        if found["mig"] == 1:
            found["inst"] = self._instance_names()
        return found

    def fast(self) -> "list[object]":
        """The row FAST of the protocol."""
        if self.handle is None:
            return [self.error]
        use = self._ask("nvmlDeviceGetUtilizationRates")
        power = self._ask("nvmlDeviceGetPowerUsage")
        row: list[object] = [
            use if isinstance(use, str) else use.gpu,
            use if isinstance(use, str) else use.memory,
            self._memory()[0],
            self._ask("nvmlDeviceGetTemperature", 0),
            self._field(_HBM_TEMPERATURE),
            power if isinstance(power, str) else round(power / 1000),
            self._ask("nvmlDeviceGetClockInfo", 1),
            self._throttle(),
        ]
        return shrink(row)

    def slow(self) -> "list[object]":
        """The row SLOW of the protocol."""
        if self.handle is None:
            return [self.error]
        limit = self._ask("nvmlDeviceGetPowerManagementLimit")
        remap = self._ask("nvmlDeviceGetRemappedRows")
        row: list[object] = [
            limit if isinstance(limit, str) else round(limit / 1000),
            self._ask("nvmlDeviceGetTotalEccErrors", 0, 0),
            self._ask("nvmlDeviceGetTotalEccErrors", 1, 0),
            remap if isinstance(remap, str) else remap[2],
            remap if isinstance(remap, str) else remap[3],
            *self._links(),
            self._ask("nvmlDeviceGetCurrPcieLinkGeneration"),
            self._ask("nvmlDeviceGetCurrPcieLinkWidth"),
            self._field(_RECOVERY_ACTION),
        ]
        return shrink(row)

    def processes(self) -> "object":
        """[pid, used MiB, gpu instance or None] of every process with a context, or a word."""
        if self.handle is None:
            return self.error
        found: dict[int, list[object]] = {}
        for kind in ("Compute", "Graphics"):
            told = self._running(kind)
            if isinstance(told, str):
                if kind == "Compute":
                    return told
                continue
            for process in told[:_MAX_PROCESSES]:
                used = getattr(process, "usedGpuMemory", None)
                instance = getattr(process, "gpuInstanceId", None)
                if instance == _NO_INSTANCE:
                    instance = None
                found[process.pid] = [process.pid, UNSUPPORTED if used is None else mib(used), instance]
        return list(found.values())

    def _running(self, kind: str) -> "Any":
        told = self._ask(f"nvmlDeviceGet{kind}RunningProcesses")
        if told == UNSUPPORTED:
            # The structure grew at drivers 470, 510 and 535; the oldest form is not asked for, it lies.
            told = self._ask(f"nvmlDeviceGet{kind}RunningProcesses_v2")
        return told

    def instances(self) -> "list[object]":
        """[gpu instance, compute instance, used MiB] of every MIG device, in the inventory's order."""
        rows: list[object] = []
        for handle, names in self._mig_handles():
            rows.append([names[0], names[1], self._memory(handle)[0]])
        return rows

    def _instance_names(self) -> "list[object]":
        found: list[object] = []
        for handle, names in self._mig_handles():
            uuid = self._text("nvmlDeviceGetUUID", 96, handle)
            found.append([*names, uuid, self._text("nvmlDeviceGetName", 96, handle), self._memory(handle)[1]])
        return found

    def _mig_handles(self) -> "list[tuple[Any, list[object]]]":
        mode = self._ask("nvmlDeviceGetMigMode") if self.handle is not None else UNSUPPORTED
        count = self._ask("nvmlDeviceGetMaxMigDeviceCount") if isinstance(mode, list) and mode[0] == 1 else 0
        found = []
        for index in range(count if isinstance(count, int) else 0):
            # An empty place answers "not found"; places are not filled in order.
            handle = self._call("nvmlDeviceGetMigDeviceHandleByIndex", self.handle, index)
            if not isinstance(handle, str):
                names = [
                    self._call("nvmlDeviceGetGpuInstanceId", handle),
                    self._call("nvmlDeviceGetComputeInstanceId", handle),
                ]
                found.append((handle, names))
        return found

    def _memory(self, handle: "Any" = None) -> "tuple[object, object]":
        """Used and total MiB. The second form of the call leaves out what the driver keeps for itself."""
        of = self.handle if handle is None else handle
        info: Any = UNSUPPORTED
        if hasattr(self._n, "nvmlMemory_v2") and "memory_v2" not in self._absent:
            info = self._call("nvmlDeviceGetMemoryInfo", of, self._n.nvmlMemory_v2)
            if info == UNSUPPORTED and handle is None:
                self._absent.add("memory_v2")
        if info == UNSUPPORTED:
            info = self._call("nvmlDeviceGetMemoryInfo", of)
        return (info, info) if isinstance(info, str) else (mib(info.used), mib(info.total))

    def _throttle(self) -> object:
        reasons = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons == UNSUPPORTED:  # the name before driver 535
            reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return reasons

    def _links(self) -> "list[object]":
        """NVLinks down and NVLinks in all."""
        states: list[int] = []
        for link in range(_MAX_LINKS):
            state = self._call("nvmlDeviceGetNvLinkState", self.handle, link)
            if not isinstance(state, int):
                # Past the last link the argument is invalid; any other word at the first one is the answer.
                if not states:
                    return [UNSUPPORTED, UNSUPPORTED] if state == "e2" else [state, state]
                break
            states.append(state)
        return [states.count(0), len(states)]

    def _field(self, number: int) -> object:
        if f"field {number}" in self._absent:
            return UNSUPPORTED
        values = self._ask("nvmlDeviceGetFieldValues", [number])
        if isinstance(values, str):
            return values
        value = values[0]
        if value.nvmlReturn == 0:
            return getattr(value.value, _VALUE_KINDS.get(value.valueType, "uiVal"))
        # The call succeeds as a whole; an old driver calls a field it does not know an invalid argument.
        word = UNSUPPORTED if value.nvmlReturn == _INVALID_ARGUMENT else code_word(value.nvmlReturn)
        if word == UNSUPPORTED:
            self._absent.add(f"field {number}")
        return word

    def _text(self, name: str, size: int, handle: "Any" = None) -> str:
        """A string of the library, decoded here: the bindings raise at bytes that are no UTF-8."""
        buffer = ctypes.create_string_buffer(size)
        try:
            function = self._n._nvmlGetFunctionPointer(name)
            code = function(self.handle if handle is None else handle, buffer, ctypes.c_uint(size))
        except Exception:
            return ""
        return decode(buffer.raw)[:96] if code == 0 else ""

    def _ask(self, name: str, *arguments: object) -> "Any":
        if name in self._absent:
            return UNSUPPORTED
        told = self._call(name, self.handle, *arguments)
        if told == UNSUPPORTED and isinstance(told, str):
            self._absent.add(name)
        return told

    def _call(self, name: str, *arguments: object) -> "Any":
        function = getattr(self._n, name, None)
        if function is None:
            return code_word(_MISSING_FUNCTION)
        try:
            return function(*arguments)
        except self._n.NVMLError as error:
            return code_word(error.value)
        except Exception as error:
            return failed(f"{type(error).__name__}: {error}")
