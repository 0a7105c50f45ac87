"""The probe: one line at every interval, whatever hangs."""

import contextlib
import os
import select
import sys
import time

from cockpit.probe.agent.accel import Accelerators
from cockpit.probe.agent.child import Nursery
from cockpit.probe.agent.efa import Efa
from cockpit.probe.agent.klog import KernelLog
from cockpit.probe.agent.link import GoneError, Link
from cockpit.probe.agent.mounts import Mounts
from cockpit.probe.agent.node import Node
from cockpit.probe.agent.options import SLOW_FACTOR, Options
from cockpit.probe.agent.values import compact

PROTOCOL = 1
_GRACE_SHARE = 0.5  # of an interval: how long a line waits for the driver's answer
_MAX_GRACE_S = 1.0
_MAX_WAIT_S = 5.0  # so that a missing heartbeat and stuck output are noticed at any interval


class Probe:
    """Everything that is read, and the line made of it."""

    def __init__(self, options: Options, packed_pynvml: bytes) -> None:
        self.nursery = Nursery()
        self._options = options
        proc, timeout_s = options.text("proc"), options.seconds("timeout")
        self._node = Node(proc)
        self.accel = Accelerators(self.nursery, options, packed_pynvml)
        check = options.text("mount_check")
        self._mounts = Mounts(self.nursery, proc, options.seconds("mounts"), timeout_s, check)
        self._efa = Efa(self.nursery, options.text("sys"), options.seconds("efa"), timeout_s)
        programs = (options.text("journalctl"), options.text("dmesg"))
        self._log = KernelLog(self.nursery, proc, options.text("kmsg"), *programs)
        self._facts = self._node.facts()
        self._greeted: tuple[object, ...] | None = None
        self._number = 0
        self._everything = True

    def step(self, now: float) -> None:
        """Start what is due, collect what has been answered."""
        for part in (self.accel, self._mounts, self._efa, self._log):
            part.step(now)
        self.nursery.reap()

    def wants(self, now: float) -> float:
        """Seconds until something wants to be looked at again."""
        return min(part.wants(now) for part in (self.accel, self._mounts, self._efa, self._log))

    @property
    def settled(self) -> bool:
        """Whether mounts, EFA and the kernel's log have answered, or never will."""
        return self._mounts.settled and self._log.settled

    def lines(self, now: float) -> bytes:
        """What is due now: a hello when something in it has changed, and the sample."""
        changed = self._node.scan(now)
        state = (
            self.accel.inventory.revision,
            self._efa.revision,
            self._missing(),
            self._log.source,
            self.accel.versions,
        )
        lines = []
        if state != self._greeted:
            # Rows refer to the hello by place: after a new one everything is told again.
            self._everything = self._greeted is None or state[:2] != self._greeted[:2]
            self._greeted = state
            lines.append(compact(self._hello()))
        lines.append(compact(self._sample(now, changed)))
        self._everything = False
        return b"\n".join(lines)

    def _hello(self) -> "dict[str, object]":
        accel = self.accel
        return {
            "k": "h",
            "v": PROTOCOL,
            "t": round(time.time(), 2),
            "rev": accel.inventory.revision,
            "iv": self._options.seconds("interval"),
            **self._facts,
            "drv": accel.versions,
            "gpus": accel.inventory.entries,
            "pci": accel.pci,
            "hid": accel.hidden,
            "efa": self._efa.devices,
            "log": self._log.source,
            "no": dict(self._missing()),
        }

    def _missing(self) -> "tuple[tuple[str, str], ...]":
        found = []
        if self._log.why:
            found.append(("kernel log", self._log.why))
        if self._efa.error:
            found.append(("EFA counters", self._efa.error))
        if self._efa.late_since is not None:
            found.append(("EFA counters", "the card does not answer"))
        if self.accel.processes.why:
            found.append(("processes", self.accel.processes.why))
        return tuple(found)

    def _sample(self, now: float, stuck_changed: bool) -> "dict[str, object]":
        self._number += 1
        line: dict[str, object] = {"k": "s", "n": self._number, "t": round(time.time(), 2)}
        line["rev"] = self.accel.inventory.revision
        line["l"] = self._node.load()
        line["m"] = self._node.memory()
        line["d"] = self._node.stuck_count
        stuck = self._node.stuck(now)
        if stuck and (stuck_changed or self._everything or self._number % 5 == 0):
            line["D"] = stuck
        state = self.accel.state()
        if state is not None:
            line["dr"] = state
        line.update(self.accel.take())
        slow = {
            "p": self.accel.processes.take(self._everything),
            "mt": self._mounts.take(self._everything),
            "e": self._efa.take(self._everything),
            "km": self._log.take() or None,
            "kd": self._log.dropped or None,
        }
        line.update({key: value for key, value in slow.items() if value is not None})
        return line


def run(words: "list[str]", packed_pynvml: bytes) -> None:
    """Until nobody listens; never returns."""
    link = probe = None
    try:
        options = Options(words)
        os.nice(10)
        link = Link(options.seconds("block"), options.seconds("heartbeat"))
        probe = Probe(options, packed_pynvml)
        _loop(link, probe, options.seconds("interval"))
    except GoneError as error:
        why = str(error)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"[:300]
    if probe is not None:
        probe.nursery.end()
    with contextlib.suppress(OSError):
        os.write(1, compact({"k": "b", "why": why}) + b"\n")
    os._exit(0)


def _loop(link: Link, probe: Probe, interval_s: float) -> None:
    due = time.monotonic()
    answer_by: float | None = None  # until when the line of this tick waits for the driver
    silent = False
    poller = select.poll()
    while True:
        now = time.monotonic()
        if now >= due:
            probe.accel.ask(now)
            pace_s = interval_s * (SLOW_FACTOR if link.slow else 1)
            due = max(due + pace_s, now + pace_s / 2)
            answer_by = now + min(_MAX_GRACE_S, interval_s * _GRACE_SHARE)
        probe.step(now)
        if probe.accel.fell_silent != silent:
            silent = not silent
            # A tick whose question is out for long waits no longer for it.
            answer_by = now if silent else answer_by
        if answer_by is not None and (not probe.accel.waiting or now >= answer_by) and link.clear:
            link.send(probe.lines(now))
            answer_by = None
        link.push()
        _wait(poller, link, probe, _timeout(now, due, answer_by, probe, link))


def _timeout(now: float, due: float, answer_by: "float | None", probe: Probe, link: Link) -> float:
    wait = min(due - now, probe.wants(now), _MAX_WAIT_S)
    if answer_by is not None and link.clear:
        wait = min(wait, answer_by - now)
    return max(0.0, wait)


def _wait(poller: "select.poll", link: Link, probe: Probe, seconds: float) -> None:
    watched = set(link.readable())
    # The kernel log is read at ticks only: a chatty kernel must not wake us for every line.
    watched |= {child.fd for child in probe.nursery.children if child.fd >= 0 and child.awaited}
    for fd in watched:
        poller.register(fd, select.POLLIN)
    if not link.clear:
        poller.register(1, select.POLLOUT)
    try:
        ready = {fd for fd, _ in poller.poll(seconds * 1000 + 1)}
    finally:
        for fd in watched | {1}:
            with contextlib.suppress(KeyError):
                poller.unregister(fd)
    link.hear(ready)


def main(packed_pynvml: bytes) -> None:
    """The command line of the bundle: option words only."""
    run(sys.argv[1:], packed_pynvml)
