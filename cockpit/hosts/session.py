"""One command or one stream on an SSH channel. Everything that can block happens on a daemon thread."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from paramiko.channel import Channel
from paramiko.ssh_exception import SSHException

from cockpit.hosts.calls import Call, Calls
from cockpit.hosts.dial import Connection, Stage
from cockpit.hosts.lines import LineCutter
from cockpit.hosts.local import SILENCE_AFTER_EXIT_S
from cockpit.hosts.ssh_faults import session_fault, what_of
from cockpit.hosts.transport import Bell, exit_signal, listen, wake_request
from cockpit.hosts.wire import spawn
from cockpit.models import Fault, FaultError, FaultKind

_CHUNK = 65536
_POLL_S = 0.5
_STREAM_POLL_S = 2.0  # a stream's end rings as its lines do: this is for what nobody has thought of
_POLL_WRITING_S = 0.02  # nothing rings when the other side makes room for more input


class TooMuchError(Exception):
    """More output than max_bytes."""


def start_command(
    connection: Connection, call: Call[Any], command: str, until: float, stage: Stage, *, stream: bool
) -> Channel:
    """A channel with the command running on it; FaultError when there is none, closed on the way out."""
    channel = connection.open_session(call, until, stage, stream=stream)
    try:
        stage.words = "starting the command"
        # exec_command waits for its answer without any limit; cancelling the call ends that.
        call.on_cancel(lambda: wake_request(channel))
        channel.exec_command(command.encode("utf-8", "surrogateescape"))
        stage.words = "running"
    except (SSHException, OSError, EOFError) as error:
        connection.close_session(channel, stream=stream)
        if not connection.alive:
            raise connection.lost() from error
        raise session_fault(what_of(connection.target), error) from error
    return channel


@dataclass
class Conversation:
    """A command on a channel, from its input to its exit status."""

    connection: Connection
    channel: Channel
    stdin: bytes
    max_bytes: int

    def __post_init__(self) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self._sent = 0
        self._eof_sent = False

    def pump(self, call: Call[Any]) -> int:
        """Move bytes both ways until the command has ended; returns rc (negative: killed by that signal)."""
        bell = listen(self.channel)
        call.on_cancel(bell.set)
        silent_since = time.monotonic()
        while not call.cancelled:
            bell.silence()
            if self._read() | self._write():
                silent_since = time.monotonic()
                continue
            if self.channel.closed and not self._pending():
                break
            silence = time.monotonic() - silent_since
            # A background child of the command may keep the channel open for ever.
            if self.channel.exit_status_ready() and silence > SILENCE_AFTER_EXIT_S:
                break
            bell.wait(_POLL_S if self._eof_sent else _POLL_WRITING_S)
        return exit_status(self.connection, self.channel)

    def _pending(self) -> bool:
        return self.channel.recv_ready() or self.channel.recv_stderr_ready()

    def _read(self) -> bool:
        moved = False
        # Both streams share one window: leaving one unread would block the other.
        if self.channel.recv_ready():
            self.out += self.channel.recv(_CHUNK)
            moved = True
        if self.channel.recv_stderr_ready():
            self.err += self.channel.recv_stderr(_CHUNK)
            moved = True
        if len(self.out) + len(self.err) > self.max_bytes:
            raise TooMuchError
        return moved

    def _write(self) -> bool:
        if self._eof_sent:
            return False
        if self._sent < len(self.stdin):
            sent = send_some(self.channel, self.stdin[self._sent : self._sent + _CHUNK])
            if sent is not None:
                self._sent += sent
                return sent > 0
        self._eof_sent = True
        self.channel.shutdown_write()
        return True


def send_some(channel: Channel, data: bytes, *, wait_s: float = 0.0) -> int | None:
    """Bytes sent, 0 when there is no room; None when the other side takes no more."""
    channel.settimeout(wait_s)
    try:
        return channel.send(data) or None
    except TimeoutError:
        return 0
    except OSError:
        return None


def exit_status(connection: Connection, channel: Channel) -> int:
    """rc of an ended command; raises UNREACHABLE when the connection ended before the command did."""
    status = channel.exit_status
    name = exit_signal(channel)
    if name is not None:
        return -signal.Signals.__members__.get(f"SIG{name}", signal.SIGKILL).value
    if status >= 0:
        return status
    if not connection.alive:
        raise connection.lost()
    why = "the command ended without telling its exit status"
    raise FaultError(Fault(FaultKind.UNREACHABLE, what_of(connection.target), why))


class SshStream:
    """A running command's lines. `rc` is its exit status once the lines have ended."""

    def __init__(
        self,
        connection: Connection,
        channel: Channel,
        calls: Calls,
        *,
        stdin: bytes,
        max_line: int,
        on_stderr: Callable[[bytes], None] | None,
    ) -> None:
        self._connection, self._channel, self._calls = connection, channel, calls
        self._cutter = LineCutter(max_line)
        self._on_stderr = on_stderr
        self._bell: Bell = listen(channel)
        self._closed = threading.Event()
        self._stdin_closed = False
        self._stdin_sent = not stdin
        self._lock = threading.Lock()
        self._given_back = False
        self._fault: Fault | None = None
        self.rc: int | None = None
        if stdin:
            spawn(lambda: self._feed(stdin), "stream-stdin")

    def _feed(self, stdin: bytes) -> None:
        done = 0
        while done < len(stdin) and not self._closed.is_set():
            sent = send_some(self._channel, stdin[done : done + _CHUNK], wait_s=0.5)
            if sent is None:
                break
            done += sent
        with self._lock:
            self._stdin_sent = True
            wanted = self._stdin_closed
        if wanted:
            self._channel.shutdown_write()

    def __iter__(self) -> Iterator[bytes]:
        try:
            while not self._closed.is_set():
                self._bell.silence()
                # Asked before the buffers are: what comes in between is read in the next round.
                ended = self._channel.closed or self._channel.eof_received
                if self._channel.recv_stderr_ready():
                    self._tell(self._channel.recv_stderr(_CHUNK))
                elif self._channel.recv_ready():
                    yield from self._cutter.feed(self._channel.recv(_CHUNK))
                elif ended:
                    break
                else:
                    self._bell.wait(_STREAM_POLL_S)
            if not self._closed.is_set():
                yield from self._end()
        finally:
            self._give_back()
        if self._fault is not None:
            raise FaultError(self._fault)

    def _tell(self, data: bytes) -> None:
        if self._on_stderr is not None:
            self._on_stderr(data)

    def _end(self) -> Iterator[bytes]:
        # The exit status follows the end of the output, at once or never.
        until = time.monotonic() + SILENCE_AFTER_EXIT_S
        while not self._channel.exit_status_ready() and time.monotonic() < until:
            self._bell.silence()
            self._bell.wait(0.05)
        if not self._connection.alive:
            raise self._connection.lost()
        with contextlib.suppress(FaultError):
            self.rc = exit_status(self._connection, self._channel)
        # What a broken connection leaves behind is no line; what a program leaves without newline is.
        if rest := self._cutter.rest():
            yield rest

    def write(self, data: bytes) -> None:
        """A few bytes more for the command's stdin; dropped when it takes none."""
        with self._lock:
            ready = self._stdin_sent and not self._stdin_closed
        if ready and not self._closed.is_set():
            send_some(self._channel, data)

    def close_stdin(self) -> None:
        """Let the command see the end of its input, after what was given to it has been sent."""
        with self._lock:
            self._stdin_closed = True
            now = self._stdin_sent
        if now:
            spawn(self._channel.shutdown_write, "stream-eof")

    def close(self) -> None:
        """End it: the channel closes, and with it the command's stdin. Never blocks."""
        self._closed.set()
        self._bell.set()
        self._give_back()

    def abort(self, fault: Fault) -> None:
        """The host is being closed."""
        self._fault = fault
        self.close()

    def _give_back(self) -> None:
        with self._lock:
            if self._given_back:
                return
            self._given_back = True
        self._calls.discard(self)
        self._closed.set()
        spawn(lambda: self._connection.close_session(self._channel, stream=True), "close-stream")
