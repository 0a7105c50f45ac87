"""Ten minutes of every GPU's past, in a few bytes a sample."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from cockpit.gpu_models import GpuSample, NodeReading, known

METRICS = ("util_pct", "mem_util_pct", "mem_used_mib", "temp_c", "power_w")
SPAN_S = 600.0
STEP_S = 4.0  # finer samples fold into one; 150 of them are what a graph can show
GAP_STEPS = 3.0  # usual steps without a sample that make a gap
_NONE = float("nan")


@dataclass(slots=True)
class _Ring:
    """Values of one GPU in time order, `METRICS` side by side; NaN where nothing was read."""

    times: list[float] = field(default_factory=list)
    values: tuple[array[float], ...] = field(default_factory=lambda: tuple(array("f") for _ in METRICS))

    def add(self, at: float, values: Sequence[float]) -> None:
        self.times.append(at)
        for column, value in zip(self.values, values, strict=True):
            column.append(value)

    def drop(self, count: int) -> None:
        """Let go of the oldest."""
        if count:
            del self.times[:count]
            for column in self.values:
                del column[:count]


class GpuHistory:
    """Written by the stream threads, read by screens and problems."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, _Ring]] = {}
        self._lock = threading.Lock()

    def add(self, node: str, reading: NodeReading) -> None:
        """Keep this reading of every GPU, unless the last kept one is younger than STEP_S.

        What is known of a GPU that the reading no longer lists is dropped, unless it lists none at all.
        """
        step_s = max(STEP_S, reading.interval_s or 0.0)
        with self._lock:
            rings = self._nodes.setdefault(node, {})
            listed = {sample.gpu.key for sample in reading.gpus}
            if listed and not rings.keys() <= listed:
                rings = self._nodes[node] = {key: ring for key, ring in rings.items() if key in listed}
            for sample in reading.gpus:
                if sample.taken_at is not None and sample.lost is None:
                    _keep(rings.setdefault(sample.gpu.key, _Ring()), sample, sample.taken_at, step_s)

    def series(self, node: str, gpu: str, metric: str) -> Sequence[tuple[float, float | None]]:
        """(time on the node's clock, value or None) of one metric of METRICS, oldest first.

        It spans at most SPAN_S before its last time. A gap of more than GAP_STEPS usual steps holds None.
        """
        with self._lock:
            ring = self._nodes.get(node, {}).get(gpu)
            if ring is None:
                return ()
            values = ring.values[METRICS.index(metric)]
            return tuple((at, None if v != v else v) for at, v in zip(ring.times, values, strict=True))

    def forget(self, node: str) -> None:
        """Drop what is kept of a node."""
        with self._lock:
            self._nodes.pop(node, None)


def _keep(ring: _Ring, sample: GpuSample, at: float, step_s: float) -> None:
    since_s = at - ring.times[-1] if ring.times else None
    if since_s is not None and 0 <= since_s < STEP_S:
        return
    if since_s is not None and since_s < 0:  # the node's clock went back: what is known has no place any more
        ring.drop(len(ring.times))
    elif since_s is not None and since_s > GAP_STEPS * step_s:
        missed = max(ring.times[-1], at - SPAN_S) + step_s
        while missed < at:
            ring.add(missed, [_NONE] * len(METRICS))
            missed += step_s
    values = (known(getattr(sample, metric)) for metric in METRICS)
    ring.add(at, [_NONE if value is None else value for value in values])
    ring.drop(next(place for place, moment in enumerate(ring.times) if moment >= at - SPAN_S))
