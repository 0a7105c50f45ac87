"""EFA's counters. One read makes the driver ask the card, and a stuck card blocks the reader: in a child."""

import glob
import json
import os

from cockpit.probe.agent.child import Nursery, answer
from cockpit.probe.agent.question import Question
from cockpit.probe.agent.values import read_text

_LIFESPAN = "lifespan"  # how long the driver caches, no counter
_MAX_DEVICES = 64


class Efa:
    """Counters per device; told are only those that have changed."""

    def __init__(self, nursery: Nursery, sysfs: str, every_s: float, deadline_s: float) -> None:
        self._root = f"{sysfs}/class/infiniband"
        self.devices: list[list[object]] = []  # name, GID, names of counters
        self.revision = 0
        self._values: list[list[int | None]] = []
        self._told: list[list[int | None]] = []
        self._question = Question(nursery, answer(lambda: read_all(self._root)), every_s, deadline_s)
        self._fresh = False
        self.error = ""

    @property
    def late_since(self) -> "float | None":
        """When the reading that has had no answer was begun, in wall time."""
        return self._question.late_since

    def step(self, now: float) -> None:
        """Start and collect."""
        if self._question.child is None and now >= self._question.due and not os.path.isdir(self._root):
            self._question.due = now + 10 * self._question.every_s
            return
        child = self._question.step(now)
        if child is None:
            return
        try:
            told = json.loads(child.out.decode("utf-8", "replace"))
        except ValueError:
            told = {"error": child.ending()}
        if isinstance(told, dict):
            self.error = str(told.get("error", ""))
            return
        self.error = ""
        self._take(told)

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        return self._question.wants(now) if self._question.child is not None else 60.0

    def take(self, everything: bool) -> "list[list[object]] | None":
        """[device, counter, value, counter, value, ...] of what has changed; None when nothing was read."""
        if everything:
            self._told = []
        if not self._fresh and not everything:
            return None
        self._fresh = False
        rows: list[list[object]] = []
        for device, values in enumerate(self._values):
            old = self._told[device] if device < len(self._told) else []
            row: list[object] = [device]
            for place, value in enumerate(values):
                if place >= len(old) or old[place] != value:
                    row += [place, value]
            if len(row) > 1:
                rows.append(row)
        self._told = [list(values) for values in self._values]
        return rows

    def _take(self, told: "list[list[object]]") -> None:
        devices = [[name, gid, names] for name, gid, names, _ in told]
        if devices != self.devices:
            self.devices = devices
            self.revision += 1
        self._values = [list(values) for _, _, _, values in told if isinstance(values, list)]
        self._fresh = True


def read_all(root: str) -> "list[list[object]]":
    """[name, GID, counter names, values] of every EFA device; a counter that cannot be read is None."""
    found: list[list[object]] = []
    for name in sorted(os.listdir(root))[:_MAX_DEVICES]:
        base = f"{root}/{name}"
        driver = os.path.basename(os.path.realpath(f"{base}/device/driver"))
        if driver != "efa" and read_text(f"{base}/device/vendor") != "0x1d0f":
            continue
        names: list[str] = []
        values: list[int | None] = []
        # On older kernels the counters of the device lie among those of the port.
        for prefix, pattern in (("", "ports/*/hw_counters/*"), ("dev.", "hw_counters/*")):
            for path in sorted(glob.glob(f"{base}/{pattern}")):
                counter = os.path.basename(path)
                if counter != _LIFESPAN:
                    names.append(prefix + counter)
                    values.append(_number(read_text(path)))
        found.append([name, read_text(f"{base}/ports/1/gids/0"), names, values])
    return found


def _number(text: str) -> "int | None":
    return int(text) if text.isdigit() else None
