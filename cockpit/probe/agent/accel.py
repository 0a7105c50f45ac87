"""Which way the accelerators are read: NVML, else nvidia-smi, else Neuron's programs."""

import os

from cockpit.probe.agent import nvml
from cockpit.probe.agent.child import Nursery
from cockpit.probe.agent.driver import HUNG, NONE, OK, SILENT, Driver
from cockpit.probe.agent.inventory import Inventory, hidden_gpus, pci_gpus
from cockpit.probe.agent.neuron import Neuron
from cockpit.probe.agent.options import Options
from cockpit.probe.agent.procs import Processes
from cockpit.probe.agent.smi import Smi

_ABSENT = 127
_MAX_EVENTS = 200


class Accelerators:
    """Readings of all of them in the protocol's form, and the state of the driver."""

    def __init__(self, nursery: Nursery, options: Options, packed_pynvml: bytes) -> None:
        self.inventory = Inventory()
        self.versions: dict[str, object] = {}
        self.processes = Processes(nursery, options.text("proc"), options.seconds("timeout"))
        self.pci = self._see(options.text("sys"))
        self.hidden = self._hidden(options.text("dev"))
        self._nursery, self._options = nursery, options
        self.driver = Driver(
            nursery,
            lambda: nvml.serve(packed_pynvml),
            options.seconds("driver_silent"),
            options.seconds("driver_slow"),
            options.seconds("driver_hung"),
            options.list("backoff"),
        )
        self._smi: Smi | None = None
        self._neuron: Neuron | None = None
        self._fallback = ""  # "", smi, neuron or none
        self._sections: dict[str, object] = {}
        self._events: list[object] = []
        self._slow_due = 0.0

    @staticmethod
    def _see(sysfs: str) -> "list[str]":
        try:
            return pci_gpus(sysfs, os.listdir(f"{sysfs}/bus/pci/devices"))
        except OSError:
            return []

    @staticmethod
    def _hidden(dev: str) -> "list[int]":
        try:
            return hidden_gpus(dev, os.listdir(dev))
        except OSError:
            return []

    def ask(self, now: float) -> None:
        """At every tick: the next question to NVML, with the slow part when that is due."""
        slow = now >= self._slow_due
        if self.driver.ask(now, b"s" if slow else b"f") and slow and self.driver.state == OK:
            self._slow_due = now + self._options.seconds("slow") - 0.1

    @property
    def waiting(self) -> bool:
        """Whether an answer to this tick's question may still come."""
        return self.driver.waiting

    @property
    def fell_silent(self) -> bool:
        """Whether NVML is overdue by now, which is not to wait for the next tick."""
        return self.driver.state == SILENT

    def step(self, now: float) -> None:
        """Take in what has been answered."""
        for reply in self.driver.step(now):
            self._take(now, reply)
        self.processes.step(now)
        if self.driver.state == OK:  # also when the library has appeared after all
            self._smi = self._neuron = None
            self._fallback = ""
        if self.driver.state == NONE and self.driver.code in (nvml.NO_BINDINGS, nvml.NO_LIBRARY) and not self._fallback:
            self._fallback = "smi"
            self._smi = Smi(
                self._nursery,
                self._options.text("nvidia_smi"),
                max(self._options.seconds("smi"), self._options.seconds("interval")),
                self._options.seconds("driver_hung"),
            )
        if self._smi is not None:
            self._step_smi(self._smi, now)
        if self._neuron is not None:
            self._step_neuron(self._neuron, now)

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        parts = [self.driver.wants(now), self.processes.wants(now)]
        parts += [part.wants(now) for part in (self._smi, self._neuron) if part is not None]
        return min(parts)

    def state(self) -> "list[object] | None":
        """[state, since, why, NVML code] unless all is well; the state of the way that is used."""
        driver = self.driver
        if driver.state == OK:
            return None
        late = self._late_since()
        if late is not None:
            return [HUNG, round(late), f"{self._fallback} gave no answer", None]
        if self._fallback in ("smi", "neuron"):
            why = self._neuron.why if self._neuron is not None and self._neuron.why else driver.why
            return [self._fallback, round(driver.since), why, None]
        why = "no NVIDIA driver" if driver.code == nvml.NO_LIBRARY else driver.why
        return [driver.state, round(driver.since, 1), why, driver.code]

    def take(self) -> "dict[str, object]":
        """Sections that have not been told yet."""
        sections, self._sections = self._sections, {}
        if self._events:
            sections["x"] = self._events
            self._events = []
        return sections

    def _late_since(self) -> "float | None":
        for part in (self._smi, self._neuron):
            if part is not None and part.late_since is not None:
                return part.late_since
        return None

    def _take(self, now: float, reply: "dict[str, object]") -> None:
        told = reply.get("inv")
        if isinstance(told, dict):
            self.versions = told["versions"]
            self.inventory.update(told["gpus"], self.pci)
            if "g" not in reply:  # the first words of a new child: ask for readings at once
                self.ask(now)
        for key in ("g", "G", "i"):
            rows = reply.get(key)
            # Instances are told only where there are some: few nodes use MIG.
            if isinstance(rows, list) and (key != "i" or any(rows)):
                self._sections[key] = self.inventory.spread(rows)
        if "q" in reply:
            self._sections["q"] = reply["q"]
        lists = reply.get("p")
        if isinstance(lists, list):
            self.processes.update(now, lists, [self.inventory.place(row) for row in range(len(lists))])
        events = reply.get("x")
        if isinstance(events, list):
            for at, row, kind, data in events:
                self._events.append([at, self.inventory.place(row), kind, data])
            del self._events[:-_MAX_EVENTS]

    def _step_smi(self, smi: Smi, now: float) -> None:
        smi.step(now)
        if smi.said is None:
            return
        if smi.said["rc"] == _ABSENT:
            self._smi, self._fallback = None, "neuron"
            names = (self._options.text("neuron_ls"), self._options.text("neuron_monitor"))
            self._neuron = Neuron(self._nursery, *names, self._options.seconds("driver_hung"))
        else:
            self._sections["c"] = smi.said
        smi.said = None

    def _step_neuron(self, neuron: Neuron, now: float) -> None:
        if not neuron.step(now):
            return
        if neuron.absent:
            self._neuron, self._fallback = None, "none"
            return
        self.inventory.update(neuron.entries, [])
        if neuron.rows:
            self._sections["g"] = self.inventory.spread(neuron.rows)
