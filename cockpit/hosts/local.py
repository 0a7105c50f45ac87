"""This very machine, behind the same interface as one at the other end of SSH."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, cast

from cockpit.hosts.base import Channel, Completed, LineStream
from cockpit.hosts.budget import Gate
from cockpit.hosts.calls import Call, Calls
from cockpit.hosts.lines import LineCutter
from cockpit.hosts.wire import TcpChannel, connect_tcp, spawn
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

_CHUNK = 65536
_TERM_GRACE_S = 0.3
# How long output may stay silent after the command itself has ended, when something it started still
# holds the pipes open. The same for SSH, see hosts/session.py.
SILENCE_AFTER_EXIT_S = 2.0
_USER_TIMEOUT_S = 15.0


def too_late(what: str, program: str, deadline_s: float) -> FaultError:
    """The TIMEOUT every host raises when a command does not end in time."""
    return FaultError(Fault(FaultKind.TIMEOUT, what, f"`{printable(program)}` gave no answer within {deadline_s:g} s"))


def too_much(what: str, program: str, max_bytes: int) -> FaultError:
    """The GARBLED every host raises when a command writes more than anyone can want."""
    why = f"`{printable(program)}` wrote more than {max_bytes / 2**20:g} MiB; reading was stopped"
    return FaultError(Fault(FaultKind.GARBLED, what, why))


class LocalHost:
    """Runs commands as child processes, each in a process group that a deadline ends as a whole."""

    def __init__(self) -> None:
        self._calls = Calls(self.name)
        self._gate = Gate()

    @property
    def name(self) -> str:
        return "local"

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
        """See Host.run; a program that is not there gives rc 127, as a shell would over SSH."""
        until = time.monotonic() + deadline_s
        call: Call[Completed] = Call()
        self._calls.add(call)
        job = _Job(argv, stdin, _environment(env, unset), max_bytes)
        call.start(job.run, name=f"run {argv[0]}")
        try:
            return call.wait(until)
        except TimeoutError:
            raise too_late(self.name, argv[0], deadline_s) from None
        except _TooMuchError:
            raise too_much(self.name, argv[0], max_bytes) from None
        finally:
            self._calls.discard(call)

    def stream(
        self,
        argv: Sequence[str],
        *,
        open_deadline_s: float,
        stdin: bytes = b"",
        max_line: int = 2**20,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> LineStream:
        """See Host.stream; raises MISSING when the program cannot be started."""
        call: Call[subprocess.Popen[bytes]] = Call()
        self._calls.add(call)
        try:
            call.start(lambda _: _start(argv, None), discard=end_group, name=f"stream {argv[0]}")
            process = call.wait(time.monotonic() + open_deadline_s)
        except TimeoutError:
            raise too_late(self.name, argv[0], open_deadline_s) from None
        except OSError as error:
            raise FaultError(Fault(FaultKind.MISSING, argv[0], error.strerror or str(error))) from error
        finally:
            self._calls.discard(call)
        stream = LocalStream(process, stdin, max_line, on_stderr, self._calls)
        try:
            self._calls.add(stream)
        except FaultError:
            stream.close()
            raise
        return stream

    def open_tcp(self, address: str, port: int, *, deadline_s: float) -> Channel:
        """A plain TCP connection from this machine."""
        what, until = f"{printable(address)}:{port}", time.monotonic() + deadline_s
        call: Call[TcpChannel] = Call()
        self._calls.add(call)

        def connect(_: Call[TcpChannel]) -> TcpChannel:
            if not self._gate.enter(until):
                raise TimeoutError
            left_s = max(0.1, until - time.monotonic())
            wire = connect_tcp(address, port, timeout_s=left_s, user_timeout_s=_USER_TIMEOUT_S)
            return TcpChannel(wire, what)

        try:
            call.start(connect, discard=TcpChannel.close, name="open-tcp")
            channel = call.wait(until + 0.1)
        except TimeoutError:
            raise FaultError(Fault(FaultKind.TIMEOUT, what, f"no connection within {deadline_s:g} s")) from None
        except OSError as error:
            raise FaultError(Fault(FaultKind.UNREACHABLE, what, error.strerror or str(error))) from error
        finally:
            self._calls.discard(call)
        channel.settimeout(None)
        return channel

    def close(self) -> None:
        """End every child and fail every call in flight, at once."""
        self._calls.close()


class _TooMuchError(Exception):
    """More output than max_bytes."""


def _environment(env: Mapping[str, str] | None, unset: Sequence[str]) -> dict[str, str] | None:
    if not env and not unset:
        return None
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return {**kept, **(env or {})}


def _start(argv: Sequence[str], env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        list(argv), stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True, bufsize=0
    )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """TERM and then KILL to the process group, on a thread of its own: a D-state child cannot be reaped."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_TERM_GRACE_S)
    # Whatever the leader did with TERM, the rest of its group goes too.
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


