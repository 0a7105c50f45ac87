"""Running one exec request on its channel: in-process for simulated programs, else as a real subprocess."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from paramiko import Channel, SSHException

from cockpit.demo.commands import interpret
from cockpit.demo.output_files import OutputFarm
from cockpit.demo.probing import GpuFarm
from cockpit.demo.programs.registry import run
from cockpit.demo.programs.table import Answer
from cockpit.demo.sim import Simulation
from cockpit.demo.terminal import Terminal

_CHUNK = 65_536
_LOOK_EVERY_S = 0.2


class Machine:
    """One host of the demo as a login sees it: its name, home, environment and the cluster behind it."""

    def __init__(self, name: str, sim: Simulation, home: Path, path: str, gpus: GpuFarm, outputs: OutputFarm) -> None:
        self.name = name
        self.sim = sim
        self.home = home
        self._path = path
        self._gpus = gpus
        self._outputs = outputs

    def environment(self) -> dict[str, str]:
        """The small environment of a non-interactive login; nothing of the user's own leaks in."""
        return {
            "PATH": self._path,
            "HOME": str(self.home),
            "USER": "demo",
            "LOGNAME": "demo",
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "DEMO_HOST": self.name,
        }

    def execute(self, channel: Channel, line: str, terminal: Terminal | None = None) -> None:
        """Run a command line ("" is a login shell) to its end, send its exit status and close the channel."""
        try:
            call = interpret(line, self.environment())
            if terminal is None and call is not None:
                _send_answer(channel, run(self.sim, call.argv, call.env, self.name, root=call.sudo))
                return
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            if terminal is None:
                self._run(channel, line or "exec /bin/sh")
            else:
                terminal.run(channel, self._outputs.localize(line), self.environment(), self.home)
        except (OSError, EOFError, SSHException):
            pass  # the channel or its connection is gone; there is nobody left to tell
        finally:
            channel.close()

    def _run(self, channel: Channel, line: str) -> None:
        with self._gpus.probe(self.name, line) as probe:
            swap = None if probe is None else probe.stdin.feed
            line = self._outputs.localize(line) if probe is None else probe.line
            _Subprocess(channel, line, self.environment(), self.home, swap).run()


def _send_answer(channel: Channel, answer: Answer) -> None:
    channel.sendall(answer.stdout)
    channel.sendall_stderr(answer.stderr)
    channel.send_exit_status(answer.rc)
    channel.shutdown_write()


class _Subprocess:
    """A real process between three pipes and a channel; it ends with the channel."""

    def __init__(
        self,
        channel: Channel,
        line: str,
        env: Mapping[str, str],
        home: Path,
        swap: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._channel = channel
        self._swap = swap or (lambda data: data)
        # A session of its own, so that everything the line started can be ended together.
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", line.encode("utf-8", "surrogateescape")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=home,
            start_new_session=True,
        )

    def run(self) -> None:
        """Pump until the process has ended and its output is sent."""
        feeder = threading.Thread(target=self._feed, name="demo-stdin", daemon=True)
        feeder.start()
        try:
            self._drain()
            status = self._wait()
            # As a shell reports it: a process that a signal ended is 128 and the signal's number.
            self._channel.send_exit_status(status if status >= 0 else 128 - status)
            self._channel.shutdown_write()
        finally:
            self._kill()
            self._channel.close()
            feeder.join()
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()

    def _wait(self) -> int:
        """The exit status; a process that closed its own output still ends with the channel."""
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(_LOOK_EVERY_S)
            if self._channel.closed:
                self._kill()

    def _feed(self) -> None:
        """Pass the client's bytes to the process; end the process when the channel goes away."""
        stdin = self._process.stdin
        if stdin is None:
            return
        with contextlib.suppress(OSError, ValueError):
            while data := self._channel.recv(_CHUNK):
                _write_all(stdin, self._swap(data))
        with contextlib.suppress(OSError):
            stdin.close()
        # A half-close leaves the process running until it ends or the client closes for good.
        while self._process.poll() is None and not self._channel.closed:
            time.sleep(_LOOK_EVERY_S)
        if self._channel.closed:
            self._kill()

    def _drain(self) -> None:
        with selectors.DefaultSelector() as selector:
            if self._process.stdout is not None:
                selector.register(self._process.stdout, selectors.EVENT_READ, self._channel.sendall)
            if self._process.stderr is not None:
                selector.register(self._process.stderr, selectors.EVENT_READ, self._channel.sendall_stderr)
            while selector.get_map():
                for key, _ in selector.select(_LOOK_EVERY_S):
                    data = os.read(key.fd, _CHUNK)
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
                # A grandchild that keeps a pipe open must not outlive the channel.
                if self._channel.closed:
                    return

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _write_all(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(data)
    pipe.flush()
