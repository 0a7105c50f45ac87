"""One blocking operation on a daemon thread, which its caller may give up at any moment.

Libraries below us can block without a limit (a frozen sshd, a program on a hung file system); nobody who
waits here does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from cockpit.models import Fault, FaultError, FaultKind

T = TypeVar("T")


class Call(Generic[T]):
    """A started operation. wait() for it, or cancel() it; a value that comes too late is discarded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._cancelled = threading.Event()
        self._hooks: list[Callable[[], object]] = []
        self._result: list[T] = []
        self._error: BaseException | None = None

    @property
    def cancelled(self) -> bool:
        """True once nobody waits any more; the operation should end soon."""
        return self._cancelled.is_set()

    def start(
        self,
        work: Callable[[Call[T]], T],
        *,
        discard: Callable[[T], object] | None = None,
        name: str = "call",
    ) -> Call[T]:
        """Begin work(self) on a daemon thread; `discard` gets its value when the caller has gone."""
        threading.Thread(target=self._run, args=(work, discard), name=name, daemon=True).start()
        return self

    def _run(self, work: Callable[[Call[T]], T], discard: Callable[[T], object] | None) -> None:
        try:
            value = work(self)
        except BaseException as error:  # handed to the waiting thread, whatever it is
            self._finish(error=error)
            return
        if not self._finish(value) and discard is not None:
            discard(value)

    def _finish(self, *value: T, error: BaseException | None = None) -> bool:
        with self._lock:
            if self._done.is_set() or self.cancelled:
                return False
            self._result.extend(value)
            self._error = error
            self._done.set()
            return True

    def on_cancel(self, hook: Callable[[], object]) -> None:
        """Run `hook` (which must not block) when the call is cancelled, or now if it already is."""
        with self._lock:
            if not self.cancelled:
                self._hooks.append(hook)
                return
        hook()

    def cancel(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._cancelled.set()
            hooks, self._hooks = self._hooks, []
        for hook in hooks:
            hook()

    def abort(self, fault: Fault) -> None:
        """Wake the waiting thread with this fault, at once."""
        self._finish(error=FaultError(fault))
        self.cancel()

    def wait(self, until: float) -> T:
        """The value, or the error the operation raised; TimeoutError at `until` (time.monotonic())."""
        if not self._done.wait(max(0.0, until - time.monotonic())):
            self.cancel()
            # It may have ended in the very last moment; then its result counts.
            if not self._done.is_set():
                raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._result[0]


class Calls:
    """What is in flight on one host, so that closing the host ends all of it at once."""

    def __init__(self, host_name: str) -> None:
        self._fault = Fault(FaultKind.UNREACHABLE, host_name, "this connection was closed by the cockpit")
        self._lock = threading.Lock()
        self._open: set[Any] = set()
        self.closed = False

    def __len__(self) -> int:
        return len(self._open)

    def add(self, item: Any) -> None:
        """Register something with abort(fault); raises UNREACHABLE when the host is closed."""
        with self._lock:
            if not self.closed:
                self._open.add(item)
                return
        raise FaultError(self._fault)

    def discard(self, item: Any) -> None:
        """It ended by itself."""
        with self._lock:
            self._open.discard(item)

    def close(self) -> None:
        """End everything in flight; add() raises from now on."""
        with self._lock:
            self.closed = True
            items, self._open = self._open, set()
        for item in items:
            item.abort(self._fault)
