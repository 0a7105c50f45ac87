"""The thread that polls one source: never two polls at once, never silent, polite by itself."""

from __future__ import annotations

import random
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.models import Fault, FaultError, FaultKind, Snapshot
from cockpit.text import printable

T = TypeVar("T")

POLITE_FACTOR = 10  # a poll may fill at most a tenth of the time
IDLE_AFTER_S = 30 * 60.0
IDLE_FACTOR = 10.0
RETRY_MAX_S = 60.0
POKE_GAP_S = 1.0  # a key held down polls no more often than this


@dataclass(frozen=True, slots=True)
class SourceKey(Generic[T]):
    """Name and type of one source's data; `store.state(KEY)` gives it back with that type."""

    name: str


@dataclass(frozen=True, slots=True)
class Beat:
    """What goes to the store after a poll: the snapshot, and when the next one is due (steady clock)."""

    snapshot: Snapshot[object]
    interval_s: float
    next_at: float
    note: str = ""


class Sink(Protocol):
    """Takes the beats of a source; called on the source's thread."""

    def __call__(self, name: str, beat: Beat) -> None: ...


class Pace:
    """Shared by the sources of one cluster: paused or not, and slowed down while nobody is there."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._last_key_at = clock.steady()
        self.paused = False

    def touch(self) -> bool:
        """Note that a person is there; True when that ends the slow pace."""
        was_idle = self.factor() > 1
        self._last_key_at = self._clock.steady()
        return was_idle

    def factor(self) -> float:
        """By how much every interval is stretched just now."""
        return IDLE_FACTOR if self._clock.steady() - self._last_key_at >= IDLE_AFTER_S else 1.0


def next_wait(interval_s: float, took_s: float, failures: int, jitter: float = 0.0) -> float:
    """Seconds until the next poll begins.

    Never under ten times what a good one took. After failures, which mostly take long because nobody answers,
    it is never under what the last one took, doubles up to a minute or the interval, and never ends. `jitter`
    in 0..1 adds up to a fifth after failures.
    """
    if not failures:
        return max(interval_s, POLITE_FACTOR * took_s)
    wait = max(interval_s * float(2 ** min(failures - 1, 10)), took_s)
    return min(wait, max(RETRY_MAX_S, interval_s)) * (1 + jitter / 5)


class Poller(Generic[T]):
    """Runs `read` again and again on its own daemon thread and hands every outcome to `sink`."""

    def __init__(
        self,
        key: SourceKey[T],
        read: Callable[[], T],
        sink: Sink,
        *,
        interval_s: float,
        pace: Pace,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.key = key
        self._read, self._sink, self._interval_s = read, sink, interval_s
        self._pace, self._clock = pace, clock
        self._wake, self._stop = threading.Event(), threading.Event()
        self._failures = 0
        self._took_s = 0.0
        self._thread = threading.Thread(target=self._loop, name=f"source-{key.name}", daemon=True)

    def start(self) -> None:
        """Begin polling, unless it polls already; the first poll starts at once."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it is not waited for, since it may hang in a read."""
        self._stop.set()
        self._wake.set()

    def poke(self) -> None:
        """Poll now, or right after the poll in flight."""
        self._wake.set()

    def poll_once(self) -> Beat:
        """One poll on the caller's thread; the outcome also goes to the sink."""
        beat = self._poll()
        try:
            self._sink(self.key.name, beat)
        except Exception as error:  # whoever listens: its fault is told, and the source lives on
            fault = unexpected(f"showing {self.key.name}", error)
            beat = replace(beat, snapshot=replace(beat.snapshot, data=None, error=fault))
            with suppress(Exception):
                self._sink(self.key.name, beat)
        return beat

    def _poll(self) -> Beat:
        began = self._clock.steady()
        data: T | None = None
        fault: Fault | None = None
        try:
            data = self._read()
        except FaultError as error:
            fault = error.fault
        except Exception as error:  # a source must never die: what it could not read is its answer
            fault = unexpected(f"reading {self.key.name}", error)
        took_s = self._clock.steady() - began
        self._failures = self._failures + 1 if fault else 0
        snapshot = Snapshot(self._clock.now(), took_s, data, fault)
        factor = self._pace.factor()
        # One slow answer among quick ones, as after a freeze, is no reason to ask less often.
        usual_s = min(took_s, self._took_s or took_s)
        if fault is None:  # how long nobody answered says nothing of how long an answer takes
            self._took_s = took_s
        wait_s = next_wait(self._interval_s * factor, usual_s, self._failures, random.random())  # noqa: S311
        return Beat(
            snapshot,
            wait_s,
            self._clock.steady() + wait_s,
            _pace_note(factor, wait_s, self._interval_s, fault),
        )

    def _loop(self) -> None:
        while not self._stop.is_set():
            next_at = self.poll_once().next_at
            self._stop.wait(min(POKE_GAP_S, self._interval_s))
            self._wait_until(next_at)

    def _wait_until(self, next_at: float) -> None:
        while not self._stop.is_set():
            left_s = next_at - self._clock.steady()
            # Short naps when paused or late, so that the end of a pause is noticed.
            if self._wake.wait(left_s if left_s > 0 else 0.2):
                self._wake.clear()
                return
            if not self._pace.paused and self._clock.steady() >= next_at:
                return


def _pace_note(factor: float, wait_s: float, interval_s: float, fault: Fault | None) -> str:
    if fault is not None:
        return ""
    if factor > 1:
        return "slow pace: no key for 30 min"
    return f"every {wait_s:.0f}s: the controller is slow" if wait_s > 1.5 * interval_s else ""


def unexpected(what: str, error: Exception) -> Fault:
    """The fault behind an exception nobody foresaw, with the place where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    why = printable(f"{type(error).__name__}: {error} (at {place.filename.rsplit('/', 1)[-1]}:{place.lineno})")
    return Fault(FaultKind.GARBLED, what, why, "this is a defect of the cockpit; please report it")
