"""From a connected byte stream to a logged-in SSH connection, every stage with its own time limit."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from paramiko.channel import Channel
from paramiko.ssh_exception import ChannelException, SSHException

from cockpit.hosts.budget import SESSIONS_MAX, STREAMS_MAX
from cockpit.hosts.calls import Call
from cockpit.hosts.host_keys import HostKeyCheck
from cockpit.hosts.keys import Login
from cockpit.hosts.ssh_faults import DIALS_AGAIN, handshake_error, no_session_fault, session_fault, what_of
from cockpit.hosts.ssh_target import SshTarget
from cockpit.hosts.transport import Transport
from cockpit.hosts.wire import Wire, spawn
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

_REFUSED_LONG_S = 1.0
CHECKING_KEY, LOGGING_IN = "checking its host key", "logging in"  # stages of a dial that others ask about


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds each stage may take. The TCP stage has the ssh config's ConnectTimeout."""

    handshake_s: float = 15.0
    auth_s: float = 30.0
    dial_s: float = 45.0  # all stages together, per hop
    keepalive_s: float = 5.0
    dead_after_s: float = 15.0
    user_timeout_s: float = 15.0


@dataclass
class Progress:
    """How far a dial has come, for the words of those who wait for it."""

    until: float
    stage: str = "preparing"
    reached: bool = False  # TCP came to be

    def enter(self, stage: str, *, reached: bool = False) -> None:
        self.stage, self.reached = stage, reached


@dataclass
class Stage:
    """What a waiting caller says when its deadline passes."""

    words: str = "waiting for a free session"
    sent_at: float | None = None  # when the first message of this call went out


class RetiredError(Exception):
    """Ask for a session on another connection: this one has none left that sshd would give."""


@dataclass(eq=False)
class Connection:
    """A logged-in connection and who uses it."""

    target: SshTarget
    transport: Transport
    wire: Wire
    warnings: tuple[str, ...] = ()
    abandoned: int = 0  # commands given up on, which sshd may still count as sessions
    retired: bool = False
    _users: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sessions: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(SESSIONS_MAX))
    _streams: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(STREAMS_MAX))

    @property
    def alive(self) -> bool:
        return self.transport.is_active() and not self.wire.lost_why

    def kill(self, why: str) -> None:
        """End it now for everyone who uses it. Never blocks."""
        self.wire.kill(why)
        spawn(self.transport.close, "close-ssh")

    def lost(self) -> FaultError:
        """The fault of a call that was in flight when the connection ended."""
        words = self.wire.lost_why or printable(self.transport.parting_words)
        why = f"the connection was lost ({words or 'closed by the other side'})"
        return FaultError(Fault(FaultKind.UNREACHABLE, what_of(self.target), why, DIALS_AGAIN))

    def enter(self) -> None:
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            idle = self.retired and self._users == 0
        if idle:
            self.kill("retired")

    def open_session(self, call: Call[Any], until: float, stage: Stage, *, stream: bool) -> Channel:
        """A session channel; waits for a free one until `until`. Give it back with close_session()."""
        began = time.monotonic()
        slots = (self._streams, self._sessions) if stream else (self._sessions,)
        taken = []
        for slot in slots:
            if slot.acquire(timeout=max(0.0, until - time.monotonic())):
                taken.append(slot)
        try:
            if len(taken) < len(slots) or call.cancelled:
                raise no_session_fault(what_of(self.target), time.monotonic() - began)
            stage.words, stage.sent_at = "opening a session", time.monotonic()
            self.enter()
            try:
                return self._ask_for_session(call, until)
            except BaseException:
                self.leave()
                raise
        except BaseException:
            for slot in taken:
                slot.release()
            raise

    def _ask_for_session(self, call: Call[Any], until: float) -> Channel:
        began = time.monotonic()
        pause_s = 0.05
        while True:
            try:
                return self.transport.open_session(timeout=max(0.1, until - time.monotonic()))
            except (SSHException, OSError, EOFError) as error:  # the last for one that dies while it is asked
                if not self.alive:
                    raise self.lost() from error
                if not _is_refusal(error):
                    raise session_fault(what_of(self.target), error) from error
            now = time.monotonic()
            if self.abandoned and now - began > _REFUSED_LONG_S:
                self.retired = True
                raise RetiredError
            if call.cancelled or now + pause_s > until:
                raise no_session_fault(what_of(self.target), now - began)
            time.sleep(pause_s)
            pause_s = min(1.0, pause_s * 2)

    def close_session(self, channel: Channel, *, stream: bool) -> None:
        """Close it and let the next one in. May block when the other side hangs."""
        with contextlib.suppress(Exception):
            channel.close()
        self._sessions.release()
        if stream:
            self._streams.release()
        self.leave()


def _is_refusal(error: Exception) -> bool:
    """True when sshd has no session to give right now.

    paramiko keeps one exception per connection: of two calls refused at once one gets only the words.
    """
    return (isinstance(error, ChannelException) and error.code == 2) or "Unable to open channel" in str(error)


def establish(target: SshTarget, wire: Wire, limits: Limits, progress: Progress, *, compress: bool) -> Connection:
    """Handshake, host key, login. Raises FaultError, and then the wire is closed."""
    transport = Transport(wire, compress=compress)
    try:
        warnings = _handshake(target, transport, limits, progress)
        progress.enter(LOGGING_IN, reached=True)
        transport.auth_timeout = limits.auth_s
        Login(target).run(transport)
    except BaseException:
        wire.kill("the login failed")
        spawn(transport.close, "close-ssh")
        raise
    transport.watch(every_s=limits.keepalive_s, dead_after_s=limits.dead_after_s)
    return Connection(target, transport, wire, warnings)


def _handshake(target: SshTarget, transport: Transport, limits: Limits, progress: Progress) -> tuple[str, ...]:
    check = HostKeyCheck.for_target(target)
    options = transport.get_security_options()
    options.key_types = check.preferred(tuple(options.key_types))
    transport.banner_timeout = limits.handshake_s
    transport.handshake_timeout = limits.handshake_s
    transport.channel_timeout = limits.dial_s
    progress.enter("waiting for its SSH banner", reached=True)
    began = time.monotonic()
    # paramiko's own limit ends with the first packet, so a server that stops later needs this one.
    done = threading.Event()
    transport.start_client(event=done)
    finished = done.wait(limits.handshake_s + 1.0)
    took_s = time.monotonic() - began
    if not finished or not transport.is_active():
        error = transport.get_exception() or SSHException("no answer")
        raise handshake_error(target, error, transport.wire, took_s)
    progress.enter(CHECKING_KEY, reached=True)
    try:
        key = transport.get_remote_server_key()
    except SSHException as error:
        raise handshake_error(target, error, transport.wire, took_s) from error
    check.verify(key.get_name(), key.asbytes())
    return check.known.warnings
