"""Threads on a simulated clock: one runs at a time, and time passes only while all of them wait.

`Sim.into(monkeypatch, modules)` puts its `threading` and `time` in place of the real ones, so that code that was
written for threads runs through minutes in a moment, and the same way every time.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

GIVE_UP_S = 20.0  # of real time, for a simulated thread that really blocks


class _Over(BaseException):
    """The test has ended: a thread that waits stops waiting."""


class _Task:
    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.baton = threading.Semaphore(0)
        self.waits_for: _Waiters | None = None
        self.woken = False
        self.serial = 0
        self.ended = False


class _Waiters(deque[_Task]):
    """Tasks that wait for one thing, in order."""


class Sim:
    """The scheduler. `run(seconds)` from the test's own thread lets everything happen until then."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.errors: list[BaseException] = []
        self._ready: deque[_Task] = deque()
        self._timers: list[tuple[float, int, _Task, int]] = []
        self._count = 0
        self._current: _Task | None = None
        self._back = threading.Semaphore(0)
        self._tasks: list[_Task] = []
        self._over = False

    def into(self, monkeypatch: pytest.MonkeyPatch, modules: Iterable[ModuleType]) -> None:
        """Replace what these modules imported as `threading` and `time`."""
        own = SimpleNamespace(
            Thread=lambda **options: _Thread(self, **options),
            Lock=lambda: _Lock(self),
            RLock=lambda: _Lock(self),
            Semaphore=lambda value=1: _Semaphore(self, value),
            BoundedSemaphore=lambda value=1: _Semaphore(self, value),
            Event=lambda: _Event(self),
            Condition=lambda: _Condition(self),
        )
        clock = SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now, sleep=self.sleep)
        for module in modules:
            for name, stand_in in (("threading", own), ("time", clock)):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, stand_in)

    def start(self, work: Callable[[], object]) -> _Task:
        """Begin a simulated thread."""
        task = _Task(work)
        threading.Thread(target=self._body, args=(task,), daemon=True).start()
        self._ready.append(task)
        self._tasks.append(task)
        return task

    def close(self) -> None:
        """End every thread, one after the other: those that wait would wait as long as the tests run."""
        self._over = True
        for task in self._tasks:
            if not task.ended:
                self._current = task
                task.baton.release()
                assert self._back.acquire(timeout=GIVE_UP_S), "a simulated thread does not end"

    def _body(self, task: _Task) -> None:
        task.baton.acquire()
        try:
            if not self._over:
                task.work()
        except _Over:
            pass
        except BaseException as error:
            self.errors.append(error)
        task.ended = True
        self._back.release()

    def run(self, seconds: float) -> None:
        """Let all of them go on for so long; raises what one of them did."""
        until = self.now + seconds
        while not self.errors:
            if self._ready:
                self._current = task = self._ready.popleft()
                task.baton.release()
                assert self._back.acquire(timeout=GIVE_UP_S), "a simulated thread blocks for real"
                self._current = None
            elif self._timers and self._timers[0][0] <= until:
                at, _, task, serial = heapq.heappop(self._timers)
                if task.serial == serial:
                    self.now = max(self.now, at)
                    self._wake(task, woken=False)
            else:
                self.now = until
                return
        raise self.errors[0]

    def at(self, seconds: float, work: Callable[[], object]) -> None:
        """Do something after so long."""

        def later() -> None:
            self.sleep(seconds)
            work()

        self.start(later)

    def sleep(self, seconds: float) -> None:
        """Let time pass for the thread that calls this."""
        self.block(None, seconds)

    def block(self, waiters: _Waiters | None, timeout: float | None) -> bool:
        """Wait among these, True when woken, or for so long."""
        task = self._current
        assert task is not None, "only a simulated thread may wait"
        if self._over:
            raise _Over
        task.woken, task.waits_for = False, waiters
        task.serial += 1
        if waiters is not None:
            waiters.append(task)
        if timeout is not None:
            self._count += 1
            heapq.heappush(self._timers, (self.now + max(0.0, timeout), self._count, task, task.serial))
        self._back.release()
        task.baton.acquire()
        if self._over:
            raise _Over
        return task.woken

    def _wake(self, task: _Task, *, woken: bool) -> None:
        if task.waits_for is not None and task in task.waits_for:
            task.waits_for.remove(task)
        task.woken, task.waits_for = woken, None
        task.serial += 1
        self._ready.append(task)

    def wake(self, waiters: _Waiters, count: int | None = None) -> None:
        """Wake so many of them, or all."""
        for _ in range(len(waiters) if count is None else min(count, len(waiters))):
            self._wake(waiters[0], woken=True)

    @property
    def me(self) -> object:
        """Whoever runs just now."""
        return self._current or self


class _Thread:
    def __init__(
        self, sim: Sim, target: Callable[..., object], args: tuple[Any, ...] = (), name: str = "", daemon: bool = True
    ) -> None:
        self._sim, self._target, self._args, self.name = sim, target, args, name

    def start(self) -> None:
        self._sim.start(lambda: self._target(*self._args))


class _Lock:
    """Lock and RLock: whoever has it may take it again, which no code here relies on being refused."""

    def __init__(self, sim: Sim) -> None:
        self._sim = sim
        self._waiters = _Waiters()
        self._owner: object | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = self._sim.me
        while self._owner not in (None, me):
            if not self._sim.block(self._waiters, None if timeout < 0 else timeout):
                return False
        self._owner, self._depth = me, self._depth + 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
            self._sim.wake(self._waiters, 1)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Semaphore:
    def __init__(self, sim: Sim, value: int) -> None:
        self._sim, self._value, self._waiters = sim, value, _Waiters()

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        while self._value <= 0:
            if not self._sim.block(self._waiters, timeout):
                return False
        self._value -= 1
        return True

    def release(self) -> None:
        self._value += 1
        self._sim.wake(self._waiters, 1)


class _Event:
    def __init__(self, sim: Sim) -> None:
        self._sim, self._set, self._waiters = sim, False, _Waiters()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._sim.wake(self._waiters)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            self._sim.block(self._waiters, timeout)
        return self._set


class _Condition(_Lock):
    def __init__(self, sim: Sim) -> None:
        super().__init__(sim)
        self._asleep = _Waiters()

    def wait(self, timeout: float | None = None) -> bool:
        depth, self._depth = self._depth, 1
        self.release()
        woken = self._sim.block(self._asleep, timeout)
        self.acquire()
        self._depth = depth
        return woken

    def notify_all(self) -> None:
        self._sim.wake(self._asleep)
