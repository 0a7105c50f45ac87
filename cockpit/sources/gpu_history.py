"""Ten minutes of every GPU's past, in a few bytes a sample."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from cockpit.gpu_models import GpuSample, NodeReading, known

METRICS = ("util_pct", "mem_used_mib", "temp_c", "power_w")
SPAN_S = 600.0
STEP_S = 4.0  # finer samples fold into one; 150 of them are what a graph can show
_LENGTH = int(SPAN_S / STEP_S)
_NONE = float("nan")


@dataclass(slots=True)
class _Ring:
    """Values of one GPU in time order, `METRICS` side by side; NaN where nothing was read."""

    times: list[float] = field(default_factory=list)
    values: tuple[array[float], ...] = field(default_factory=lambda: tuple(array("f") for _ in METRICS))


class GpuHistory:
    """Written by the stream threads, read by screens and problems."""

    def __init__(self) -> None:
        self._rings: dict[tuple[str, str], _Ring] = {}
        self._lock = threading.Lock()

    def add(self, node: str, reading: NodeReading) -> None:
        """Keep this reading of every GPU, unless the last kept one is younger than STEP_S."""
        with self._lock:
            for sample in reading.gpus:
                if sample.taken_at is not None and sample.lost is None:
                    self._keep(self._rings.setdefault((node, sample.gpu.key), _Ring()), sample, sample.taken_at)

    def _keep(self, ring: _Ring, sample: GpuSample, at: float) -> None:
        if ring.times and 0 <= at - ring.times[-1] < STEP_S:
            return
        if ring.times and at < ring.times[-1]:  # the node's clock went back: what is known has no place any more
            ring.times.clear()
            for values in ring.values:
                del values[:]
        ring.times.append(at)
        for values, metric in zip(ring.values, METRICS, strict=True):
            value = known(getattr(sample, metric))
            values.append(_NONE if value is None else value)
        if len(ring.times) > _LENGTH:
            del ring.times[0]
            for values in ring.values:
                del values[0]

    def series(self, node: str, gpu: str, metric: str) -> Sequence[tuple[float, float | None]]:
        """(time on the node's clock, value or None) of one metric of METRICS, oldest first."""
        with self._lock:
            ring = self._rings.get((node, gpu))
            if ring is None:
                return ()
            values = ring.values[METRICS.index(metric)]
            return tuple((at, None if v != v else v) for at, v in zip(ring.times, values, strict=True))

    def forget(self, node: str) -> None:
        """Drop what is kept of a node."""
        with self._lock:
            for key in [key for key in self._rings if key[0] == node]:
                del self._rings[key]
