"""GPUs from a Prometheus that scrapes NVIDIA's dcgm-exporter: for fleets that are too big to dial each node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cockpit.addresses import short_name
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.config import PrometheusSettings
from cockpit.formats.prometheus import (
    FIELDS,
    GPU_LABELS,
    KEY_LABELS,
    PREFIX,
    XID,
    Machine,
    Series,
    read_machines,
    xid_events,
)
from cockpit.gpu_models import Driver, DriverState, GpuEvent, GpuSample, NodeReading
from cockpit.models import Node
from cockpit.sources.gpu_events import WINDOW_S, NodeEvents
from cockpit.sources.gpu_history import SPAN_S, GpuHistory
from cockpit.sources.gpus import NodeWatch
from cockpit.sources.prometheus_client import PrometheusClient

SCRAPE_S = 60.0  # Prometheus' own default; the true one is what is seen of it
XID_STEP_S = 300.0
HISTORY_STEP_S = 15.0
_TIMED = ("GPU_TEMP", "GPU_UTIL", "FB_USED")  # any of these tells when a GPU was last scraped


@dataclass(frozen=True, slots=True)
class PrometheusReading:
    """Data of the source `prometheus`: nodes of Slurm by name; labels that are no node's, as they stand."""

    nodes: Mapping[str, NodeWatch] = field(default_factory=dict)
    strangers: tuple[str, ...] = ()


