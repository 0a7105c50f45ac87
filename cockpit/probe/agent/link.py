"""The two ends of the stream: lines go out without ever blocking, silence or the end of the input is noticed.

Four things end the probe: its input ends (the cockpit closed it, or was killed: the kernel closes its TCP
connection, and every sshd on the way closes the next one); a signal; output that nobody has taken for
`block_s`; and, once a first heartbeat byte has come, `heartbeat_s` without another. The last one is for a
link that vanished without a word, which no sshd notices for many minutes.
"""

import os
import signal
import time


class GoneError(Exception):
    """Nobody listens any more, or the probe was told to end."""


class Link:
    """Standard input and output, and the signals, of the probe."""

    def __init__(self, block_s: float, heartbeat_s: float) -> None:
        self._block_s, self._heartbeat_s = block_s, heartbeat_s
        self._pending = b""
        self._moved = 0.0  # when output last made progress
        self._beat: float | None = None
        self.slow = False  # nobody looks at this node just now, and there are many of them
        os.set_blocking(1, False)
        self._wake, waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(waker, False)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, _ignore)
        signal.set_wakeup_fd(waker)

    @property
    def clear(self) -> bool:
        """Whether everything written has left."""
        return not self._pending

    def readable(self) -> "list[int]":
        """Descriptors to wait for."""
        return [0, self._wake]

    def send(self, line: bytes) -> None:
        """Queue one line and push; call it only when `clear`."""
        self._moved = time.monotonic()
        self._pending = line + b"\n"
        self.push()

    def push(self) -> None:
        """Write what can be written; raises GoneError when nobody takes it."""
        while self._pending:
            try:
                self._pending = self._pending[os.write(1, self._pending) :]
                self._moved = time.monotonic()
            except BlockingIOError:
                break
            except OSError as error:
                raise GoneError(f"output: {error.strerror}") from None
        if self._pending and time.monotonic() - self._moved > self._block_s:
            raise GoneError("output is not taken")

    def hear(self, ready: "set[int]") -> None:
        """Look at what woke us; raises GoneError at the end of the input or at a signal."""
        if self._wake in ready:
            raise GoneError("signal")
        if 0 in ready:
            try:
                data = os.read(0, 4096)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                raise GoneError("input ended")
            self._beat = time.monotonic()
            self.slow = data.endswith(b"-")
        if self._beat is not None and time.monotonic() - self._beat > self._heartbeat_s:
            raise GoneError("no heartbeat")


def _ignore(number: int, frame: object) -> None:
    """The wake-up descriptor carries the signal."""
