"""What the probe tells of the machine itself: mounts, EFA, kernel messages, stuck processes."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.formats.probe_values import at, items, number, text, wall_time, whole
from cockpit.gpu_models import EfaDevice, KernelMessage, MountReading, StuckProcess

_MAX_MOUNTS = 64
_MAX_DEVICES = 64
_MAX_COUNTERS = 64
_MAX_MESSAGES = 200
_MAX_MESSAGE = 500
_MAX_REASONS = 32


def mounts(raw: object, now: float) -> tuple[MountReading, ...]:
    """The section `mt`."""
    found = []
    for row in items(raw, _MAX_MOUNTS):
        cells = items(row, 8)
        path, kind, source = (text(at(cells, place)) for place in range(3))
        if not path:
            continue
        mark = at(cells, 3)
        if mark == "?":
            since = wall_time(at(cells, 4), now)
            # Without a time that can be, it still does not answer.
            found.append(MountReading(path, kind, source, hung_since=since, error="" if since else "does not answer"))
        elif mark == "!":
            found.append(MountReading(path, kind, source, error=text(at(cells, 4)) or "no answer"))
        else:
            total, used, available, inodes, inodes_used = (number(at(cells, place)) for place in range(3, 8))
            found.append(MountReading(path, kind, source, total, used, available, inodes, inodes_used))
    return tuple(found)


def efa_devices(raw: object, before: list[EfaDevice]) -> list[EfaDevice]:
    """The devices of a hello; the values of those that are the same as before are kept."""
    found = []
    for place, row in enumerate(items(raw, _MAX_DEVICES)):
        cells = items(row, 3)
        names = [text(name, 60) for name in items(at(cells, 2), _MAX_COUNTERS)]
        device = EfaDevice(text(at(cells, 0), 60), text(at(cells, 1), 60), dict.fromkeys(names))
        old = before[place] if place < len(before) else None
        same = old is not None and old.name == device.name and list(old.counters) == list(device.counters)
        found.append(old if same and old is not None else device)
    return found


def efa_counters(devices: list[EfaDevice], raw: object) -> list[EfaDevice]:
    """The devices after a section `e`: [device, counter, value, ...] of what has changed."""
    found = list(devices)
    for row in items(raw, _MAX_DEVICES):
        cells = items(row, 1 + 2 * _MAX_COUNTERS)
        place = whole(at(cells, 0))
        if place is None or not 0 <= place < len(found):
            continue
        names = list(found[place].counters)
        values = dict(found[place].counters)
        for pair in range(1, len(cells) - 1, 2):
            counter = whole(cells[pair])
            if counter is not None and 0 <= counter < len(names):
                values[names[counter]] = whole(cells[pair + 1])
        found[place] = EfaDevice(found[place].name, found[place].gid, values)
    return found


def messages(raw: object, boot_id: str, now: float) -> tuple[KernelMessage, ...]:
    """The section `km`; a message without a boot id of its own is of this boot."""
    found = []
    for row in items(raw, _MAX_MESSAGES):
        cells = items(row, 3)
        when, line = wall_time(at(cells, 0), now), text(at(cells, 1), _MAX_MESSAGE)
        if when is not None and line:
            found.append(KernelMessage(when, line, text(at(cells, 2), 40) or boot_id))
    return tuple(found)


def stuck(raw: object) -> tuple[StuckProcess, ...]:
    """The section `D`."""
    found = []
    for row in items(raw, 32):
        cells = items(row, 4)
        pid, seen = whole(at(cells, 0)), number(at(cells, 3))
        if pid is not None:
            found.append(StuckProcess(pid, text(at(cells, 1), 40), text(at(cells, 2), 60), seen or 0.0))
    return tuple(found)


def reasons(raw: object) -> Mapping[str, str]:
    """What cannot be read, and why."""
    if not isinstance(raw, dict):
        return {}
    return {text(what, 60): text(why) for what, why in list(raw.items())[:_MAX_REASONS]}
