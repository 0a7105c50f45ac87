"""One look at a node for its checks: every part at once, each with its own deadline, one JSON line with what came.

What is asked comes as the module `asked` (see probe/look.py). A part that hangs costs only itself.
"""

import json
import os
import select
import sys
import time

from cockpit.probe.agent import asked
from cockpit.probe.agent.child import Child, Nursery
from cockpit.probe.agent.main import Probe
from cockpit.probe.agent.options import Options
from cockpit.probe.agent.parts import body_of
from cockpit.probe.agent.values import compact, decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    Said = dict[str, object]

PROTOCOL = 1
_AT_ONCE = 8
_TICK_S = 0.5
_MAX_LINES = 40
_MAX_OUTPUT = 64 * 1024


class Parts:
    """Runs the parts, some at once; `said` is what each has come to."""

    def __init__(self, parts: "dict[str, dict[str, object]]", options: Options) -> None:
        self.said: dict[str, Said] = {}
        self._options = options
        self._left = list(parts.items())
        self._running: dict[str, tuple[Child, float, float]] = {}  # child, began, deadline
        self.nursery = Nursery()

    @property
    def done(self) -> bool:
        """Whether nothing is left to wait for."""
        return not self._left and not self._running

    def step(self, now: float) -> None:
        """Start what may start, collect what has ended, give up what is late."""
        while self._left and len(self._running) < _AT_ONCE:
            self._start(*self._left.pop(0), now)
        for name, (child, began, until) in list(self._running.items()):
            child.read()
            if child.eof and child.reap():
                self._end(name, {"rc": child.code, "out": decode(bytes(child.out))[:_MAX_OUTPUT]}, now - began)
            elif now > until:
                # Without waiting for it: what hangs in the kernel stays, and is not ours to wait for.
                child.kill()
                self._end(name, {"late": True, "out": decode(bytes(child.out))[:_MAX_OUTPUT]}, now - began)

    def stop(self, now: float) -> None:
        """No more time: what runs is late, what was not started was not asked."""
        for name, (_, began, _) in list(self._running.items()):
            self._end(name, {"late": True, "out": ""}, now - began)
        for name, _ in self._left:
            self.said[name] = {"late": True, "out": "", "s": 0}
        self._left = []
        self.nursery.end()

    def _start(self, name: str, part: "dict[str, object]", now: float) -> None:
        try:
            child = self.nursery.start(body_of(part, self._options))
            self._running[name] = (child, now, now + float(str(part["timeout_s"])))
        except (OSError, KeyError, ValueError) as error:
            self.said[name] = {"rc": 126, "out": f"{type(error).__name__}: {error}"[:200], "s": 0}

    def _end(self, name: str, said: "Said", took_s: float) -> None:
        self._running.pop(name)
        said["s"] = round(took_s, 2)
        self.said[name] = said


class Reading:
    """The probe's own lines, until everything that it reads has been told once."""

    def __init__(self, options: Options, packed_pynvml: bytes, ask_driver: bool) -> None:
        self.lines: list[str] = []
        self.done = False
        self.probe = Probe(options, packed_pynvml)
        self._ask_driver = ask_driver
        self._due = 0.0
        self._seen: set[str] = set()

    def step(self, now: float) -> None:
        """A line at every tick."""
        if self.done:
            return
        first = not self._due
        if self._ask_driver and (first or now >= self._due):
            self.probe.accel.ask(now)
        self.probe.step(now)
        if now < self._due:
            return
        self._due = now + _TICK_S
        if not first:
            self._take(self.probe.lines(now))

    def _take(self, told: bytes) -> None:
        for line in told.split(b"\n"):
            self.lines.append(decode(line))
            found = json.loads(decode(line))
            self._seen |= set(found)
            if found.get("k") == "s":
                self.done = self._whole(found)
        self.done = self.done or len(self.lines) >= _MAX_LINES

    def _whole(self, sample: "Said") -> bool:
        """Whether nothing more is to come."""
        state = sample.get("dr")
        word = str(state[0]) if isinstance(state, list) and state else "ok"
        driver = (
            not self._ask_driver or word in ("hung", "crashed", "none") or ("G" in self._seen and "g" in self._seen)
        )
        driver = driver or (word == "smi" and "c" in self._seen) or (word == "neuron" and "g" in self._seen)
        return driver and "mt" in self._seen and self.probe.settled and "km" not in sample


def main(packed_pynvml: bytes) -> None:
    """Look once, print, leave; never returns."""
    options = Options(sys.argv[1:])
    os.nice(10)
    asking = json.loads(asked.ASKED)
    began = time.monotonic()
    until = began + float(asking["deadline_s"])
    parts = Parts(asking["parts"], options)
    reading = Reading(options, packed_pynvml, bool(asking["driver"])) if asking["reading"] else None
    while time.monotonic() < until and not (parts.done and (reading is None or reading.done)):
        now = time.monotonic()
        parts.step(now)
        if reading is not None:
            reading.step(now)
        _wait(parts, reading)
    parts.stop(time.monotonic())
    told = {"k": "look", "v": PROTOCOL, "t": round(time.time(), 2), "host": os.uname().nodename}
    told.update({"s": round(time.monotonic() - began, 2), "parts": parts.said, "py": sys.version.split()[0]})
    if reading is not None:
        told["reading"] = reading.lines
        reading.probe.nursery.end()
    _write(compact(told) + b"\n")
    os._exit(0)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _wait(parts: Parts, reading: "Reading | None") -> None:
    children = list(parts.nursery.children)
    if reading is not None:
        children += reading.probe.nursery.children
    poller = select.poll()
    for child in children:
        if child.fd >= 0 and child.awaited:
            poller.register(child.fd, select.POLLIN)
    poller.poll(100)
    parts.nursery.reap()