class _Job:
    """One command from start to end, pumped in the thread of its Call."""

    def __init__(self, argv: Sequence[str], stdin: bytes, env: Mapping[str, str] | None, max_bytes: int) -> None:
        self._argv, self._env, self._max = argv, env, max_bytes
        self._left = memoryview(stdin)
        self._out = bytearray()
        self._err = bytearray()

    def run(self, call: Call[Completed]) -> Completed:
        started = time.monotonic()
        try:
            process = _start(self._argv, self._env)
        except OSError as error:
            text = f"{self._argv[0]}: {error.strerror}\n".encode("utf-8", "replace")
            # A PATH with a directory we may not enter turns "not found" into "permission denied".
            missing = not isinstance(error, PermissionError) or shutil.which(self._argv[0]) is None
            return Completed(127 if missing else 126, b"", text, time.monotonic() - started)
        call.on_cancel(lambda: spawn(lambda: end_group(process), "end-group"))
        with selectors.DefaultSelector() as selector:
            self._watch(process, selector)
            try:
                self._pump(process, selector, call)
            except _TooMuchError:
                spawn(lambda: end_group(process), "end-group")
                raise
            finally:
                for key in list(selector.get_map().values()):
                    _close(selector, key)
        return Completed(process.wait(), bytes(self._out), bytes(self._err), time.monotonic() - started)

    def _watch(self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> None:
        assert process.stdin is not None
        for stream, into in ((process.stdout, self._out), (process.stderr, self._err)):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, into)
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE, None)

    def _pump(self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector, call: Call[Completed]) -> None:
        silent_since = time.monotonic()
        while selector.get_map() and not call.cancelled:
            for key, _ in selector.select(0.05 if process.poll() is not None else 0.5):
                silent_since = time.monotonic()
                if key.data is None:
                    self._write(selector, key)
                else:
                    self._read(selector, key)
            if process.poll() is not None and time.monotonic() - silent_since > SILENCE_AFTER_EXIT_S:
                return  # a background child of the command keeps the pipes open

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        chunk = os.read(key.fd, _CHUNK)
        if not chunk:
            _close(selector, key)
        key.data.extend(chunk)
        if len(self._out) + len(self._err) > self._max:
            raise _TooMuchError

    def _write(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        try:
            self._left = self._left[os.write(key.fd, self._left[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # the command has closed its stdin
            self._left = memoryview(b"")
        if not self._left:
            _close(selector, key)


def _close(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    selector.unregister(key.fileobj)
    cast(IO[bytes], key.fileobj).close()


class LocalStream:
    """A running command's lines. `rc` is its exit status once the lines have ended."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: bytes,
        max_line: int,
        on_stderr: Callable[[bytes], None] | None,
        calls: Calls,
    ) -> None:
        self._process = process
        self._cutter = LineCutter(max_line)
        self._on_stderr = on_stderr
        self._calls = calls
        self._fault: Fault | None = None
        self._closed = threading.Event()
        self._eof_wanted = threading.Event()
        self._fed = threading.Event()
        self.rc: int | None = None
        spawn(lambda: self._feed(stdin), "stream-stdin")
        spawn(self._drain_stderr, "stream-stderr")

    def _feed(self, stdin: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as pipe:
            left = memoryview(stdin)
            while left:
                left = left[pipe.write(left[:_CHUNK]) :]
            self._fed.set()
            self._eof_wanted.wait()

    def _drain_stderr(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(OSError, ValueError), self._process.stderr as pipe:
            while chunk := os.read(pipe.fileno(), _CHUNK):
                if self._on_stderr is not None:
                    self._on_stderr(chunk)

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._chunks():
                yield from self._cutter.feed(chunk)
            if not self._closed.is_set() and (rest := self._cutter.rest()):
                yield rest
        finally:
            self._finish()
        if self._fault is not None:
            raise FaultError(self._fault)

    def _chunks(self) -> Iterator[bytes]:
        assert self._process.stdout is not None
        with self._process.stdout as pipe, selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            # Looking up twice a second: after close() something may still hold the pipe open.
            while not self._closed.is_set():
                if selector.select(0.5):
                    chunk = os.read(pipe.fileno(), _CHUNK)
                    if not chunk:
                        return
                    yield chunk

    def _finish(self) -> None:
        self._eof_wanted.set()
        self._calls.discard(self)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.rc = self._process.wait(SILENCE_AFTER_EXIT_S)

    def write(self, data: bytes) -> None:
        """A few bytes more for the command's stdin; dropped when it takes none."""
        if self._fed.is_set() and not self._eof_wanted.is_set() and self._process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                os.write(self._process.stdin.fileno(), data)

    def close_stdin(self) -> None:
        """Let the command see the end of its input, after what was given to it has been read."""
        self._eof_wanted.set()

    def close(self) -> None:
        """End the command and its process group. Never blocks."""
        self._closed.set()
        self._eof_wanted.set()
        self._calls.discard(self)
        spawn(lambda: end_group(self._process), "end-group")

    def abort(self, fault: Fault) -> None:
        """The host is being closed."""
        self._fault = fault
        self.close()
