"""A login with a terminal, as `ssh demo-head` from a shell asks for: a real pty with a shell on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping
from pathlib import Path

from paramiko import Channel

_CHUNK = 4096
_LOOK_EVERY_S = 0.2
# A session leader that opens a terminal by name makes it its own (Linux), so that ^C reaches the command.
_ON_TERMINAL = 'exec <>"$0" >&0 2>&0; unset OLDPWD; exec "$@"'


class Terminal:
    """The pty of one channel; its size may change while a command runs on it."""

    def __init__(self, kind: str, columns: int, rows: int) -> None:
        self._kind = kind
        self._size = (rows, columns)
        self._master: int | None = None

    def resize(self, columns: int, rows: int) -> None:
        """Tell the programs on it about another window size."""
        self._size = (rows, columns)
        if self._master is not None:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def run(self, channel: Channel, line: str, env: Mapping[str, str], home: Path) -> None:
        """Run a command line, or a login shell for "", until it or the channel ends; closes the channel."""
        master, slave = os.openpty()
        self._master = master
        self.resize(self._size[1], self._size[0])
        feeder = threading.Thread(target=_feed, args=(channel, master), name="demo-keys", daemon=True)
        try:
            process = subprocess.Popen(
                [
                    "/bin/sh",
                    "-c",
                    _ON_TERMINAL,
                    os.ttyname(slave),
                    "/bin/sh",
                    *(["-c", line] if line else ["-i"]),
                ],
                stdin=subprocess.DEVNULL,
                env={**env, "TERM": self._kind, "PS1": f"[demo@{env['DEMO_HOST']}]$ "},
                cwd=home,
                start_new_session=True,
            )
            feeder.start()
            _attend(channel, master, process)
        finally:
            channel.close()
            feeder.join()
            self._master = None
            os.close(master)
            os.close(slave)


def _attend(channel: Channel, master: int, process: subprocess.Popen[bytes]) -> None:
    """Show the terminal on the channel until the command is over, then tell its exit status."""
    try:
        _show(channel, master, process)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL if channel.closed else signal.SIGHUP)
        status = process.wait()
    channel.send_exit_status(status if status >= 0 else 128 - status)


def _feed(channel: Channel, master: int) -> None:
    with contextlib.suppress(OSError):
        while data := channel.recv(_CHUNK):
            os.write(master, data)


def _show(channel: Channel, master: int, process: subprocess.Popen[bytes]) -> None:
    """Send what appears on the terminal until the command has ended and all of it is sent."""
    with selectors.DefaultSelector() as selector:
        selector.register(master, selectors.EVENT_READ)
        while not channel.closed:
            over = process.poll() is not None
            if selector.select(0 if over else _LOOK_EVERY_S):
                channel.sendall(os.read(master, _CHUNK))
            elif over:
                return
