"""A host whose transport is loaded on first use, so that paramiko never delays the first paint."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from cockpit.hosts.base import Channel, Completed, Host, LineStream
from cockpit.hosts.ssh_target import SshTarget
from cockpit.models import Fault, FaultError, FaultKind


class DeferredHost:
    """Behaves as the host that `make` returns; `make` runs once, on the thread of the first call."""

    def __init__(self, name: str, make: Callable[[], Host]) -> None:
        self._name, self._make = name, make
        self._host: Host | None = None
        self._closed = False
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def connected(self) -> bool:
        """False while it is known that the next call has to connect first."""
        return self._host is not None and getattr(self._host, "connected", True)

    def _real(self) -> Host:
        with self._lock:
            if self._host is None and not self._closed:
                self._host = self._make()
            host = self._host
        if self._closed or host is None:
            if host is not None:
                host.close()  # close() came while it was being made
            why = "the cockpit is closing"
            raise FaultError(Fault(FaultKind.UNREACHABLE, f"reaching {self._name}", why))
        return host

    def target(self) -> SshTarget | None:
        """Whom SSH makes of this host, None when it is not one behind SSH. Reads files; FaultError."""
        find: Callable[[], SshTarget] | None = getattr(self._real(), "target", None)
        return find() if find is not None else None

    def run(self, argv: Any, **options: Any) -> Completed:
        return self._real().run(argv, **options)

    def stream(self, argv: Any, **options: Any) -> LineStream:
        return self._real().stream(argv, **options)

    def open_tcp(self, address: str, port: int, *, deadline_s: float) -> Channel:
        return self._real().open_tcp(address, port, deadline_s=deadline_s)

    def retry_now(self) -> None:
        """Forget the back-off of a host that could not be reached."""
        forget: Callable[[], None] | None = getattr(self._host, "retry_now", None)
        if forget is not None:
            forget()

    def close(self) -> None:
        # Never waits for the lock: another thread may hold it while it loads or connects.
        self._closed = True
        if self._host is not None:
            self._host.close()
