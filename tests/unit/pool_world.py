"""256 nodes behind a head, standing in where SSH meets the network; everything above is the real code.

It counts what reaches the head: logins, connections through it, sessions. Time is that of `sim_threads`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.config import NodeAccess
from cockpit.hosts import budget, calls, dial, dialer, jump, pool, session, ssh, transport, turns, wire
from cockpit.hosts.dial import Connection, Limits, Progress
from cockpit.hosts.pool import NodePool
from cockpit.hosts.ssh import SshHost
from cockpit.hosts.ssh_target import SshTarget
from cockpit.hosts.wire import Wire
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources import gpus
from cockpit.sources.gpus import FleetStreams, Target
from tests.unit.sim_threads import Sim

MODULES = (budget, calls, dial, dialer, jump, pool, session, ssh, transport, turns, wire, gpus)
BANNER_S = 15.0  # how long one waits for a node that accepts TCP and never answers
TELLS_EVERY_S = 20.0
HELLO = json.dumps({"k": "h", "v": 1, "rev": 1, "host": "n", "gpus": []}).encode() + b"\n"


class World:
    """The head, its nodes, and what it has counted."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, nodes: int, hung: Iterable[int] = (), most: int = 256
    ) -> None:
        self.sim = Sim()
        self.sim.into(monkeypatch, MODULES)
        monkeypatch.setattr(session, "_STREAM_POLL_S", 30.0)
        monkeypatch.setattr(pool, "resolve", lambda written, **_: _target(written.host))
        monkeypatch.setattr(dialer, "establish", self._establish)
        self.names = [f"n{number}" for number in range(nodes)]
        self.hung = {f"n{number}" for number in hung}
        self.up = True
        self.refuses = True  # what an absent head does: refuse at once, or never answer
        self.throws_out_after_s: float | None = None
        self.logins: list[float] = []  # at the head
        self.opened: list[tuple[float, str]] = []  # connections through the head
        self.transports: list[_Transport] = []
        self.sessions_most = 0
        self.head = SshHost("head", lambda: _target("head"), _HeadRoute(self), limits=Limits())
        self.pool = NodePool(self.head, NodeAccess(max=most), guests=0)
        clock = SimpleNamespace(now=lambda: self.sim.now, steady=lambda: self.sim.now)
        targets = [Target(name, name) for name in self.names]
        self.streams = FleetStreams(lambda: self.pool, lambda: targets, most=most, interval_s=2.0, clock=clock)
        self.sim.start(self._collect)
        self.sim.start(self._read_queue)

    def _collect(self) -> None:
        while True:
            self.streams.collect()
            self.sim.sleep(1.0)

    def _read_queue(self) -> None:
        """What polls Slurm; when the head is back, all that failed is tried again, as the cluster does."""
        failing = False
        while True:
            try:
                self.head.run(["squeue"], deadline_s=10)
            except FaultError:
                failing = True
            else:
                if failing:
                    self.pool.retry_now()
                    self.streams.retry_now()
                failing = False
            self.sim.sleep(5.0)

    # What the head sees.

    def reach_head(self) -> Wire:
        """A login at the head begins."""
        self.logins.append(self.sim.now)
        self.sim.sleep(0.01 if self.up or self.refuses else 10.0)
        if not self.up:
            raise FaultError(Fault(FaultKind.UNREACHABLE, "SSH to head", "connection refused"))
        return Wire(_Socket())

    def _establish(
        self, target: SshTarget, stream: Wire, limits: Limits, progress: Progress, *, compress: bool
    ) -> Connection:
        progress.enter("waiting for its SSH banner", reached=True)
        if target.alias in self.hung:
            self.sim.sleep(BANNER_S)
            raise FaultError(Fault(FaultKind.TIMEOUT, f"SSH to {target.alias}", "it never answers"))
        self.sim.sleep(0.1)
        made = _Transport(self, target.alias)
        made.up = self.up
        self.transports = [each for each in self.transports if each.up] + [made]
        if target.alias == "head" and self.throws_out_after_s is not None:
            self.sim.at(self.throws_out_after_s, made.close)
        return Connection(target, made, stream)  # type: ignore[arg-type]

    def take_head_away(self) -> None:
        """Every connection to it and through it ends."""
        self.up = False
        for each in self.transports:
            each.close()

    def connected(self) -> set[str]:
        """Nodes with a live connection."""
        return {each.name for each in self.transports if each.up} - {"head"}

    def told(self, since: float = 0.0) -> set[str]:
        """Nodes whose probe has said something since then."""
        watches = self.streams.collect().nodes.values()
        return {watch.node for watch in watches if watch.seen_at is not None and watch.seen_at >= since}

    def worst_second(self) -> int:
        """The most connections, to the head and through it, that began within any second."""
        times = sorted([*self.logins, *(at for at, _ in self.opened)])
        return max(
            (sum(1 for at in times[first:] if at < times[first] + 1.0) for first in range(len(times))), default=0
        )

    def tries(self, since: float = 0.0) -> dict[str, int]:
        """How often each node was connected to."""
        found = dict.fromkeys(self.names, 0)
        for at, name in self.opened:
            found[name] += at >= since
        return found


