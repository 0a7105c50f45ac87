"""How much each node sends and receives over EFA now: the last two readings of its cards' byte counters, subtracted."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cockpit.gpu_models import EfaDevice, NodeReading

_Bytes = Mapping[str, tuple[int, int]]  # device -> bytes sent and received since its reset


@dataclass(frozen=True, slots=True)
class EfaTraffic:
    """What moved on a node in the `seconds` before `at` (the node's clock), payload alone, over all its devices.

    `quiet_since` is since when nothing has moved, as far as that was watched; None while something does.
    """

    node: str
    at: float
    seconds: float
    devices: int
    moving: int  # devices that sent or received anything
    sent_b_s: float
    received_b_s: float
    quiet_since: float | None = None


class EfaTraffics:
    """The traffic of every node that is watched. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, _Bytes]] = {}
        self._traffic: dict[str, EfaTraffic] = {}

    def add(self, node: str, reading: NodeReading) -> None:
        """Take what a probe told; most of its lines bring no counters."""
        last = self._last.get(node)
        if reading.efa_at is None or not reading.efa or (last is not None and last[0] == reading.efa_at):
            return
        now = _bytes(reading.efa)
        with self._lock:
            self._last[node] = (reading.efa_at, now)
            found = _between(node, last, reading.efa_at, now, self._traffic.get(node))
            if found is None:  # a card was reset, came or went: nothing is known of the time between
                self._traffic.pop(node, None)
            else:
                self._traffic[node] = found

    def of(self, node: str) -> EfaTraffic | None:
        """What moved lately; None while fewer than two readings are known, and without EFA."""
        return self._traffic.get(node)

    def forget(self, node: str) -> None:
        """The node is no longer watched."""
        with self._lock:
            self._last.pop(node, None)
            self._traffic.pop(node, None)


def _bytes(devices: Iterable[EfaDevice]) -> _Bytes:
    pairs = ((device.name, device.counters.get("tx_bytes"), device.counters.get("rx_bytes")) for device in devices)
    return {name: (sent, received) for name, sent, received in pairs if sent is not None and received is not None}


def _between(
    node: str, last: tuple[float, _Bytes] | None, at: float, now: _Bytes, before: EfaTraffic | None
) -> EfaTraffic | None:
    if last is None or not now or last[1].keys() != now.keys() or at <= last[0]:
        return None
    moved = [(now[name][0] - sent, now[name][1] - received) for name, (sent, received) in last[1].items()]
    if any(sent < 0 or received < 0 for sent, received in moved):
        return None
    moving, seconds = sum(1 for each in moved if any(each)), at - last[0]
    quiet_since = None if moving else before.quiet_since if before and before.quiet_since else last[0]
    sent_b_s, received_b_s = (sum(column) / seconds for column in zip(*moved, strict=True))
    return EfaTraffic(node, at, seconds, len(now), moving, sent_b_s, received_b_s, quiet_since)
