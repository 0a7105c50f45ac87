"""The demo's SSH server: a head on one loopback port, and every node reached through it.

A node needs no port of its own: the head's direct-tcpip handler maps a node's address (or name) to an SSH
server that runs right on the forwarded channel. Nothing but 127.0.0.1 is listened on.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    MSG_CHANNEL_REQUEST,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_FAILED_CONNECT_FAILED,
    OPEN_SUCCEEDED,
)

from cockpit.demo.execution import Machine
from cockpit.demo.terminal import Terminal

USER = "demo"
_STOP_WITHIN_S = 3.0
_LOG = "cockpit.demo.ssh"
# A client that goes away is no event; without a handler logging would write on the user's terminal.
logging.getLogger(_LOG).addHandler(logging.NullHandler())
logging.getLogger(_LOG).propagate = False


class _QuietChannel:
    """A forwarded channel as a transport's socket; closing it does not mind that the connection is gone."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def close(self) -> None:
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.close()


class DemoTransport(paramiko.Transport):
    """A server transport that starts commands only after the client was told that they start.

    paramiko asks the server object first and sends the reply afterwards. A quick command would otherwise
    close its channel before the client has seen the reply. There is no public hook for "reply sent".
    """

    def __init__(self, sock: Any, on_channel: Callable[[paramiko.Channel], None]) -> None:
        quiet: Any = _QuietChannel(sock) if isinstance(sock, paramiko.Channel) else sock
        super().__init__(quiet)
        self.set_log_channel(_LOG)
        self.ready: list[Callable[[], None]] = []
        self._on_channel = on_channel
        self._channel_handler_table = {
            **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]
            MSG_CHANNEL_REQUEST: self._answer_then_start,
        }

    def _answer_then_start(self, channel: Any, message: paramiko.Message) -> None:
        channel._handle_request(message)
        while self.ready:
            self.ready.pop(0)()

    def _queue_incoming_channel(self, channel: paramiko.Channel) -> None:
        self._on_channel(channel)


class _Login(paramiko.ServerInterface):
    """What one connection may do: run commands; on the head also open channels to nodes."""

    def __init__(self, server: DemoServer, machine: Machine) -> None:
        self._server = server
        self._machine = machine
        self._forwards: dict[int, Machine] = {}
        # paramiko itself holds channels weakly; these are open and have no command yet.
        self._waiting: dict[int, paramiko.Channel] = {}
        self._terminals: dict[int, Terminal] = {}
        self.transport: DemoTransport | None = None

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        known = username == USER and key == self._server.client_key
        return AUTH_SUCCESSFUL if known else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED if kind == "session" else OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        machine = self._server.route(self._machine, *destination)
        if machine is None:
            return OPEN_FAILED_CONNECT_FAILED
        self._forwards[chanid] = machine
        return OPEN_SUCCEEDED

    def channel_opened(self, channel: paramiko.Channel) -> None:
        """A channel exists now; a forwarded one gets the node's SSH server at its end."""
        machine = self._forwards.pop(channel.get_id(), None)
        if machine is None:
            self._waiting[channel.get_id()] = channel
        else:
            self._server.serve(channel, machine)

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        line = command.decode("utf-8", "surrogateescape")
        return self._start(channel, line)

    def check_channel_shell_request(self, channel: paramiko.Channel) -> bool:
        return self._start(channel, "")

    def check_channel_pty_request(
        self,
        channel: paramiko.Channel,
        term: bytes,
        width: int,
        height: int,
        pixelwidth: int,
        pixelheight: int,
        modes: bytes,
    ) -> bool:
        if channel.get_id() in self._terminals:
            return False
        self._terminals[channel.get_id()] = Terminal(term.decode("ascii", "replace"), width, height)
        return True

    def check_channel_window_change_request(
        self, channel: paramiko.Channel, width: int, height: int, pixelwidth: int, pixelheight: int
    ) -> bool:
        terminal = self._terminals.get(channel.get_id())
        if terminal is not None:
            terminal.resize(width, height)
        return terminal is not None

    def check_channel_env_request(self, channel: paramiko.Channel, name: bytes, value: bytes) -> bool:
        return False

    def _start(self, channel: paramiko.Channel, line: str) -> bool:
        if self.transport is None:
            return False
        self._waiting.pop(channel.get_id(), None)
        terminal = self._terminals.get(channel.get_id())
        self.transport.ready.append(lambda: self._server.spawn(lambda: self._machine.execute(channel, line, terminal)))
        return True


