"""The NVML child: one line of readings for every byte that comes on its standard input."""

import ctypes
import os
import sys
import time
import types
import zlib

from cockpit.probe.agent.nvml_gpu import LOST_CODES, Gpu
from cockpit.probe.agent.values import code_word, compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIBRARY = "libnvidia-ml.so.1"
NO_LIBRARY = 12
NO_BINDINGS = -1  # pynvml itself does not run here
_TIMEOUT = 10
_XID, _UNAVAILABLE, _RECOVERY = 0x8, 0x4000, 0x8000
_MAX_EVENTS = 32


def serve(packed_pynvml: bytes) -> None:
    """Until standard input ends: `f` asks for the fast readings, `s` for the slow ones too.

    The first line is the inventory, or `{"fatal": code, "why": text}` and the end.
    """
    try:
        session = Session(_load(packed_pynvml))
    except Exception as error:
        code = getattr(error, "value", NO_BINDINGS)
        _say({"fatal": code, "why": str(error)[:200]})
        return
    _say({"inv": session.inventory()})
    while True:
        asked = os.read(0, 64)
        if not asked:
            return
        started = time.monotonic()
        reply = session.fast()
        if b"s" in asked:
            reply.update(session.slow())
        reply["q"] = round((time.monotonic() - started) * 1000, 1)
        _say(reply)


class LibraryMissingError(Exception):
    """NVML's library is not on this machine."""

    value = NO_LIBRARY


def _load(packed: bytes) -> "Any":
    # Compiling the bindings costs a third of a second: not on a machine that has no library.
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise LibraryMissingError(str(error)) from None
    if not packed:
        import pynvml

        return pynvml
    module = types.ModuleType("pynvml")
    sys.modules["pynvml"] = module  # it looks itself up to make its exceptions
    exec(compile(zlib.decompress(packed), "pynvml.py", "exec"), module.__dict__)  # noqa: S102
    return module


def _say(what: "dict[str, object]") -> None:
    data = compact(what) + b"\n"
    while data:
        data = data[os.write(1, data) :]


class Session:
    """An initialised library and the GPUs it told of; the order of `gpus` is the order of every row."""

    def __init__(self, pynvml: "Any") -> None:
        self._n = pynvml
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        self.gpus = [self._gpu(index) for index in range(count)]
        self._known = [gpu.identity() for gpu in self.gpus]
        self._events = self._register()

    def _gpu(self, index: int) -> Gpu:
        try:
            return Gpu(self._n, index, self._n.nvmlDeviceGetHandleByIndex(index))
        except self._n.NVMLError as error:
            return Gpu(self._n, index, None, code_word(error.value))

    def inventory(self) -> "dict[str, object]":
        """Versions, and per GPU what does not change by itself."""
        return {"versions": self._versions(), "gpus": self._known}

    def _versions(self) -> "dict[str, object]":
        found: dict[str, object] = {}
        for key, name in (("driver", "nvmlSystemGetDriverVersion"), ("nvml", "nvmlSystemGetNVMLVersion")):
            try:
                found[key] = str(getattr(self._n, name)())[:40]
            except Exception as error:
                found[key] = code_word(getattr(error, "value", 999))
        try:
            found["cuda"] = self._n.nvmlSystemGetCudaDriverVersion_v2()
        except Exception as error:
            found["cuda"] = code_word(getattr(error, "value", 999))
        return found

    def fast(self) -> "dict[str, object]":
        """What is asked at every tick, and the events since the last."""
        reply: dict[str, object] = {"g": [gpu.fast() for gpu in self.gpus]}
        events = self._take_events()
        if events:
            reply["x"] = events
        return reply

    def slow(self) -> "dict[str, object]":
        """What changes rarely or costs more; the inventory again when it is no longer the same."""
        reply: dict[str, object] = {
            "G": [gpu.slow() for gpu in self.gpus],
            "p": [gpu.processes() for gpu in self.gpus],
            "i": [gpu.instances() for gpu in self.gpus],
        }
        known = [gpu.identity() for gpu in self.gpus]
        if known != self._known:
            self._known = known
            reply["inv"] = self.inventory()
        return reply

    def _register(self) -> "Any":
        try:
            events = self._n.nvmlEventSetCreate()
        except Exception:
            return None
        registered = 0
        for gpu in self.gpus:
            if gpu.handle is None:
                continue
            for wanted in (_XID | _UNAVAILABLE | _RECOVERY, _XID):
                try:
                    self._n.nvmlDeviceRegisterEvents(gpu.handle, wanted, events)
                    registered += 1
                    break
                except Exception:  # noqa: S112 - an older driver knows fewer kinds of event
                    continue
        return events if registered else None

    def _take_events(self) -> "list[object]":
        taken: list[object] = []
        while self._events is not None and len(taken) < _MAX_EVENTS:
            try:
                data = self._n.nvmlEventSetWait_v2(self._events, 0)
            except self._n.NVMLError as error:
                if error.value != _TIMEOUT and error.value not in LOST_CODES:
                    self._events = None
                break
            taken.append([round(time.time(), 2), self._position(data.device), data.eventType, data.eventData])
        return taken

    def _position(self, handle: "Any") -> int:
        """Which GPU an event is about: handles are pointers, equal for the same device."""
        wanted = ctypes.cast(handle, ctypes.c_void_p).value
        for position, gpu in enumerate(self.gpus):
            if gpu.handle is not None and ctypes.cast(gpu.handle, ctypes.c_void_p).value == wanted:
                return position
        return -1
