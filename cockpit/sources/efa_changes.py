"""When EFA's error counters grew on each node: they count since the card's reset, so only differences say anything."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cockpit.formats.efa_counters import DROPS, ERRORS, REMOTE, TIMEOUTS
from cockpit.gpu_models import EfaDevice, NodeReading

WATCHED = (*REMOTE, *ERRORS, TIMEOUTS, DROPS)
_MOST = 64  # changes kept of a node


@dataclass(frozen=True, slots=True)
class EfaGrowth:
    """What grew on a node since `since` (the node's clock), over all its devices; the sum of each counter."""

    node: str
    since: float
    grown: Mapping[str, int] = field(default_factory=dict)


class EfaChanges:
    """The sums of each node at the moments when one of them was another than before. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[str, list[tuple[float, Counter[str]]]] = {}
        self._read_at: dict[str, float] = {}

    def add(self, node: str, reading: NodeReading) -> None:
        """Take what a probe told; most of its lines bring no counters."""
        if reading.efa_at is None or not reading.efa or self._read_at.get(node) == reading.efa_at:
            return
        sums = _sums(reading.efa)
        with self._lock:
            self._read_at[node] = reading.efa_at
            told = self._nodes.setdefault(node, [])
            if told and any(sums[name] < value for name, value in told[-1][1].items()):
                told.clear()  # a card was reset, or is gone
            if not told or told[-1][1] != sums:
                told.append((reading.efa_at, sums))
                if len(told) > _MOST:
                    del told[1]  # the first one is what all others are measured against

    def since(self, node: str, at: float) -> EfaGrowth | None:
        """What grew since then, or since it was first seen when that was later; None when nothing was seen."""
        with self._lock:
            told = list(self._nodes.get(node, ()))
        if not told:
            return None
        first_at, first = max((each for each in told if each[0] <= at), key=lambda each: each[0], default=told[0])
        last = told[-1][1]
        grown = {name: last[name] - first[name] for name in WATCHED if last[name] > first[name]}
        return EfaGrowth(node, max(at, first_at), grown)

    def forget(self, node: str) -> None:
        """The node is no longer watched."""
        with self._lock:
            self._nodes.pop(node, None)
            self._read_at.pop(node, None)


def _sums(devices: Iterable[EfaDevice]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for device in devices:
        for name in WATCHED:
            value = device.counters.get(name)
            if value is not None:
                sums[name] += value
    return sums