class PrometheusReads:
    """Reads the whole fleet at once. A node that is no longer told of keeps its last reading, and its age."""

    def __init__(
        self,
        settings: PrometheusSettings,
        nodes: Callable[[], Iterable[Node]],
        history: GpuHistory,
        *,
        client: PrometheusClient | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._settings, self._nodes, self._history, self._clock = settings, nodes, history, clock
        self._client = client or PrometheusClient(settings)
        self._lock = threading.Lock()
        self._watches: dict[str, NodeWatch] = {}
        self._codes: dict[str, dict[str, int]] = {}  # node -> the gauge of each GPU at the reading that was taken
        self._looked_back = False
        self._labels: dict[str, str] = {}  # node -> what its exporter calls it
        self._number = 0

    def read(self) -> PrometheusReading:
        """One look; raises FaultError, and then what was known stays as old as it is."""
        try:
            return self._look()
        finally:
            self._client.close()

    def _look(self) -> PrometheusReading:
        names = self._settings.node_labels
        times = self._client.query(" or ".join(self._of_gpus(f"timestamp({self._series((of,))})") for of in _TIMED))
        asked_at, now = self._clock.steady(), self._clock.now()
        if times and times[0].points:
            now = times[0].points[-1][0]  # Prometheus' own clock, which the times of scrapes are on
        # One question a field, and each answer taken in before the next: half a million series at once would keep the
        # garbage collector busy for longer than a key may wait.
        values = (
            series for of in FIELDS for series in self._client.query(self._of_gpus(self._series((of,)), KEY_LABELS))
        )
        machines = read_machines(values, times, names)
        past = {} if self._looked_back else self._look_back(now)
        named, strangers = match_nodes(machines, self._nodes())
        with self._lock:
            self._number += 1
            for node, machine in named.items():
                self._take(node, machine, now, asked_at, past.get(machine.label, ()))
            self._labels |= {node: machine.label for node, machine in named.items()}
            here = {node.name for node in self._nodes()}
            for name in self._watches.keys() - here:
                self._history.forget(name)
            self._watches = {name: watch for name, watch in self._watches.items() if name in here}
            self._labels = {name: label for name, label in self._labels.items() if name in here}
            self._codes = {node: codes for node, codes in self._codes.items() if node in named}
            self._looked_back = True
            return PrometheusReading(dict(self._watches), strangers)

    def _series(self, fields: Sequence[str], more: str = "") -> str:
        pattern = "|".join(fields)
        select = ",".join(word for word in (self._settings.select, more) if word)
        return f'{{__name__=~"{PREFIX}({pattern})"{"," if select else ""}{select}}}'

    def _of_gpus(self, inside: str, labels: Sequence[str] = GPU_LABELS) -> str:
        """Without the labels that nobody reads, which are most of the bytes; several Prometheus' copies fold."""
        return f"max by (__name__,{','.join((*self._settings.node_labels, *labels))}) ({inside})"

    def _look_back(self, now: float) -> dict[str, tuple[GpuEvent, ...]]:
        """Xids of the last hours, at the first look only: by the label of the node."""
        found: dict[str, list[Series]] = {}
        expression = self._of_gpus(self._series((XID,)))
        for series in self._client.query_range(expression, now - WINDOW_S, now, XID_STEP_S):
            label = next((series.labels[name] for name in self._settings.node_labels if series.labels.get(name)), "")
            found.setdefault(label, []).append(series)
        return {label: xid_events(told, now - WINDOW_S) for label, told in found.items()}

    def _take(self, node: str, machine: Machine, now: float, asked_at: float, past: Sequence[GpuEvent]) -> None:
        before = self._watches.get(node)
        if machine.taken_at is None or (before and before.reading and before.reading.taken_at >= machine.taken_at):
            return
        last = before.reading if before else None
        interval_s = SCRAPE_S if last is None else min(SCRAPE_S * 10, machine.taken_at - last.taken_at)
        reading = NodeReading(
            machine.taken_at,
            self._number,
            interval_s=interval_s,
            driver=Driver(DriverState.DCGM),
            gpus=_with_gone(machine.gpus, last.gpus if last else ()),
            events=(*past, *self._changes(node, machine)),
            not_read={"processes": "Prometheus does not tell them", "kernel log": "Prometheus does not tell it"},
        )
        events = (before.events if before else NodeEvents()).after(reading)
        seen_at = asked_at - max(0.0, now - machine.taken_at)
        self._watches[node] = NodeWatch(node, reading, seen_at, events=events)
        # Only with a reading that is taken: fields are asked for one by one, and a newer scrape may lie between.
        self._codes[node] = {xid.gpu: xid.code for xid in machine.xids}
        self._history.add(node, reading)

    def _changes(self, node: str, machine: Machine) -> Iterable[GpuEvent]:
        """Codes that were not there at the look before; the same code twice cannot be seen in a gauge."""
        known = self._codes.get(node)
        for xid in machine.xids if known is not None else ():
            if xid.code > 0 and known is not None and known.get(xid.gpu, 0) != xid.code:
                yield GpuEvent(machine.taken_at or 0.0, xid.gpu, "xid", xid.code)

    def history(self, node: str) -> None:
        """Fill in the last ten minutes of a node that somebody looks at; raises FaultError."""
        with self._lock:
            watch = self._watches.get(node)
        if watch is None or watch.reading is None:
            return
        end, names = watch.reading.taken_at, self._settings.node_labels
        label = self._labels.get(node, "")
        try:
            readings = self._past(end, names, label) if label else ()
        finally:
            self._client.close()
        if readings:
            self._history.forget(node)
            for reading in (*readings, watch.reading):
                self._history.add(node, reading)

    def _past(self, end: float, names: Sequence[str], label: str) -> Sequence[NodeReading]:
        fields = ("GPU_UTIL", "MEM_COPY_UTIL", "FB_USED", "GPU_TEMP", "POWER_USAGE")
        told: dict[float, list[Series]] = {}
        quoted = label.replace("\\", "\\\\").replace('"', '\\"')
        for name in names:  # the label stands in one of them
            expression = self._of_gpus(self._series(fields, f'{name}="{quoted}"'))
            for series in self._client.query_range(expression, end - SPAN_S, end, HISTORY_STEP_S):
                for point in series.points:
                    told.setdefault(point[0], []).append(Series(series.labels, (point,)))
            if told:
                break
        return [self._reading_at(at, told[at], names) for at in sorted(told) if at < end]

    @staticmethod
    def _reading_at(at: float, values: Sequence[Series], names: Sequence[str]) -> NodeReading:
        times = [replace(series, points=((at, at),)) for series in values]
        machines = read_machines(values, times, names)
        return NodeReading(at, 0, interval_s=HISTORY_STEP_S, gpus=machines[0].gpus if machines else ())


def _with_gone(gpus: Sequence[GpuSample], before: Sequence[GpuSample]) -> tuple[GpuSample, ...]:
    """GPUs that were there and are not told of any more keep their rows, with their last values and their age."""
    there = {sample.gpu.key for sample in gpus}
    kept = [*gpus, *(sample for sample in before if sample.gpu.key not in there)]
    order = [sample.gpu.key for sample in before]
    return tuple(sorted(kept, key=lambda sample: order.index(sample.gpu.key) if sample.gpu.key in order else 999))


def match_nodes(machines: Iterable[Machine], nodes: Iterable[Node]) -> tuple[dict[str, Machine], tuple[str, ...]]:
    """Which node of Slurm each machine is: by name, host name or address, with or without port and domain."""
    by_word: dict[str, str] = {}
    for node in nodes:
        for word in (node.address, node.hostname, node.name):  # the name wins
            if word:
                by_word[word.lower()] = node.name
                by_word.setdefault(short_name(word.lower()), node.name)
    named: dict[str, Machine] = {}
    strangers = []
    for machine in machines:
        found = next((by_word[word] for word in _spellings(machine.label) if word in by_word), None)
        if found is None:
            strangers.append(machine.label)
        else:
            named[found] = machine
    return named, tuple(sorted(strangers))


def _spellings(label: str) -> Iterable[str]:
    """`gpu-1.example:9400` as it stands, without its port, without its domain; `ip-10-0-1-2` as the address."""
    word = label.lower()
    host = word.rpartition(":")[0] if word.rpartition(":")[2].isdigit() else word
    short = short_name(host)
    numbers = short.removeprefix("ip-").split("-")
    address = [".".join(numbers)] if short.startswith("ip-") and len(numbers) == 4 else []
    return [word, host, short, *address]
