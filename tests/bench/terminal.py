"""A program in a pseudo-terminal: what it writes is kept with the time it came."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

# Textual asks whether frames may be bracketed; terminals of today answer that they can.
_ASKED, _ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
_CSI = re.compile(rb"\x1b\[([0-9;?<=>]*)[ -/]*([@-~])")
_REST = re.compile(rb"\x1b[\]P^_].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]", re.DOTALL)
_GONE_S = 5.0

Chunk = tuple[float, bytes]


def plain(raw: bytes) -> str:
    """The text in terminal output: a line break for each move of the cursor, other escapes left out."""
    text = _CSI.sub(lambda found: b"\n" if found[2] in b"Hf" else b"", raw)
    return _REST.sub(b"", text).decode("utf-8", "replace")


def _environment() -> dict[str, str]:
    """Ours, without what would make Python compile every module anew at each start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Terminal:
    """Starts a program as the leader of a new terminal of `size` (columns, lines); close() ends it.

    `colours` is what the environment promises: "truecolor" or "256". Times are time.monotonic().
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (160, 48),
        colours: str = "truecolor",
    ) -> None:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        kind = {"TERM": "xterm-256color", "COLORTERM": "truecolor" if colours == "truecolor" else ""}
        self.chunks: list[Chunk] = []
        self.ended_at: float | None = None
        self._news = threading.Condition()
        self._master = master
        self.started_at = time.monotonic()
        # --ctty: when this side closes, the program is hung up and does not stay behind.
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**_environment(), **kind, **(env or {})},
        )
        os.close(slave)
        self._pidfd = os.pidfd_open(self._process.pid)
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The program's pid; setsid makes itself into it."""
        return self._process.pid

    def press(self, key: bytes) -> float:
        """Type a key; returns when."""
        at = time.monotonic()
        os.write(self._master, key)
        return at

    def wait(self, seen: Callable[[str], object], timeout_s: float, since: int = 0) -> float | None:
        """When the text from chunk `since` on first satisfied `seen`; None when it never did in time."""
        until, raw, at = time.monotonic() + timeout_s, b"", since
        while True:
            if not self.wait_chunk(at, until):
                return None
            when, chunk = self.chunks[at]
            raw, at = raw + chunk, at + 1
            if seen(plain(raw)):
                return when

    def wait_chunk(self, number: int, until: float) -> bool:
        """Wait for that chunk; False when it did not come until then or the program has ended."""
        with self._news:
            while len(self.chunks) <= number:
                left_s = until - time.monotonic()
                if left_s <= 0 or self.ended_at is not None:
                    return False
                self._news.wait(left_s)
        return True

    def wait_end(self, timeout_s: float) -> float | None:
        """When the program was gone; None when it still runs."""
        if select.select([self._pidfd], [], [], timeout_s)[0]:
            return time.monotonic()
        return None

    def bytes_between(self, start: float, end: float) -> int:
        """How many bytes came in that time."""
        return sum(len(chunk) for at, chunk in self.chunks if start <= at < end)

    def close(self) -> None:
        """End the program if it still runs, and let go of the terminal."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.wait_end(0):
                signal.pidfd_send_signal(self._pidfd, number)
                self.wait_end(_GONE_S / 5)
        self._process.wait()
        self._reader.join(_GONE_S)
        with contextlib.suppress(OSError):
            os.close(self._master)
        os.close(self._pidfd)

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._master, 1 << 16)
            except OSError:  # how Linux says that nobody has the other side open any more
                chunk = b""
            now = time.monotonic()
            if _ASKED in chunk:
                os.write(self._master, _ANSWER)
            with self._news:
                if chunk:
                    self.chunks.append((now, chunk))
                else:
                    self.ended_at = now
                self._news.notify_all()
            if not chunk:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
