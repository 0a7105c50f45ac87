"""Runs the real probe, as packed for a node, on this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from cockpit.formats.probe import ProbeReader
from cockpit.gpu_models import NodeReading
from cockpit.probe.bundle import probe_argv, probe_stdin
from tests.rig.procs import alive, descendants, start_ticks

INTERVAL_S = 0.2
# Nothing of this machine that tests do not mean to read.
QUIET: dict[str, str | float] = {
    "journalctl": "no-such-journalctl",
    "dmesg": "no-such-dmesg",
    "kmsg": "/no-such-kmsg",
    "nvidia_smi": "no-such-nvidia-smi",
    "neuron_ls": "no-such-neuron-ls",
    "sys": "/no-such-sys",
    "dev": "/no-such-dev",
}


class Run:
    """A probe with its stdin open; use it as a context manager."""

    def __init__(
        self,
        options: Mapping[str, str | float] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        argv: Sequence[str] | None = None,
    ) -> None:
        self.reader = ProbeReader()
        self.lines: list[bytes] = []
        self.readings: list[NodeReading] = []
        self._news = threading.Condition()
        words = argv or probe_argv(INTERVAL_S, **{**QUIET, **(options or {})})
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(probe_stdin())
        self.process.stdin.flush()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line)
                reading = self.reader.feed(line.rstrip(b"\n"))
                if reading is not None:
                    self.readings.append(reading)
                self._news.notify_all()

    def until(self, condition: Callable[[NodeReading], object], seconds: float = 40.0) -> NodeReading:
        """The first reading from now on (or the latest) that the condition holds for."""
        until = time.monotonic() + seconds
        with self._news:
            seen = max(0, len(self.readings) - 1)
            while True:
                for reading in self.readings[seen:]:
                    if condition(reading):
                        return reading
                seen = len(self.readings)
                left = until - time.monotonic()
                if left <= 0 or not self._news.wait(left):
                    tail = b"".join(self.lines[-3:]).decode(errors="replace")
                    raise AssertionError(f"not within {seconds} s; {len(self.lines)} lines, the last:\n{tail}")

    def children(self) -> dict[int, int]:
        """Every process below the shell that was started: pid -> start time, which names it for good."""
        pids = [self.process.pid, *descendants(self.process.pid)]
        return {pid: ticks for pid in pids if (ticks := start_ticks(pid)) is not None}

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def beat(self) -> None:
        """One heartbeat."""
        assert self.process.stdin is not None
        self.process.stdin.write(b".")
        self.process.stdin.flush()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = self.children()
        with contextlib.suppress(OSError):
            self.close_stdin()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(3)
        for pid, ticks in left.items():
            if alive(pid, ticks):
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)
        self.process.wait(5)
        self._thread.join(5)


def all_gone(processes: Mapping[int, int]) -> bool:
    """Whether none of these is alive any more."""
    return not any(alive(pid, ticks) for pid, ticks in processes.items())
