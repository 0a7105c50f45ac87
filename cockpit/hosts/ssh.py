"""A machine behind SSH: one connection, made when it is needed, shared by every call, renewed when lost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from paramiko.channel import Channel as ParamikoChannel

from cockpit.hosts.base import Channel, Completed, LineStream, command_line
from cockpit.hosts.budget import Gate
from cockpit.hosts.calls import Call, Calls
from cockpit.hosts.dial import Connection, Limits, RetiredError, Stage
from cockpit.hosts.dialer import Dialer
from cockpit.hosts.jump import ConfigRoute, Jumps, Route
from cockpit.hosts.local import too_much
from cockpit.hosts.session import Conversation, SshStream, TooMuchError, start_command
from cockpit.hosts.ssh_faults import forward_fault, what_of
from cockpit.hosts.ssh_target import SshTarget, parse_written, resolve
from cockpit.hosts.turns import Turns
from cockpit.hosts.wire import TcpChannel, Wire
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

T = TypeVar("T")

# A connection that was silent through a whole call is given up, but not for a call shorter than a slow link.
_SILENCE_MIN_S = 1.0


def open_ssh(head: str, *, ssh_config: Path | None = None, limits: Limits | None = None) -> SshHost:
    """The host an alias or user@host:port stands for; nothing is connected yet. FaultError: refused name."""
    parse_written(head)
    limits = limits or Limits()
    return SshHost(
        head,
        lambda: resolve(head, ssh_config=ssh_config),
        config_route(ssh_config, limits),
        limits=limits,
    )


def config_route(ssh_config: Path | None, limits: Limits, depth: int = 0, jumps: Jumps | None = None) -> Route:
    """The way the ssh config names; its jump hosts are SshHosts of their own, or those of `jumps`."""

    def jump(hop: str, resolver: Callable[[], SshTarget]) -> SshHost:
        parse_written(hop)
        # What goes through a jump host is encrypted already: compressing it there only costs time.
        return SshHost(hop, resolver, config_route(ssh_config, limits, depth + 1), limits=limits, compress=False)

    return ConfigRoute(jump, ssh_config, depth, jumps)


class SshHost:
    """Implements hosts.base.Host. Thread-safe: calls of many threads share the connection's sessions."""

    def __init__(
        self,
        name: str,
        resolver: Callable[[], SshTarget],
        route: Route,
        *,
        limits: Limits,
        compress: bool = True,
        turns: Turns | None = None,
        drop_retries: int = 2,
    ) -> None:
        self._name = printable(name)
        self.route = route
        self._calls = Calls(self._name)
        self._gate = Gate()
        self._dialer = Dialer(
            self._name,
            resolver,
            route,
            limits=limits,
            compress=compress,
            gate=self._gate,
            turns=turns,
            drop_retries=drop_retries,
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def busy(self) -> bool:
        """True while a call, a stream or a TCP channel of this host is in use."""
        return len(self._calls) > 0

    @property
    def connected(self) -> bool:
        """True when the next call needs no new connection."""
        return self._dialer.connected

    @property
    def warnings(self) -> tuple[str, ...]:
        """Lines of known_hosts files that were skipped at the last login."""
        return self._dialer.warnings

    def target(self) -> SshTarget:
        """Whom this is, by the ssh config of this moment. Reads files; raises FaultError."""
        return self._dialer.resolver()

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        unset: Sequence[str] = (),
        max_bytes: int = 64 * 2**20,
    ) -> Completed:
        """See Host.run. A connection that was silent all through a timed-out call is dropped."""
        until = time.monotonic() + deadline_s

        def work(connection: Connection, call: Call[Completed], stage: Stage) -> Completed:
            # Whole seconds, since not every `timeout` knows fractions; ours passes first.
            left_s = max(1, math.ceil(until - time.monotonic()))
            command = command_line(argv, deadline_s=left_s, env=env, unset=unset)
            channel = start_command(connection, call, command, until, stage, stream=False)
            began = time.monotonic()
            try:
                talk = Conversation(connection, channel, stdin, max_bytes)
                rc = talk.pump(call)
            finally:
                connection.close_session(channel, stream=False)
            took_s = time.monotonic() - began
            if rc in (124, 137) and took_s >= left_s:  # `timeout` ended it, a moment before we would have
                raise TimeoutError
            return Completed(rc, bytes(talk.out), bytes(talk.err), took_s)

        try:
            return self._with_connection(work, until, deadline_s, printable(argv[0]))
        except TooMuchError:
            raise too_much(self._name, argv[0], max_bytes) from None

    def stream(
        self,
        argv: Sequence[str],
        *,
        open_deadline_s: float,
        stdin: bytes = b"",
        max_line: int = 2**20,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> LineStream:
        """See Host.stream. on_stderr is called by the thread that iterates."""
        until = time.monotonic() + open_deadline_s
        command = command_line(argv, deadline_s=None)

        def work(connection: Connection, call: Call[SshStream], stage: Stage) -> SshStream:
            channel = start_command(connection, call, command, until, stage, stream=True)
            return SshStream(connection, channel, self._calls, stdin=stdin, max_line=max_line, on_stderr=on_stderr)

        stream = self._with_connection(work, until, open_deadline_s, printable(argv[0]), discard=SshStream.close)
        try:
            self._calls.add(stream)
        except FaultError:
            stream.close()
            raise
        return stream

    def open_tcp(self, address: str, port: int, *, deadline_s: float) -> Channel:
        """See Host.open_tcp: direct-tcpip, which does not count as a session."""
        until = time.monotonic() + deadline_s
        what = f"{printable(address)}:{port} through {self._name}"

        def work(connection: Connection, call: Call[TcpChannel], stage: Stage) -> TcpChannel:
            stage.words = "waiting behind other new connections through it"
            if not self._gate.enter(until) or call.cancelled:
                raise TimeoutError
            stage.words = f"connecting to {what}"
            connection.enter()
            try:
                channel = connection.transport.open_channel(
                    "direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=deadline_s + 5
                )
            except Exception as error:
                connection.leave()
                if not connection.alive:
                    raise connection.lost() from error
                raise forward_fault(connection.target, address, port, error) from error
            return self._tcp_channel(connection, channel, what)

        tcp = self._with_connection(work, until, deadline_s, what, discard=TcpChannel.close)
        try:
            self._calls.add(tcp)
        except FaultError:
            tcp.close()
            raise
        return tcp

    def _tcp_channel(self, connection: Connection, channel: ParamikoChannel, what: str) -> TcpChannel:
        def closed() -> None:
            self._calls.discard(tcp)
            connection.leave()

        tcp = TcpChannel(Wire(channel, on_close=closed), what)
        return tcp

    def _with_connection(
        self,
        work: Callable[[Connection, Call[T], Stage], T],
        until: float,
        deadline_s: float,
        what: str,
        *,
        discard: Callable[[T], object] | None = None,
    ) -> T:
        while True:
            call: Call[T] = Call()
            self._calls.add(call)
            try:
                connection = self._dialer.connection(until, deadline_s, call)
                stage = Stage()
                call.start(_bind(work, connection, stage), discard=discard, name=f"ssh {self._name}")
                return call.wait(until)
            except RetiredError:
                continue  # the dialer gives us another one
            except TimeoutError:
                raise self._too_late(connection, stage, deadline_s, what) from None
            finally:
                self._calls.discard(call)

    def _too_late(self, connection: Connection, stage: Stage, deadline_s: float, what: str) -> FaultError:
        connection.abandoned += 1
        why = f"`{what}` gave no answer within {deadline_s:g} s ({stage.words})"
        if stage.sent_at is not None:
            silent = connection.wire.last_rx < stage.sent_at
            if silent and time.monotonic() - stage.sent_at >= _SILENCE_MIN_S:
                connection.kill("no sign of life")
                why += "; the connection shows no sign of life and was dropped"
        return FaultError(Fault(FaultKind.TIMEOUT, what_of(connection.target), why))

    def retry_now(self) -> None:
        """Forget the back-off: the next call tries at once."""
        self._dialer.retry_now()

    def close(self) -> None:
        """End every call at once and never connect again. Never blocks, also not when the peer hangs."""
        self._calls.close()
        self._dialer.close()


def _bind(
    work: Callable[[Connection, Call[T], Stage], T], connection: Connection, stage: Stage
) -> Callable[[Call[T]], T]:
    return lambda call: work(connection, call, stage)


def with_via(target: SshTarget, via: str | None) -> SshTarget:
    """A node's target when it is reached through `via`: the ssh config's own proxies do not count."""
    return replace(target, proxy_jump=(), proxy_command=None, via=via)
