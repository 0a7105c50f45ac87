"""EFA's hw_counters, however they were printed, and what changed between two readings.

Forms: `grep -H . FILES` or `head` as `path:value`, `more FILES`, `rdma -p statistic show`, and the agent's own rows.
Counters are cumulative since the device's reset and may outlive a reboot: only differences say anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cockpit.formats.probe_values import at, items, text
from cockpit.text import printable

Counters = Mapping[str, Mapping[str, int | None]]  # device -> counter -> value; `dev.` before those of the device

_PATH = re.compile(r"/sys/class/infiniband/([^/\s]{1,64})/(ports/\d+/)?hw_counters/(\w{1,64})")
_LINK = re.compile(r"\s*link ([^/\s]{1,64})/\d+")
_NAMED = re.compile(r"\s*([a-z_]{2,64}) (\d{1,20})\s*")
_NO_COUNTER = "lifespan"  # how long the driver caches, in ms
_MOST = 20_000

# The counters whose growth is a sign of trouble, worst first. Those of InfiniBand do not exist for EFA.
REMOTE = ("unresponsive_remote_events", "impaired_remote_conn_events")
ERRORS = ("rdma_read_wr_err", "rdma_write_wr_err")
TIMEOUTS, DROPS, RETRANSMITTED, SENT = "retrans_timeout_events", "rx_drops", "retrans_pkts", "tx_pkts"
STUCK = ("dev.no_completion_cmds", "no_completion_cmds")
REFUSED = ("cmds_err", "reg_mr_err", "alloc_pd_err", "create_qp_err", "create_cq_err", "create_ah_err")


def parse_counters(source: str | Iterable[str]) -> Counters:
    """The counters of any of the printed forms; what is none is passed over."""
    found: dict[str, dict[str, int | None]] = {}
    place: tuple[str, str] | None = None  # of the value on a line to come (more), or (link, "") of rdma's
    for line in (source.splitlines() if isinstance(source, str) else list(source))[:_MOST]:
        if path := _PATH.search(line):
            device, counter = printable(path[1]), path[3] if path[2] else f"dev.{path[3]}"
            place = (device, counter)
            value = line[path.end() :].lstrip(":").strip()
            if value.isdecimal():
                _put(found, device, counter, int(value[:20]))
                place = None
        elif link := _LINK.fullmatch(line.rstrip()):
            place = (printable(link[1]), "")
        elif place and not place[1] and (named := _NAMED.fullmatch(line)):
            _put(found, place[0], named[1], int(named[2]))
        elif place and place[1] and line.strip().isdecimal():
            _put(found, *place, int(line.strip()[:20]))
            place = None
    return found


def _put(found: dict[str, dict[str, int | None]], device: str, counter: str, value: int | None) -> None:
    if counter.removeprefix("dev.") != _NO_COUNTER:
        found.setdefault(device, {})[counter] = value


def counters_of_rows(raw: object) -> Counters:
    """The agent's rows: [device, GID, counter names, values]."""
    found: dict[str, dict[str, int | None]] = {}
    for row in items(raw, 64):
        cells = items(row, 4)
        name = text(at(cells, 0), 60)
        names, values = items(at(cells, 2), 128), items(at(cells, 3), 128)
        if name:
            pairs = zip(names, values, strict=False)
            found[name] = {text(counter, 60): value if type(value) is int else None for counter, value in pairs}
    return found


@dataclass(frozen=True, slots=True)
class Window:
    """What the counters did within `seconds`. `grown` holds those that grew: device -> counter -> by how much."""

    seconds: float
    devices: tuple[str, ...] = ()
    grown: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    reset: tuple[str, ...] = ()  # devices of which a counter went down: reset meanwhile, so nothing is known
    has_srd: bool = False  # whether the retransmission counters exist: driver 2.17 and Nitro v4 at least

    def growth(self, *counters: str) -> dict[str, int]:
        """Devices on which any of these grew, and by how much in all."""
        sums = {device: sum(values.get(name, 0) for name in counters) for device, values in self.grown.items()}
        return {device: value for device, value in sums.items() if value > 0}

    @property
    def total(self) -> dict[str, int]:
        """Every counter that grew, over all devices."""
        found: dict[str, int] = {}
        for values in self.grown.values():
            for name, value in values.items():
                found[name] = found.get(name, 0) + value
        return found


def window(before: Counters, after: Counters, seconds: float) -> Window:
    """The differences. Presence is decided by the files, never by a table of types."""
    grown: dict[str, dict[str, int]] = {}
    reset: list[str] = []
    for device, values in after.items():
        old = before.get(device, {})
        deltas = {
            name: value - earlier
            for name, value in values.items()
            if value is not None and (earlier := old.get(name)) is not None
        }
        if any(delta < 0 for delta in deltas.values()):
            reset.append(device)
        elif found := {name: delta for name, delta in deltas.items() if delta}:
            grown[device] = found
    has_srd = any(TIMEOUTS in values for values in after.values())
    return Window(seconds, tuple(after), grown, tuple(reset), has_srd)
