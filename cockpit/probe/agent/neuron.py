"""Trainium and Inferentia: `neuron-ls -j` for the inventory, `neuron-monitor` for the readings.

Shapes as in AWS's Neuron user guides and as printed on trn1, trn2 and inf2.
"""

import contextlib
import json

from cockpit.probe.agent.child import Child, Nursery, program
from cockpit.probe.agent.question import Question
from cockpit.probe.agent.values import UNSUPPORTED, mib, pci_id

_LIST_EVERY_S = 300.0
_RESTART_S = 60.0
_ABSENT = 127

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Neuron:
    """Devices as entries and rows like those of GPUs; what NeuronCores do not have is `-`."""

    def __init__(self, nursery: Nursery, ls: str, monitor: str, deadline_s: float) -> None:
        self.entries: list[dict[str, object]] = []
        self.rows: list[object] = []
        self.why = ""
        self.absent = False  # neuron-ls is not on this machine
        self._nursery = nursery
        self._monitor = monitor
        self._list = Question(nursery, program([ls, "-j"]), _LIST_EVERY_S, deadline_s)
        self._stream: Child | None = None
        self._not_before = 0.0
        self._cores: dict[str, int] = {}  # NeuronCore -> place in entries

    @property
    def late_since(self) -> "float | None":
        """When the question that has had no answer was asked, in wall time."""
        return self._list.late_since

    def step(self, now: float) -> bool:
        """True when there is something new to tell."""
        child = self._list.step(now)
        news = False
        if child is not None:
            self.absent = child.code == _ABSENT
            news = self._listed(bytes(child.out), child.ending())
        return self._follow(now) or news

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        return self._list.wants(now)

    def _listed(self, text: bytes, ending: str) -> bool:
        devices = _load(text)
        if not isinstance(devices, list):
            self.why = f"neuron-ls ended with {ending} and no list"
            return True
        self.why = ""
        self.entries, self._cores = [], {}
        for device in devices[:64]:
            if isinstance(device, dict):
                self._take(device)
        return True

    def _take(self, device: "dict[str, Any]") -> None:
        place = len(self.entries)
        cores = device.get("neuroncore_ids")
        if not isinstance(cores, list):
            count = device.get("nc_count")
            count = count if isinstance(count, int) else 0
            cores = list(range(place * count, (place + 1) * count))
        for core in cores:
            self._cores[str(core)] = place
        size = device.get("memory_size")
        entry = {
            "i": device.get("neuron_device"),
            "pci": pci_id(str(device.get("bdf"))),
            "name": "Neuron device",
            "max": [mib(size) if isinstance(size, int) else UNSUPPORTED, *[UNSUPPORTED] * 3],
        }
        self.entries.append(entry)

    def _follow(self, now: float) -> bool:
        if not self.entries:
            return False
        if self._stream is None:
            if now >= self._not_before:
                self._not_before = now + _RESTART_S
                with contextlib.suppress(OSError):
                    self._stream = self._nursery.start(program([self._monitor]))
            return False
        lines = self._stream.lines()
        if self._stream.eof and self._stream.reap():
            self._stream = None
        report = _load(lines[-1]) if lines else None
        return self._read(report) if isinstance(report, dict) else False

    def _read(self, report: "dict[str, Any]") -> bool:
        runtimes = report.get("neuron_runtime_data")
        if not isinstance(runtimes, list):
            return False
        use: dict[int, float] = {}
        memory: dict[int, int] = {}
        for runtime in runtimes:
            told = _dict(runtime, "report")
            self._add_use(_dict(told, "neuroncore_counters"), use)
            self._add_memory(_dict(told, "memory_used"), memory)
        kind = _dict(report, "neuron_hardware_info").get("neuron_device_type")
        self.rows = []
        for place, entry in enumerate(self.entries):
            entry["name"] = str(kind).capitalize() if kind else "Neuron device"
            count = list(self._cores.values()).count(place)
            # Only what runtimes use is told: a device that none of them names is idle.
            busy = min(100, round(use.get(place, 0.0) / count)) if count else UNSUPPORTED
            used = memory.get(place, 0 if not runtimes else UNSUPPORTED)
            self.rows.append([busy, UNSUPPORTED, used, *[UNSUPPORTED] * 5])
        return True

    def _add_use(self, counters: "dict[str, Any]", use: "dict[int, float]") -> None:
        for core, told in _dict(counters, "neuroncores_in_use").items():
            place = self._cores.get(core)
            value = told.get("neuroncore_utilization") if isinstance(told, dict) else None
            if place is not None and isinstance(value, (int, float)):
                use[place] = use.get(place, 0.0) + value

    def _add_memory(self, used: "dict[str, Any]", memory: "dict[int, int]") -> None:
        breakdown = _dict(_dict(used, "neuron_runtime_used_bytes"), "usage_breakdown")
        for core, parts in _dict(breakdown, "neuroncore_memory_usage").items():
            place = self._cores.get(core)
            if place is not None and isinstance(parts, dict):
                total = sum(part for part in parts.values() if isinstance(part, int))
                memory[place] = memory.get(place, 0) + mib(total)


def _dict(of: object, key: str) -> "dict[str, Any]":
    found = of.get(key) if isinstance(of, dict) else None
    return found if isinstance(found, dict) else {}


def _load(text: bytes) -> "Any":
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except ValueError:
        return None
