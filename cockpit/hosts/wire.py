"""Byte streams below SSH: sockets with the right options, channels of a jump host, ProxyCommand processes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Protocol

from cockpit.hosts.base import Channel
from cockpit.models import Fault, FaultError, FaultKind

_STDERR_KEEP = 2000
_PROXY_KILL_AFTER_S = 2.0


class SocketLike(Protocol):
    """What paramiko asks of the thing it speaks through."""

    def send(self, data: bytes, /) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def settimeout(self, seconds: float | None, /) -> None: ...
    def close(self) -> None: ...


def spawn(work: Callable[[], object], name: str) -> None:
    """Do something that may block or fail on a daemon thread, so that it can never delay quitting."""

    def run() -> None:
        # What is being closed here is often broken already, and nobody waits for the answer.
        with contextlib.suppress(Exception):
            work()

    threading.Thread(target=run, name=name, daemon=True).start()


class Wire:
    """A socket-like stream that knows when it last heard something and can be killed without blocking."""

    def __init__(self, sock: SocketLike, *, on_close: Callable[[], None] | None = None) -> None:
        self._sock = sock
        self._on_close = on_close
        self._closed = False  # paramiko reads this name when it stops its thread
        self._dead = False
        self.received = 0
        self.first = b""  # the first bytes heard, to tell a banner from something else
        self.last_rx = time.monotonic()
        self.ended = False  # the other side closed
        self.lost_why = ""
        self.note: Callable[[], str] = lambda: ""  # what a ProxyCommand said

    def send(self, data: bytes) -> int:
        if self._dead:
            raise EOFError
        try:
            return self._sock.send(data)
        except ConnectionError:
            self.ended = True
            raise

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            sent = self.send(bytes(view[:32768]))
            if sent == 0:
                raise EOFError
            view = view[sent:]

    def recv(self, size: int) -> bytes:
        if self._dead:
            return b""
        try:
            data = self._sock.recv(size)
        except ConnectionError:
            # Who closes with bytes of ours unread answers with a reset.
            self.ended = True
            raise
        if data:
            self.first = self.first or data[:80]
            self.received += len(data)
            self.last_rx = time.monotonic()
        else:
            self.ended = True
        return data

    def settimeout(self, seconds: float | None) -> None:
        self._sock.settimeout(seconds)

    def kill(self, why: str = "") -> None:
        """Make both directions fail now. Never blocks, sends nothing."""
        self.lost_why = self.lost_why or why
        self._dead = True
        if isinstance(self._sock, socket.socket):
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.kill()
        # Closing a channel of a jump host sends a message over it, which blocks when that host hangs.
        if isinstance(self._sock, socket.socket):
            self._sock.close()
        else:
            spawn(self._sock.close, "close-channel")
        if self._on_close is not None:
            self._on_close()


class TcpChannel:
    """A Wire as the `Channel` of hosts.base: every error is a FaultError that names the address."""

    def __init__(self, wire: Wire, what: str) -> None:
        self.wire = wire
        self._what = what

    def sendall(self, data: bytes) -> None:
        try:
            self.wire.sendall(data)
        except (OSError, EOFError) as error:
            raise self._fault(error) from error

    def recv(self, size: int) -> bytes:
        try:
            return self.wire.recv(size)
        except (OSError, EOFError) as error:
            raise self._fault(error) from error

    def settimeout(self, seconds: float | None) -> None:
        self.wire.settimeout(seconds)

    def close(self) -> None:
        self.wire.close()

    def abort(self, _fault: Fault) -> None:
        """The host is being closed."""
        self.wire.close()

    def _fault(self, error: Exception) -> FaultError:
        if isinstance(error, TimeoutError):
            return FaultError(Fault(FaultKind.TIMEOUT, self._what, "connected, but no answer in time"))
        why = (error.strerror if isinstance(error, OSError) else None) or "the connection was closed"
        return FaultError(Fault(FaultKind.UNREACHABLE, self._what, why))


class _ChannelSocket:
    """Lets paramiko speak through the Channel of any Host."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def send(self, data: bytes, /) -> int:
        self._channel.sendall(data)
        return len(data)

    def recv(self, size: int, /) -> bytes:
        try:
            return self._channel.recv(size)
        except FaultError as error:
            if error.fault.kind is FaultKind.TIMEOUT:
                raise TimeoutError from error
            raise EOFError from error

    def settimeout(self, seconds: float | None, /) -> None:
        self._channel.settimeout(seconds)

    def close(self) -> None:
        self._channel.close()


def wire_of(channel: Channel) -> Wire:
    """The stream beneath a Host's channel, fit for another SSH connection through it."""
    return channel.wire if isinstance(channel, TcpChannel) else Wire(_ChannelSocket(channel))


def connect_tcp(host: str, port: int, *, timeout_s: float, user_timeout_s: float) -> Wire:
    """A TCP connection without Nagle's delay that notices a dead peer; raises OSError.

    Keepalive alone and TCP_USER_TIMEOUT alone both miss a cut link; together they find it (Linux). All
    addresses of the name share the time limit.
    """
    until = time.monotonic() + timeout_s
    last: OSError | None = None
    for family, kind, proto, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, proto)
        try:
            sock.settimeout(max(0.1, until - time.monotonic()))
            sock.connect(address)
            _set_options(sock, user_timeout_s)
            return Wire(sock)
        except OSError as error:
            sock.close()
            last = error
    raise last or OSError(f"no address for {host}")


def _set_options(sock: socket.socket, user_timeout_s: float) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": 5,
        "TCP_KEEPINTVL": 5,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": int(user_timeout_s * 1000),
    }
    for name, value in wanted.items():
        if hasattr(socket, name):  # the last one is Linux only
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class _ProxyProcess:
    """A running ProxyCommand: its error output is always read, the last part of it kept."""

    def __init__(self, command: str, child: socket.socket) -> None:
        # A shell, since ProxyCommand is defined as a shell line of the user's own config. What we put
        # into it are names that ssh_target has checked.
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            stdin=child.fileno(),
            stdout=child.fileno(),
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._said = b""
        self._drained = threading.Event()
        spawn(self._drain, "proxy-stderr")

    def _drain(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while chunk := os.read(stream.fileno(), 4096):
                self._said = (self._said + chunk)[-_STDERR_KEEP:]
        self._drained.set()

    def note(self) -> str:
        self._drained.wait(0.3)
        said = self._said.decode("utf-8", "replace").strip()
        code = self._process.poll()
        ended = "" if code is None else f"ProxyCommand ended with status {code}"
        return ": ".join(part for part in (ended, said) if part)

    def end(self) -> None:
        spawn(self._end, "proxy-end")

    def _end(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PROXY_KILL_AFTER_S)
                return


def connect_proxy(command: str) -> Wire:
    """Start a ProxyCommand (already expanded) and speak through its stdin and stdout; raises OSError."""
    ours, child = socket.socketpair()
    try:
        process = _ProxyProcess(command, child)
    except OSError:
        ours.close()
        raise
    finally:
        child.close()
    wire = Wire(ours, on_close=process.end)
    wire.note = process.note
    return wire