class DemoServer:
    """Listens on a free port of 127.0.0.1 for the head; `machines` are the nodes by name.

    Only `client_key` is let in. `reachable(name)` is asked for each new connection to a node.
    """

    def __init__(
        self,
        head: Machine,
        machines: dict[str, Machine],
        find: Callable[[str], str | None],
        host_key: paramiko.PKey,
        client_key: paramiko.PKey,
    ) -> None:
        self.client_key = client_key
        self._head, self._machines, self._find, self._host_key = head, machines, find, host_key
        self._lock = threading.Lock()
        self._stopping = False
        self._transports: set[paramiko.Transport] = set()
        self._workers: set[threading.Thread] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._acceptor = threading.Thread(target=self._accept, name="demo-accept", daemon=True)
        self._acceptor.start()

    def route(self, here: Machine, address: str, port: int) -> Machine | None:
        """The node behind address:port as seen from `here`; None where nothing would answer."""
        if here is not self._head or port != self.port:
            return None
        name = self._find(address)
        return None if name is None else self._machines[name]

    def serve(self, sock: socket.socket | paramiko.Channel, machine: Machine) -> None:
        """Speak SSH on a connected socket or forwarded channel; returns at once."""
        login = _Login(self, machine)
        try:
            transport = DemoTransport(sock, login.channel_opened)
            login.transport = transport
            transport.add_server_key(self._host_key)
            with self._lock:
                if self._stopping:
                    sock.close()
                    return
                self._transports = {known for known in self._transports if known.is_alive()} | {transport}
                # An event, so that the handshake happens in the transport's own thread.
                transport.start_server(event=threading.Event(), server=login)
        except (OSError, EOFError, paramiko.SSHException):
            sock.close()

    def spawn(self, run: Callable[[], None]) -> None:
        """Run a command on a thread of its own, unless everything is being stopped."""

        def work() -> None:
            run()
            with self._lock:
                self._workers.discard(threading.current_thread())

        worker = threading.Thread(target=work, name="demo-exec", daemon=True)
        with self._lock:
            if self._stopping:
                return
            self._workers.add(worker)
            worker.start()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._stopping:
                for key, _ in selector.select():
                    if key.fileobj is self._listener:
                        self._take_one()

    def _take_one(self) -> None:
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.serve(sock, self._head)

    def stop(self) -> None:
        """End every connection and command; returns when no thread of the server is left."""
        with self._lock:
            self._stopping = True
            transports, workers = list(self._transports), list(self._workers)
        self._wake.send(b"x")
        self._acceptor.join()
        for transport in transports:
            _hang_up(transport)
        deadline = time.monotonic() + _STOP_WITHIN_S
        for thread in [*transports, *workers]:
            thread.join(max(0.0, deadline - time.monotonic()))
        for sock in (self._listener, self._wake, self._woken):
            sock.close()


def _hang_up(transport: paramiko.Transport) -> None:
    """Make a transport's thread end soon, without waiting for it; waiting for each in turn adds up."""
    transport.active = False  # type: ignore[attr-defined]
    transport.packetizer.close()
    for channel in cast("list[paramiko.Channel]", transport._channels.values()):  # type: ignore[attr-defined]
        channel._unlink()  # type: ignore[attr-defined]
    with contextlib.suppress(OSError, EOFError):
        if isinstance(transport.sock, socket.socket):
            transport.sock.shutdown(socket.SHUT_RDWR)
        transport.sock.close()
