"""A socket of this machine whose other end is an address that only another machine may reach."""

from __future__ import annotations

import contextlib
import socket

from cockpit.hosts.base import Channel, Host
from cockpit.hosts.wire import spawn
from cockpit.models import FaultError

_CHUNK = 65536


def socket_through(host: Host, address: str, port: int, *, deadline_s: float) -> socket.socket:
    """Connect to address:port as seen from that machine; raises FaultError.

    A real socket, since TLS and http.client want one; what passes between it and the host's channel is moved by two
    threads, which end when either side closes.
    """
    channel = host.open_tcp(address, port, deadline_s=deadline_s)
    channel.settimeout(None)
    ours, theirs = socket.socketpair()
    spawn(lambda: _outward(theirs, channel), "tunnel-out")
    spawn(lambda: _inward(channel, theirs), "tunnel-in")
    return ours


def _outward(source: socket.socket, channel: Channel) -> None:
    with contextlib.suppress(OSError, FaultError):
        while data := source.recv(_CHUNK):
            channel.sendall(data)
    channel.close()  # which also ends the other direction


def _inward(channel: Channel, sink: socket.socket) -> None:
    with contextlib.suppress(OSError, FaultError):
        while data := channel.recv(_CHUNK):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)  # before it is closed: the other thread may wait in it
    sink.close()
