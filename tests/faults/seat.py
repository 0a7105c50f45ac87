"""A cockpit in a real terminal on the rig, reached over a line that can fail; every look at it asks for the truth."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.line import Line
from tests.rig import Rig, procs
from tests.rig.nvml import missing
from tests.rig.spec import HEAD
from tests.screens.tmux import Tmux, needs_tmux

# For `pytestmark`: what a seat needs.
needs_seat = [
    pytest.mark.rig,
    pytest.mark.xdist_group("rig"),
    *needs_tmux,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]
SIZE = (120, 30)
NEVER = ("ended ", "Traceback", "defect of the cockpit", "no nodes", "\x1b", "\x07")
_SOURCE = re.compile(r"[●▲✖○] (\w+) (?:stale |lost )?(\w+)")


class Seat:
    """Somebody who watches pane 2 while things break. `wait` fails when the cockpit ends, crashes or lies."""

    def __init__(self, rig: Rig, folder: Path, state: Path | None = None) -> None:
        self.rig = rig
        self._settled = False
        self.line = Line(rig.address(HEAD))
        self.tmux = Tmux(folder)
        self._folder, self._state = folder, state or folder / "state"
        self.config = rig.config("seat.yaml", ssh_config=str(self._ssh_config()), refresh={"slurm": 1, "gpus": 1})

    def _ssh_config(self) -> Path:
        """The rig's, with the head at the near end of the line."""
        address, port = self.rig.address(HEAD)
        near, near_port = self.line.address
        text = self.rig.ssh_config.read_text()
        text = text.replace(f"HostName {address}\n  Port {port}\n", f"HostName {near}\n  Port {near_port}\n", 1)
        known = self.rig.ssh_config.with_name("known_hosts").read_text()
        own = self._folder / "known_hosts"
        own.write_text(known + known.replace(f"[{address}]:{port}", f"[{near}]:{near_port}"))
        text = re.sub(r"UserKnownHostsFile .*", f"UserKnownHostsFile {own}", text)
        path = self._folder / "ssh_config"
        path.write_text(text)
        return path

    def start(self) -> Seat:
        """Open it on pane 2 and wait until everything is live."""
        argv = [sys.executable, "-m", "cockpit", "--config", str(self.config)]
        self.tmux.start(f"XDG_STATE_HOME={shlex.quote(str(self._state))} {shlex.join(argv)}", SIZE)
        self.tmux.wait(lambda text: "● nodes" in text)
        self.keys("2")
        self.wait_live()
        self._settled = True
        return self

    def keys(self, *keys: str) -> None:
        self.tmux.run("send-keys", *keys)

    def text(self) -> str:
        """The screen now; fails when it shows what may never be shown."""
        text = self.tmux.text()
        assert not [word for word in NEVER if word in text], text
        return text

    def wait(self, true: Callable[[str], bool], what: str, timeout_s: float = 40.0) -> float:
        """Look until it is true; returns the seconds it took. On pane 2 no node may be missing meanwhile."""
        began = time.monotonic()
        while not true(text := self.text()):
            assert time.monotonic() - began < timeout_s, f"never came true: {what}\n{text}"
            if self._settled and "─ nodes " in text:
                self._all_there()
            time.sleep(0.1)
        return time.monotonic() - began

    def _all_there(self) -> None:
        """Whatever fails, a node that was there keeps its row; a frame that is half drawn is looked at again."""
        for _ in range(5):
            text = self.tmux.text()
            if "─ nodes " not in text or all(name in text for name in self.rig.static_nodes):
                return
            time.sleep(0.1)
        raise AssertionError(text)

    def wait_live(self, timeout_s: float = 40.0) -> float:
        """Until every source is live and each static node has exactly one probe of this cockpit."""

        def live(text: str) -> bool:
            strip = text.split("\n")[1]
            return all(f"● {name}" in strip for name in ("nodes", "queue", "slurm", "gpus")) and all(
                self.probes(node) == 1 for node in self.rig.static_nodes
            )

        return self.wait(live, "everything live", timeout_s)

    def wait_stale(self, timeout_s: float = 40.0) -> float:
        """Until the strip says that the nodes are old."""
        return self.wait(lambda text: "▲ nodes stale" in text or "▲ nodes lost" in text, "nodes stale", timeout_s)

    def hold(self, seconds: float) -> None:
        """Keep looking for so long."""
        until = time.monotonic() + seconds
        self.wait(lambda _: time.monotonic() > until, "the time to pass", seconds + 10)

    def pid(self) -> int:
        """The cockpit's own process."""
        shell = int(self.tmux.run("display-message", "-p", "#{pane_pid}"))
        return next(pid for pid in procs.descendants(shell) if "-m cockpit" in procs.command_line(pid))

    def rss_mib(self) -> float:
        """Its resident memory."""
        status = Path(f"/proc/{self.pid()}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    def probes(self, node: str) -> int:
        """How many probes run on a node: what of them was started by sshd and not by one of themselves."""
        found = self.probe_pids(node)
        return len([pid for pid in found if procs.parent(pid) not in found])

    def probe_pids(self, node: str) -> list[int]:
        """Every process of the probes on a node, their children too."""
        return [pid for pid in self.rig.pids(node) if " interval=" in procs.command_line(pid)]

    def close(self) -> None:
        self.tmux.run("kill-server")
        self.line.close()


def commands(rig: Rig, name: str) -> list[str]:
    """What runs on a machine, without what sleeps for its init."""
    return sorted(line for line in rig.processes(name) if not line.startswith("sleep "))
