"""Who of many nodes is connected next: who is on the screen first, who hangs last, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# sshd drops logins at random once 10 are under way (MaxStartups 10:30:100).
SETUPS_AT_ONCE = 8
SLOW_AFTER_S = 2.0  # a setup that takes longer gives its place to the next, since it most likely hangs
SLOW_AT_ONCE = 56
PATIENCE_S = 20.0  # whoever has waited for so long goes before all others
_LOOK_S = 0.5


@dataclass(eq=False)
class _Turn:
    name: str
    asked_at: float
    number: int
    go: threading.Event
    began_at: float = 0.0


class Turns:
    """Places for connections that are being made. `ready` tells whether what all of them lead through is there.

    While it is not, one of them goes at a time, and finds out when it is back.
    """

    def __init__(self, ready: Callable[[], bool] = lambda: True) -> None:
        self._ready = ready
        self._lock = threading.Lock()
        self._waiting: list[_Turn] = []
        self._running: list[_Turn] = []
        self._preferred: frozenset[str] = frozenset()
        self._slow: set[str] = set()  # those whose last setup took long and came to nothing
        self._count = 0

    def prefer(self, names: frozenset[str]) -> None:
        """Whom somebody looks at just now."""
        with self._lock:
            self._preferred = names

    def forget(self, name: str) -> None:
        """It may come back as another machine."""
        with self._lock:
            self._slow.discard(name)

    @contextmanager
    def taken(self, name: str, waits: Callable[[], bool]) -> Iterator[bool]:
        """One's turn, once it has come; `waits` is asked meanwhile, and False from it ends the waiting: no turn."""
        with self._lock:
            self._count += 1
            turn = _Turn(name, time.monotonic(), self._count, threading.Event())
            self._waiting.append(turn)
            self._let_go_on()
        connected = False
        try:
            yield self._wait(turn, waits)
            connected = True
        finally:
            self._done(turn, connected)

    def _wait(self, turn: _Turn, waits: Callable[[], bool]) -> bool:
        while not turn.go.wait(_LOOK_S):
            if not waits():
                return False
            with self._lock:
                self._let_go_on()  # setups become slow, and the way free, without a word
        return True

    def _done(self, turn: _Turn, connected: bool) -> None:
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
            if turn in self._running:
                self._running.remove(turn)
                hangs = not connected and time.monotonic() - turn.began_at >= SLOW_AFTER_S
                (self._slow.add if hangs else self._slow.discard)(turn.name)
            self._let_go_on()

    def _let_go_on(self) -> None:
        """Give free places to those who come first. You hold the lock."""
        now, ready = time.monotonic(), self._ready()
        while self._waiting and self._has_place(now, ready):
            turn = min(self._waiting, key=lambda turn: self._rank(turn, now))
            self._waiting.remove(turn)
            turn.began_at = now
            self._running.append(turn)
            turn.go.set()

    def _has_place(self, now: float, ready: bool) -> bool:
        if not ready:
            return not self._running
        quick = sum(1 for turn in self._running if now - turn.began_at < SLOW_AFTER_S)
        return quick < SETUPS_AT_ONCE and len(self._running) - quick <= SLOW_AT_ONCE

    def _rank(self, turn: _Turn, now: float) -> tuple[int, int]:
        """Order of the waiting: for long; on the screen; the others; those that hung the last time."""
        if now - turn.asked_at >= PATIENCE_S:
            return 0, turn.number
        return 1 + (turn.name not in self._preferred) + 2 * (turn.name in self._slow), turn.number