class _HeadRoute:
    def __init__(self, world: World) -> None:
        self._world = world

    def open(self, target: SshTarget, limits: Limits, progress: Progress) -> Wire:
        return self._world.reach_head()

    def retry_now(self) -> None: ...
    def close(self) -> None: ...


class _Transport:
    """A logged-in connection as `dial.Connection` uses it."""

    parting_words = ""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.up = world, name, True
        self.channels: list[_Channel] = []

    def is_active(self) -> bool:
        return self.up

    def close(self) -> None:
        self.up = False
        for channel in self.channels:
            channel.close()

    def open_session(self, timeout: float) -> _Channel:
        self.channels = [each for each in self.channels if not each.closed]
        self.channels.append(_Channel(self))
        if self.name == "head":
            self.world.sessions_most = max(self.world.sessions_most, len(self.channels))
        return self.channels[-1]

    def open_channel(self, kind: str, to: tuple[str, int], origin: object, timeout: float) -> _Socket:
        self.world.opened.append((self.world.sim.now, to[0]))
        self.world.sim.sleep(0.01)
        if not self.up:
            raise EOFError
        return _Socket()


class _Channel:
    """A session: on the head a command of 1.5 s, on a node a probe that tells something again and again."""

    eof_received, exit_status = False, -1

    def __init__(self, owner: _Transport) -> None:
        self._owner, self._sim = owner, owner.world.sim
        self.closed = False
        self._data = b""
        self._bells: list[Any] = []
        self.in_buffer = self.in_stderr_buffer = SimpleNamespace(set_event=self._bells.append)
        self.event = SimpleNamespace(set=lambda: None)

    def exec_command(self, command: bytes) -> None:
        self._sim.start(self._work if self._owner.name == "head" else self._tell)

    def _work(self) -> None:
        self._sim.sleep(1.5)
        if not self.closed:
            self.exit_status = 0
            self.close()

    def _tell(self) -> None:
        number = 0
        while not self.closed:
            number += 1
            sample = {"k": "s", "n": number, "t": time.time(), "rev": 1}
            self._data += (HELLO if number == 1 else b"") + json.dumps(sample).encode() + b"\n"
            self._ring()
            self._sim.sleep(TELLS_EVERY_S)

    def _ring(self) -> None:
        for bell in self._bells:
            bell.set()

    def close(self) -> None:
        self.closed = True
        self._ring()

    def exit_status_ready(self) -> bool:
        return self.closed

    def recv_ready(self) -> bool:
        return bool(self._data)

    def recv_stderr_ready(self) -> bool:
        return False

    def recv(self, size: int) -> bytes:
        data, self._data = self._data[:size], self._data[size:]
        return data

    def send(self, data: bytes) -> int:
        return len(data)

    def settimeout(self, seconds: float) -> None: ...
    def shutdown_write(self) -> None: ...


class _Socket:
    def send(self, data: bytes, /) -> int:
        return len(data)

    def recv(self, size: int, /) -> bytes:
        return b""

    def settimeout(self, seconds: float | None, /) -> None: ...
    def close(self) -> None: ...


def _target(name: str) -> SshTarget:
    return SshTarget(name, name, "me")
