"""The rig's "cloud": boots, halts and reboots its machines. Run as a file, with the standard library only.

It is PID 1 of a PID namespace that holds the whole rig, so its end is the end of every process and every
mount of the rig. Requests are lines `boot|halt|reboot NAME` in the FIFO STATE/requests. When standard input
closes before the line `detach` came, its starter is gone: it then removes the state directory and ends.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

UNSHARE = ["unshare", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child"]
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Supervisor:
    """The machines that run, by the pid of the `unshare` that made each."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.known = set(json.loads((state / "rig.json").read_text())["machines"])
        self.running: dict[int, str] = {}
        self.again: set[str] = set()  # to be booted when they are down

    def request(self, verb: str, name: str) -> None:
        """Carry out one line of the FIFO; what is already so, or names no machine, is left alone."""
        if name not in self.known:
            return
        up = name in self.running.values()
        if verb == "boot" and not up:
            self.boot(name)
        elif up and verb in ("halt", "reboot"):
            if verb == "reboot":
                self.again.add(name)
            self.halt(name)

    def boot(self, name: str) -> None:
        role = "head" if name == "rig-head" else "node"
        argv = [*UNSHARE, "/bin/sh", str(self.state / "bin" / "init"), str(self.state), name, role]
        self.running[subprocess.Popen(argv, env=ENV, stdin=subprocess.DEVNULL).pid] = name

    def halt(self, name: str) -> None:
        # The machine's own PID 1 is ended, not its unshare: that one then ends when all of it is gone.
        for pid, running in self.running.items():
            if running == name:
                for child in _children(pid) or [pid]:
                    os.kill(child, signal.SIGKILL)

    def reap(self) -> None:
        """Collect everything that has ended, adopted orphans too."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            name = self.running.pop(pid, None)
            if name is None:
                continue
            (self.state / "hosts" / name / "ns").unlink(missing_ok=True)
            if name in self.again:
                self.again.remove(name)
                self.boot(name)

    def abandon(self) -> None:
        """Nobody is left to call down(): end all machines and take the files away."""
        for name in list(self.running.values()):
            self.halt(name)
        while self.running:
            self.running.pop(os.wait()[0], None)
        Path(json.loads((self.state / "rig.json").read_text())["lock"]).unlink(missing_ok=True)
        shutil.rmtree(self.state, ignore_errors=True)


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


def serve(state: Path) -> None:
    supervisor = Supervisor(state)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Opened for writing too, or every writer that closes would look like an end of file.
    requests = os.open(state / "requests", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    sources, rest = [wake_read, requests, 0], b""
    while True:
        ready, _, _ = select.select(sources, [], [])
        if 0 in ready:
            if not os.read(0, 64).startswith(b"detach"):
                supervisor.abandon()
                return
            sources.remove(0)
        if wake_read in ready:
            os.read(wake_read, 4096)
            supervisor.reap()
        if requests in ready:
            *lines, rest = (rest + os.read(requests, 65536)).split(b"\n")
            for line in lines:
                verb, _, name = line.decode(errors="replace").partition(" ")
                supervisor.request(verb, name)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
