"""Keeps one connection: dials on a daemon thread, lets everyone wait for it, backs off when it fails."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cockpit.hosts.base import NotAskedError
from cockpit.hosts.budget import LOGINS_MAX, Gate
from cockpit.hosts.calls import Call
from cockpit.hosts.dial import Connection, Limits, Progress, establish
from cockpit.hosts.jump import Route
from cockpit.hosts.ssh_faults import DroppedError, reason
from cockpit.hosts.ssh_target import SshTarget
from cockpit.hosts.turns import Turns
from cockpit.models import Fault, FaultError, FaultKind

BACKOFF_FIRST_S = 1.0
BACKOFF_MAX_S = 60.0
SHORT_S = 10.0  # a connection that was lost sooner counts as a failure from the third on
_QUICK_LOSSES = 2
_TURN = "waiting for its turn to connect"
_STUCK_STEP = {
    FaultKind.TIMEOUT: "it answers but lets nobody in: most likely overloaded or hung; look at its console",
    FaultKind.UNREACHABLE: "look whether it is up, and whether network and security groups let you reach it",
}


class Dialer:
    """Hands out the live connection of one host, making it when there is none."""

    def __init__(
        self,
        name: str,
        resolver: Callable[[], SshTarget],
        route: Route,
        *,
        limits: Limits,
        compress: bool,
        gate: Gate,
        turns: Turns | None,
        drop_retries: int,
    ) -> None:
        self._name, self.resolver, self._route = name, resolver, route
        self._limits, self._compress = limits, compress
        self._gate, self._turns, self._drop_retries = gate, turns, drop_retries
        self._changed = threading.Condition()
        self._current: Connection | None = None
        self._current_since = 0.0
        self._retired: list[Connection] = []  # replaced, and still in use
        self._progress: Progress | None = None  # of the dial in flight
        self._fault: Fault | None = None  # why the last dial failed
        self._failures = 0
        self._retry_at = 0.0
        self._closed = False
        self.warnings: tuple[str, ...] = ()

    @property
    def connected(self) -> bool:
        with self._changed:
            return self._usable() is not None

    def connection(self, until: float, deadline_s: float, call: Call[Any]) -> Connection:
        """The connection, waiting for it until then; FaultError at once while backing off."""
        call.on_cancel(self._wake)
        with self._changed:
            while True:
                if self._closed or call.cancelled:
                    raise self._closed_fault()
                connection = self._usable()
                if connection is not None:
                    return connection
                now = time.monotonic()
                self._expire(now)
                if self._progress is None:
                    if self._fault is not None and now < self._retry_at:
                        raise FaultError(self._fault)  # word for word: who fails alike is one problem
                    self._start(now)
                if now >= until:
                    raise self._not_yet(deadline_s)
                self._changed.wait(min(until - now, 1.0))

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _usable(self) -> Connection | None:
        current = self._current
        if current is not None and (current.retired or not current.alive):
            self._current = None
            if not current.retired:
                self._lost(current)
            self._retire(current)
        return self._current

    def _lost(self, connection: Connection) -> None:
        """Who lets us in and throws us out again is asked less and less often. You hold the lock."""
        if time.monotonic() - self._current_since >= SHORT_S:
            self._failures = 0
            return
        self._failures += 1
        if self._failures > _QUICK_LOSSES:
            self._back_off(connection.lost().fault, self._failures - 1 - _QUICK_LOSSES)

    def _retire(self, connection: Connection) -> None:
        """The others that still use it may go on; the last one closes it. You hold the lock."""
        connection.retired = True
        connection.enter()
        connection.leave()
        self._retired = [each for each in (*self._retired, connection) if each.alive]
        for oldest in self._retired[: max(0, len(self._retired) - (LOGINS_MAX - 1))]:
            oldest.kill("replaced, since it gave no more sessions")

    def _start(self, now: float) -> None:
        progress = Progress(until=now + self._limits.dial_s)
        self._progress = progress
        name = f"dial {self._name}"
        threading.Thread(target=self._dial, args=(progress,), name=name, daemon=True).start()

    def _expire(self, now: float) -> None:
        """Give up a dial that hangs where no limit reaches it, such as DNS; its thread stays behind."""
        if self._progress is not None and now > self._progress.until:
            self._failed(self._progress, self._stuck(self._progress, self._limits.dial_s))

    def _stuck(self, progress: Progress, seconds: float) -> Fault:
        kind = FaultKind.TIMEOUT if progress.reached else FaultKind.UNREACHABLE
        why = f"no connection within {seconds:g} s; still {progress.stage}"
        return Fault(kind, f"SSH to {self._name}", why, _STUCK_STEP[kind])

    def _not_yet(self, deadline_s: float) -> FaultError:
        assert self._progress is not None
        error = NotAskedError if self._progress.stage == _TURN else FaultError
        return error(self._stuck(self._progress, deadline_s))

    def _dial(self, progress: Progress) -> None:
        try:
            with self._turn(progress):
                connection = self._attempts(progress)
        except FaultError as error:
            fault = error.fault
        except Exception as error:
            fault = Fault(FaultKind.UNREACHABLE, f"SSH to {self._name}", reason(error))
        else:
            self._succeeded(progress, connection)
            return
        with self._changed:
            self._failed(progress, fault)

    @contextmanager
    def _turn(self, progress: Progress) -> Iterator[None]:
        """Wait for one's turn among the nodes; that time does not count as dialling."""
        if self._turns is None:
            yield
            return

        def waits() -> bool:
            progress.until = time.monotonic() + self._limits.dial_s
            return not self._gone(progress)

        progress.enter(_TURN)
        with self._turns.taken(self._name, waits) as mine:
            if not mine:
                raise self._closed_fault()
            yield

    def _attempts(self, progress: Progress) -> Connection:
        """Try again, after a random pause, while sshd drops us before its banner (MaxStartups)."""
        left = self._drop_retries
        pause_s = 0.2
        while True:
            try:
                return self._attempt(progress)
            except DroppedError:
                left -= 1
                if left < 0 or self._gone(progress) or time.monotonic() + pause_s > progress.until:
                    raise
            progress.enter("pausing, since sshd closed the connection at once", reached=True)
            time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311
            pause_s *= 2

    def _attempt(self, progress: Progress) -> Connection:
        progress.enter("reading the ssh config")
        target = self.resolver()
        if not self._gate.enter(progress.until):
            raise FaultError(self._stuck(progress, self._limits.dial_s))
        wire = self._route.open(target, self._limits, progress)
        if self._gone(progress):
            wire.close()
            raise self._closed_fault()
        return establish(target, wire, self._limits, progress, compress=self._compress)

    def _gone(self, progress: Progress) -> bool:
        return self._closed or self._progress is not progress

    def _succeeded(self, progress: Progress, connection: Connection) -> None:
        with self._changed:
            if self._gone(progress):
                connection.kill("nobody waits for it any more")
                return
            self._current, self._progress, self._fault = connection, None, None
            self._current_since = time.monotonic()
            self.warnings = connection.warnings
            self._changed.notify_all()

    def _failed(self, progress: Progress, fault: Fault) -> None:
        """You hold the lock."""
        if self._gone(progress):
            return
        self._progress = None
        self._back_off(fault, self._failures)
        self._failures += 1
        self._changed.notify_all()

    def _back_off(self, fault: Fault, before: int) -> None:
        pause_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(before, 10))
        self._fault = fault
        self._retry_at = time.monotonic() + pause_s * random.uniform(0.8, 1.2)  # noqa: S311

    def _closed_fault(self) -> FaultError:
        why = "this connection was closed by the cockpit"
        return FaultError(Fault(FaultKind.UNREACHABLE, f"SSH to {self._name}", why))

    def retry_now(self) -> None:
        """Forget the back-off, also that of the jump hosts on the way."""
        with self._changed:
            self._fault, self._failures, self._retry_at = None, 0, 0.0
        self._route.retry_now()

    def close(self) -> None:
        """Kill the connection and whatever is being dialled. Never blocks."""
        with self._changed:
            self._closed = True
            current, self._current = self._current, None
            self._changed.notify_all()
        if current is not None:
            current.kill("closed by the cockpit")
        self._route.close()
