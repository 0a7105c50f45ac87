"""How the byte stream to a machine comes to be: directly, by ProxyCommand, or through other machines."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from cockpit.hosts.base import Host
from cockpit.hosts.dial import Limits, Progress
from cockpit.hosts.ssh_faults import connect_fault, what_of
from cockpit.hosts.ssh_target import SshTarget, resolve
from cockpit.hosts.wire import Wire, connect_proxy, connect_tcp, wire_of
from cockpit.models import Fault, FaultError, FaultKind

_HOPS_MAX = 8


class Route(Protocol):
    """Opens the stream an SSH connection is spoken through; raises FaultError."""

    def open(self, target: SshTarget, limits: Limits, progress: Progress) -> Wire: ...
    def retry_now(self) -> None: ...
    def close(self) -> None: ...


class ThroughHost:
    """Through a machine that somebody else owns, such as the head node."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def open(self, target: SshTarget, limits: Limits, progress: Progress) -> Wire:
        progress.until += limits.dial_s  # the other machine may have to be reached first
        progress.enter(f"connecting through {self._host.name}")
        deadline_s = limits.dial_s + target.connect_timeout_s
        return wire_of(self._host.open_tcp(target.hostname, target.port, deadline_s=deadline_s))

    def retry_now(self) -> None:
        """The head's back-off is the business of whoever owns it."""

    def close(self) -> None:
        """Nothing of our own is open."""


class Jumps:
    """Jump hosts by the way that leads to and through them: one connection to each carries all that goes there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[tuple[str, ...], Host] = {}
        self._closed = False

    def host(self, hops: tuple[str, ...], make: Callable[[], Host]) -> Host:
        """The one at the end of these hops, made when it is first wanted; closed when they are."""
        with self._lock:
            host = self._hosts.get(hops)
            if host is None:
                host = self._hosts[hops] = make()
            if self._closed:  # a dial may still be on its way when close() comes
                host.close()
            return host

    def only(self, hops: tuple[str, ...]) -> None:
        """Give up all others, which the ssh config no longer names."""
        with self._lock:
            others = [self._hosts.pop(way) for way in list(self._hosts) if way != hops]
        for host in others:
            host.close()

    def all(self) -> tuple[Host, ...]:
        """Those that there are."""
        with self._lock:
            return tuple(self._hosts.values())

    def close(self) -> None:
        """Give all of them up. Never blocks."""
        with self._lock:
            self._closed = True
        for host in self.all():
            host.close()


class ConfigRoute:
    """As the ssh config says: ProxyJump, ProxyCommand, or a plain connection."""

    def __init__(
        self,
        make_jump: Callable[[str, Callable[[], SshTarget]], Host],
        ssh_config: Path | None,
        depth: int,
        jumps: Jumps | None = None,
    ) -> None:
        self._make_jump, self._ssh_config, self._depth = make_jump, ssh_config, depth
        self._jumps, self._own = jumps or Jumps(), jumps is None

    def open(self, target: SshTarget, limits: Limits, progress: Progress) -> Wire:
        """A stream to the target; each hop has the whole of its own time limit."""
        if target.proxy_jump:
            jump = self._through(target)
            return ThroughHost(jump).open(target, limits, progress)
        try:
            if target.proxy_command is not None:
                progress.enter("starting the ProxyCommand", reached=True)
                return connect_proxy(target.proxy_command)
            progress.enter("connecting")
            return connect_tcp(
                target.hostname,
                target.port,
                timeout_s=target.connect_timeout_s,
                user_timeout_s=limits.user_timeout_s,
            )
        except OSError as error:
            fault = connect_fault(target, error, timeout_s=target.connect_timeout_s)
            raise FaultError(fault) from error

    def _through(self, target: SshTarget) -> Host:
        """The last hop's host, kept: one connection to it carries every reconnect of ours."""
        if self._depth >= _HOPS_MAX:
            why = f"ProxyJump leads through more than {_HOPS_MAX} machines, most likely in a circle"
            raise FaultError(Fault(FaultKind.FAILED, what_of(target), why, "correct the ssh config"))
        *before, last = hops = target.proxy_jump
        if self._own:
            self._jumps.only(hops)
        return self._jumps.host(hops, lambda: self._make_jump(last, lambda: self._resolve(last, tuple(before))))

    def _resolve(self, hop: str, before: tuple[str, ...]) -> SshTarget:
        found = resolve(hop, ssh_config=self._ssh_config)
        # In a,b,c the way to c is what stands before it; only the first hop keeps its own config's way.
        return replace(found, proxy_jump=before, proxy_command=None) if before else found

    def retry_now(self) -> None:
        """Let the jump host be tried at once, too."""
        for jump in self._jumps.all():
            forget = getattr(jump, "retry_now", None)
            if forget is not None:
                forget()

    def close(self) -> None:
        """Give the jump host up, unless others go through it as well. Never blocks."""
        if self._own:
            self._jumps.close()
