"""What the rest of the cockpit knows of a machine: run an argv, stream lines, open a TCP channel, close."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cockpit.models import FaultError

REMOTE_KILL_AFTER_S = 2
_UNQUOTABLE = "\n!\\"


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended: exit status (negative: killed by that signal), raw output, seconds it took."""

    rc: int
    stdout: bytes
    stderr: bytes
    took_s: float


class NotAskedError(FaultError):
    """The time was up before it was the machine's turn to be connected to: that says nothing about the machine."""


class Channel(Protocol):
    """A connected byte stream to an address that only the other machine may reach."""

    def sendall(self, data: bytes) -> None: ...
    def recv(self, size: int) -> bytes: ...
    def settimeout(self, seconds: float | None) -> None: ...
    def close(self) -> None: ...


class LineStream(Protocol):
    """A running remote command. Iterate for its lines (bytes, without newline); close() ends it.

    write() is for the iterating thread, after the first line: a few bytes more for the command's stdin,
    dropped when it takes none.
    """

    def __iter__(self) -> Iterator[bytes]: ...
    def write(self, data: bytes) -> None: ...
    def close_stdin(self) -> None: ...
    def close(self) -> None: ...


class Host(Protocol):
    """One machine. Every method ends within its deadline, or raises FaultError with the reason."""

    @property
    def name(self) -> str: ...

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
        """Run argv to its end. Non-zero exit is no error here; no answer in time is (FaultKind.TIMEOUT).

        The remote command is wrapped in `timeout`, so that nothing is left behind when the link breaks.
        Output beyond max_bytes raises FaultKind.GARBLED.
        """
        ...

    def stream(
        self,
        argv: Sequence[str],
        *,
        open_deadline_s: float,
        stdin: bytes = b"",
        max_line: int = 2**20,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> LineStream:
        """Start argv, send stdin, keep stdin open, and yield its output line by line.

        The command is expected to end when its stdin closes. Lines longer than max_line are cut, the rest
        of such a line is dropped.
        """
        ...

    def open_tcp(self, address: str, port: int, *, deadline_s: float) -> Channel:
        """A byte stream to address:port as seen from this machine."""
        ...

    def close(self) -> None:
        """Give up every connection at once; calls in flight raise FaultKind.UNREACHABLE."""
        ...


def command_line(
    argv: Sequence[str],
    *,
    deadline_s: float | None,
    env: Mapping[str, str] | None = None,
    unset: Sequence[str] = (),
) -> str:
    """The one place where an argv becomes a shell line: `timeout` and `env` in front, quoted once.

    It starts with a program name, never with an assignment, since the login shell may be csh.
    """
    words: list[str] = []
    if deadline_s is not None:
        words += ["timeout", "-k", str(REMOTE_KILL_AFTER_S), f"{deadline_s:g}"]
    if env or unset:
        words.append("env")
        words += [word for name in unset for word in ("-u", name)]
        words += [f"{name}={value}" for name, value in (env or {}).items()]
    line = shlex.join([*words, *argv])
    if not any(char in line for char in _UNQUOTABLE):
        return line
    # csh has no way to quote a newline or an exclamation mark, fish reads backslashes even in quotes.
    escaped = "".join(f"\\0{ord(char):03o}" if char in _UNQUOTABLE else char for char in line)
    return shlex.join(["sh", "-c", 'eval "exec $(printf %b "$0")"', escaped])
