"""Reads the lines of a node's probe (protocol: cockpit/probe/__init__.py). The node may be hostile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cockpit.formats import probe_gpus as rows
from cockpit.formats.probe_node import efa_counters, efa_devices, messages, mounts, reasons, stuck
from cockpit.formats.probe_slots import HIDDEN, MAX_GPUS, bus_only, merge, unlisted
from cockpit.formats.probe_smi import SmiReading, read_smi
from cockpit.formats.probe_values import at, items, number, nvml_missing, parse_line, text, wall_time, whole
from cockpit.gpu_models import (
    Driver,
    DriverState,
    EfaDevice,
    Gpu,
    GpuEvent,
    GpuProcess,
    GpuSample,
    Lack,
    Missing,
    NodeReading,
)
from cockpit.text import printable

PROTOCOL = 1
_EVENT_KINDS = {0x8: "xid", 0x4000: "gpu unavailable", 0x8000: "recovery action"}
_MAX_EVENTS = 200
_NOT_LISTED = 28
_STATES = {
    "starting": DriverState.STARTING,
    "silent": DriverState.SILENT,
    "slow": DriverState.SLOW,
    "hung": DriverState.HUNG,
    "crashed": DriverState.CRASHED,
    "none": DriverState.FAILED,
    "smi": DriverState.SMI,
    "neuron": DriverState.NEURON,
}
_NO_LIBRARY = 12


class ProbeReader:
    """One stream's lines, in order. Keeps what was told once and returns the whole node at every sample.

    `last` is what a stream before it told of the node: while the node stays booted, its GPUs keep their places.
    `now` is this machine's wall clock; times more than a year away from it are taken for none.
    """

    def __init__(self, last: NodeReading | None = None, now: Callable[[], float] = time.time) -> None:
        self._last, self._clock, self._now = last, now, 0.0
        self.bad_lines = 0
        self.ended = ""  # the probe's own last word
        self._bad_line = ""
        self._node = NodeReading(taken_at=0.0, number=0)
        self._hello: dict[str, Any] = {}
        self._revision: object = None
        self._samples: list[GpuSample] = []
        self._places: list[int | None] = []  # place in the hello -> place in _samples
        self._efa: list[EfaDevice] = []
        self._smi: Driver | None = None  # what nvidia-smi last said of the driver

    def feed(self, line: bytes) -> NodeReading | None:
        """The node after this line; None after a hello, a bye, or a line that cannot be read (which is counted)."""
        try:
            told = parse_line(line)
        except ValueError as error:
            self._bad(str(error))
            return None
        self._now = self._clock()
        kind = told.get("k")
        if kind == "s":
            return self._sample(told)
        if kind == "h":
            self._greet(told)
        elif kind == "b":
            self.ended = text(told.get("why")) or "no reason given"
        else:
            self._bad("a line of an unknown kind")
        return None

    def _bad(self, why: str) -> None:
        self.bad_lines += 1
        self._bad_line = printable(why[:200])

    def _greet(self, told: dict[str, Any]) -> None:
        if told.get("v") != PROTOCOL:
            self._bad("another version of the protocol")
            return
        self._hello = told
        self._revision = told.get("rev")
        self._take_last(text(told.get("boot"), 40))
        bus = tuple(text(bus, 20) for bus in items(told.get("pci"), 64))
        hidden = tuple(minor for minor in map(whole, items(told.get("hid"), MAX_GPUS)) if minor is not None)
        if listed := rows.gpus(told.get("gpus")):
            self._samples, self._places = merge(self._samples, listed, bus, hidden)
        self._efa = efa_devices(told.get("efa"), self._efa)
        self._node = replace(
            self._node,
            hostname=text(told.get("host"), 80),
            boot_id=text(told.get("boot"), 40),
            booted_at=wall_time(told.get("booted"), self._now),
            kernel=text(told.get("kernel"), 80),
            cpus=whole(told.get("cpus")),
            interval_s=number(told.get("iv")),
            pci_gpus=bus,
            hidden_gpus=hidden,
            log_source=text(told.get("log"), 20),
            not_read=reasons(told.get("no")),
        )

    def _take_last(self, boot_id: str) -> None:
        """Begin with the GPUs of the stream before this one; after a reboot they are found anew."""
        last, self._last = self._last, None
        if last is not None and boot_id and last.boot_id == boot_id:
            self._samples = list(last.gpus)

    def _listed(self) -> list[Gpu | None]:
        """The GPUs of the hello, in its order."""
        return [None if place is None else self._samples[place].gpu for place in self._places]

    def _sample(self, told: dict[str, Any]) -> NodeReading | None:
        taken_at, count = wall_time(told.get("t"), self._now), whole(told.get("n"))
        if taken_at is None or count is None or not self._hello:
            why = "without number, or without a time within a year of ours" if self._hello else "before any hello"
            self._bad(f"a sample {why}")
            return None
        # Rows refer to the hello of the same revision by place.
        current = told.get("rev") == self._revision
        if current:
            self._take_rows(told, taken_at)
        self._take_smi(told, taken_at)
        self._node = self._updated(told, taken_at, count, self._driver(told), current)
        return self._node

    def _updated(self, told: dict[str, Any], taken_at: float, count: int, driver: Driver, current: bool) -> NodeReading:
        before = self._node
        memory = items(told.get("m"), 2)
        dropped = whole(told.get("kd"))
        fresh_efa = "e" in told
        if fresh_efa:
            self._efa = efa_counters(self._efa, told["e"])
        return replace(
            before,
            taken_at=taken_at,
            number=count,
            load=tuple(load for load in map(number, items(told.get("l"), 3)) if load is not None),
            mem_total_mib=number(at(memory, 0)),
            mem_available_mib=number(at(memory, 1)),
            stuck_count=whole(told.get("d")),
            stuck=self._stuck(told),
            driver=driver,
            gpus=tuple(self._samples),
            processes=self._processes(told) if current and "p" in told else before.processes,
            processes_at=taken_at if "G" in told or "p" in told else before.processes_at,
            mounts=mounts(told["mt"], self._now) if "mt" in told else before.mounts,
            efa=tuple(self._efa) if fresh_efa else before.efa,
            efa_at=taken_at if fresh_efa and self._efa else before.efa_at,
            events=self._events(told) if current else (),
            messages=messages(told.get("km"), before.boot_id, self._now),
            messages_dropped=before.messages_dropped if dropped is None else dropped,
            bad_lines=self.bad_lines,
            bad_line=self._bad_line,
        )

    def _processes(self, told: dict[str, Any]) -> tuple[GpuProcess, ...]:
        return rows.processes(told["p"], self._listed(), self._now)

    def _stuck(self, told: dict[str, Any]) -> Any:
        if "D" in told:
            return stuck(told["D"])
        return self._node.stuck if told.get("d") else ()

    def _driver(self, told: dict[str, Any]) -> Driver:
        versions = self._hello.get("drv")
        versions = versions if isinstance(versions, dict) else {}
        latency = number(told.get("q"))
        base = Driver(
            DriverState.OK,
            version=text(versions.get("driver"), 40),
            nvml=text(versions.get("nvml"), 40),
            cuda=_cuda(versions.get("cuda")),
            answer_ms=self._node.driver.answer_ms if latency is None else latency,
        )
        if "dr" not in told:
            return base
        state, since, why, code = (at(items(told["dr"], 4), place) for place in range(4))
        found = _STATES.get(state, DriverState.UNKNOWN) if isinstance(state, str) else DriverState.UNKNOWN
        if found is DriverState.FAILED and code == _NO_LIBRARY:
            found = DriverState.ABSENT
        if found is DriverState.SMI and self._smi is not None:
            return self._smi
        return replace(base, state=found, since=wall_time(since, self._now), why=text(why), code=whole(code))

    def _take_rows(self, told: dict[str, Any], taken_at: float) -> None:
        for key, take in (("g", rows.with_fast), ("G", rows.with_slow)):
            for place, row in zip(self._places, items(told.get(key), len(self._places)), strict=False):
                if place is not None:
                    self._samples[place] = take(self._samples[place], items(row, 16), taken_at)
        if "i" in told:
            entries = items(self._hello.get("gpus"), MAX_GPUS)
            for row_number, used in enumerate(items(told["i"], len(self._places))):
                entry, place = at(entries, row_number), self._places[row_number]
                if place is None:
                    continue
                named = entry.get("inst") if isinstance(entry, dict) else None
                self._samples[place] = replace(self._samples[place], instances=rows.instances(named, used))

    def _take_smi(self, told: dict[str, Any], taken_at: float) -> None:
        answer = told.get("c")
        if not isinstance(answer, dict):
            return
        fields = [text(name, 80) for name in items(answer.get("f"), 64)]
        out = answer.get("out")
        code = whole(answer.get("rc"))
        reading = read_smi(fields, 255 if code is None else code, out if isinstance(out, str) else "")
        self._smi = reading.driver
        self._merge_smi(reading, taken_at)

    def _merge_smi(self, reading: SmiReading, taken_at: float) -> None:
        """Rows by UUID or bus id; a GPU that is no longer listed keeps its row, with the reason."""
        samples = list(self._samples)
        listed: set[int] = set()
        for gpu, fast, slow in zip(rows.gpus(reading.entries), reading.fast, reading.slow, strict=False):
            place = _place(samples, gpu)
            if place == len(samples):
                samples.append(GpuSample(gpu))
            listed.add(place)
            sample = rows.with_fast(replace(samples[place], gpu=gpu), fast, taken_at)
            samples[place] = rows.with_slow(sample, slow, taken_at)
        for pci in reading.lost:
            if not any(sample.gpu.pci == pci for sample in samples):
                samples.append(GpuSample(Gpu(key=pci, pci=pci)))
        buses = set(self._node.pci_gpus) - {samples[place].gpu.pci for place in listed}
        missing = unlisted(buses, self._node.hidden_gpus)
        for place, sample in enumerate(samples):
            if sample.gpu.pci in reading.lost:
                samples[place] = replace(sample, lost=Missing(Lack.LOST, "nvidia-smi gets no handle of it", 15))
            elif place not in listed and reading.complete:
                samples[place] = replace(sample, lost=missing if missing == HIDDEN else nvml_missing(_NOT_LISTED))
        if reading.complete:
            samples += bus_only(samples, self._node.pci_gpus, missing)
        self._samples = samples[:MAX_GPUS]

    def _events(self, told: dict[str, Any]) -> tuple[GpuEvent, ...]:
        found, listed = [], self._listed()
        for event in items(told.get("x"), _MAX_EVENTS):
            when, place, kind, data = (at(items(event, 4), cell) for cell in range(4))
            moment, value, row = wall_time(when, self._now), whole(data), whole(place)
            if moment is None or value is None:
                continue
            gpu = listed[row] if row is not None and 0 <= row < len(listed) else None
            name = _EVENT_KINDS.get(kind, f"event {kind}") if type(kind) is int else "event"
            found.append(GpuEvent(moment, gpu.key if gpu else "", name, value))
        return tuple(found)


def _place(samples: list[GpuSample], gpu: Gpu) -> int:
    """Where this GPU stands, by key and else by its place on the bus; len(samples) when it is new."""
    for place, sample in enumerate(samples):
        if sample.gpu.key == gpu.key:
            return place
    keyless = [place for place, sample in enumerate(samples) if gpu.pci and sample.gpu.key == gpu.pci]
    return keyless[0] if keyless else len(samples)


def _cuda(raw: object) -> str:
    version = whole(raw)
    return f"{version // 1000}.{version % 1000 // 10}" if version is not None and 0 < version < 10**6 else ""
