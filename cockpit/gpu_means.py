"""Means of GPU readings over the last seconds or minutes, for the rules over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.fleet import GpuRow
from cockpit.gpu_models import NodeReading
from cockpit.sources.gpu_history import GpuHistory

GAP_S = 15.0
LEAST_SAMPLES = 4

_Wanted = tuple[str, str, float, float | None]


def mean(
    series: Sequence[tuple[float, float | None]], until: float, span_s: float, since: float | None, gap_s: float
) -> float | None:
    """Mean of what was read in the `span_s` seconds before `until`.

    None when that time began before `since`, or when nothing was read for longer than `gap_s` anywhere in it:
    what nobody has seen is neither idle nor busy.
    """
    begin = until - span_s
    if since is not None and since > begin:
        return None
    earliest, total, count = until, 0.0, 0
    for at, value in reversed(series):  # one plain loop: it runs for every GPU of the fleet
        if at < begin:
            break
        if value is None or at > until:
            continue
        if earliest - at > gap_s:
            return None
        earliest, total, count = at, total + value, count + 1
    return total / count if count >= LEAST_SAMPLES and earliest - begin <= gap_s else None


class Means:
    """Means of single GPUs, each worked out once for the same reading of its node."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[NodeReading, dict[_Wanted, float | None]]] = {}

    def of(self, history: GpuHistory, row: GpuRow, metric: str, span_s: float) -> float | None:
        """Mean of a metric over the last seconds of the row's job; None when too little of it was seen."""
        reading = row.watch.reading if row.watch else None
        if reading is None or row.sample is None:
            return None
        kept = self._kept.get(row.node)
        if kept is None or kept[0] is not reading:
            kept = self._kept[row.node] = (reading, {})
        since = row.job.started_at if row.job else None
        wanted = (row.sample.gpu.key, metric, span_s, since)
        if wanted not in kept[1]:
            # The slower the probe is told to be, the longer are the gaps that mean nothing.
            gap_s = max(GAP_S, 2.5 * (reading.interval_s or 0.0))
            series = history.series(row.node, row.sample.gpu.key, metric)
            kept[1][wanted] = mean(series, reading.taken_at, span_s, since, gap_s)
        return kept[1][wanted]

    def keep(self, nodes: Iterable[str]) -> None:
        """Forget all other nodes."""
        names = set(nodes)
        self._kept = {name: kept for name, kept in self._kept.items() if name in names}
