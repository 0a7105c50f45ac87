"""What is known of one cluster right now: per source the last good answer, the last error, and their ages.

Sources write from their threads, screens read from theirs; every value handed out is frozen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.models import Fault, Freshness, Snapshot
from cockpit.sources.base import Beat, SourceKey

T = TypeVar("T")

LIVE_INTERVALS = 2
LOST_INTERVALS = 12
LOST_AFTER_S = 60.0
MOST_TROUBLES = 200


@dataclass(frozen=True, slots=True)
class SourceState(Generic[T]):
    """One source: `good` is its last snapshot with data, `error` the fault of the last poll if it failed."""

    name: str
    interval_s: float
    good: Snapshot[T] | None = None
    good_at: float = 0.0  # steady clock
    error: Fault | None = None
    failing_since: float | None = None  # wall clock
    next_at: float | None = None  # steady clock
    note: str = ""

    @property
    def data(self) -> T | None:
        """The last good data, however old; None when there never was any."""
        return self.good.data if self.good else None

    def age_s(self, steady: float) -> float | None:
        """Seconds since the last good answer; None when there was none."""
        return max(0.0, steady - self.good_at) if self.good else None

    def freshness(self, steady: float) -> Freshness:
        """How far the data may be trusted, by its age in polling intervals."""
        age_s = self.age_s(steady)
        if age_s is None or self.good is None:
            return Freshness.NEVER
        if age_s <= LIVE_INTERVALS * self.interval_s + self.good.took_s:
            return Freshness.LIVE
        return Freshness.LOST if age_s > max(LOST_AFTER_S, LOST_INTERVALS * self.interval_s) else Freshness.STALE


@dataclass(frozen=True, slots=True)
class Trouble:
    """One fault of a source, from the first poll that met it to the last; times are on the wall clock."""

    number: int  # in the order in which they were met
    source: str
    fault: Fault
    since: float
    last_at: float
    polls: int = 1
    over_at: float | None = None  # when the source answered again, or failed in another way


class Store:
    """Holds a SourceState per source and tells listeners which one changed."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self._states: dict[str, SourceState[Any]] = {}
        self._lock = threading.Lock()
        self._listeners: list[Callable[[str], None]] = []
        self._troubles: deque[Trouble] = deque(maxlen=MOST_TROUBLES)
        self._met = 0

    def declare(self, key: SourceKey[Any], interval_s: float) -> None:
        """Make a source known before its first answer, so that it is shown as `never` and not left out."""
        with self._lock:
            self._states.setdefault(key.name, SourceState(key.name, interval_s))

    def put(self, name: str, beat: Beat) -> bool:
        """Take the outcome of one poll; the last good data outlive any number of errors.

        True when this ends a failure of the source.
        """
        with self._lock:
            before = self._states.get(name)
            after = self._states[name] = _after(before, name, beat, self.clock)
            self._note(name, beat)
        for listener in tuple(self._listeners):
            listener(name)
        return before is not None and before.error is not None and after.error is None

    def state(self, key: SourceKey[T]) -> SourceState[T]:
        """The state of a source; `never` when it was not declared."""
        found = self._states.get(key.name)
        return cast("SourceState[T]", found) if found else SourceState(key.name, 0.0)

    def states(self) -> tuple[SourceState[Any], ...]:
        """Every source in the order of declaration."""
        with self._lock:
            return tuple(self._states.values())

    def troubles(self) -> tuple[Trouble, ...]:
        """What the sources have met since the start, oldest first; the oldest of many are forgotten."""
        with self._lock:
            return tuple(self._troubles)

    def _note(self, name: str, beat: Beat) -> None:
        at, fault = beat.snapshot.taken_at, beat.snapshot.error
        for place, last in enumerate(self._troubles):
            if last.source == name and last.over_at is None:
                if fault is not None and (fault.what, fault.why) == (last.fault.what, last.fault.why):
                    self._troubles[place] = replace(last, last_at=at, polls=last.polls + 1)
                    return
                self._troubles[place] = replace(last, over_at=at)
        if fault is not None:
            self._met += 1
            self._troubles.append(Trouble(self._met, name, fault, at, at))

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call listener(name) on the writing thread after each change; returns the way to stop that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


def _after(old: SourceState[Any] | None, name: str, beat: Beat, clock: Clock) -> SourceState[Any]:
    state = old or SourceState(name, beat.interval_s)
    snapshot = beat.snapshot
    if snapshot.error is not None:
        since = state.failing_since if state.error else snapshot.taken_at
        return replace(state, error=snapshot.error, failing_since=since, next_at=beat.next_at, note=beat.note)
    return SourceState(name, beat.interval_s, snapshot, clock.steady(), None, None, beat.next_at, beat.note)
