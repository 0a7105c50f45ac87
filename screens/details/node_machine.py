"""What a node's probe tells of the machine: its last events, file systems, EFA devices, load. Imports no Textual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow
from cockpit.formats.kernel_log import KernelEvent, KernelKind, health_of
from cockpit.gpu_models import DriverState, EfaDevice, MountReading, NodeReading
from cockpit.models import Health
from cockpit.sources.gpus import NodeWatch
from cockpit.words import mib, moment, span
from screens.details.parts import gpu_link, label
from screens.lines import Line, Link, Piece, Subject, fact, facts, section
from screens.unread import unread_lines
from themes import state_token

EVENTS_MAX = 20
DEVICES_MAX = 8
_NEARLY_FULL_PCT = 90.0
_KERNEL_LOG = "kernel log"  # as the probe names it
_DRIVER_BAD = {
    DriverState.SILENT: Health.UNKNOWN,
    DriverState.SLOW: Health.WARN,
    **dict.fromkeys((DriverState.HUNG, DriverState.CRASHED, DriverState.FAILED), Health.CRITICAL),
}
# Counters of the EFA driver that tell of trouble; all others count what is sent and received.
_BAD = (
    "rx_drops rdma_read_wr_err rdma_write_wr_err retrans_timeout_events impaired_remote_conn_events"
    " unresponsive_remote_events dev.cmds_err dev.no_completion_cmds dev.reg_mr_err"
)
_BAD_COUNTERS = _BAD.split()


def machine_lines(cluster: Cluster, name: str, rows: Sequence[GpuRow]) -> list[Line]:
    """Nothing for a node without a probe; what the probe may not read is said with the reason."""
    watch = cluster.view.fleet.nodes.get(name) if cluster.view.fleet else None
    reading = watch.reading if watch else None
    if watch is None or reading is None:
        return []
    return [
        *[[], section("last events"), *_events(cluster, watch, reading, rows)],
        *[[], section("machine"), *_machine(watch, reading, cluster.clock.steady())],
        *_mounts(reading),
        *_efa(reading.efa),
        *unread_lines(reading),
    ]


def _events(cluster: Cluster, watch: NodeWatch, reading: NodeReading, rows: Sequence[GpuRow]) -> list[Line]:
    """Newest first: what the kernel and the driver told, the boot, and since when the probe is silent."""
    now = reading.taken_at
    told: list[tuple[float, Line]] = []
    by_bus = {row.sample.gpu.pci: row for row in rows if row.sample and row.sample.gpu.pci}
    for event in watch.events.events:
        told.append((event.at or 0.0, [_at(event.at, now), *event_pieces(event, by_bus, reading.boot_id)]))
    if reading.booted_at is not None:
        told.append((reading.booted_at, [_at(reading.booted_at, now), "booted"]))
    lines = [line for _, line in sorted(told, key=lambda pair: -pair[0])[:EVENTS_MAX]]
    if watch.fault is not None and watch.since is not None:
        ago = span(cluster.clock.steady() - watch.since)
        lines.insert(0, [(f"  the probe has failed for {ago}: {watch.fault.line()}", "warning")])
    if not reading.log_source:
        why = reading.not_read.get(_KERNEL_LOG, "")
        lines.append([(f"  the kernel's log is not readable{f': {why}' if why else ''}", "dim")])
    elif len(told) <= 1:
        lines.append([("  none of the kernel's in the last two hours", "dim")])
    return lines


def _at(at: float | None, now: float) -> Piece:
    return f"  {moment(at, now):<12} ", "dim"


def event_pieces(event: KernelEvent, by_bus: Mapping[str, GpuRow], boot_id: str) -> list[Piece]:
    """What an event says; its code leads to its explanation, its bus to the GPU."""
    pieces: list[Piece] = []
    if event.bus in by_bus:
        pieces += [gpu_link(by_bus[event.bus], f"GPU {by_bus[event.bus].slot}"), "  "]
    token = "" if event.clears else state_token(health_of(event.severity))
    if event.code is not None:
        kind = "sxid" if event.kind is KernelKind.SXID else "xid"
        pieces += [Link(f"{'SXid' if kind == 'sxid' else 'Xid'} {event.code}", token, Subject(kind, str(event.code)))]
        pieces.append("  ")
    pieces.append((event.text, "" if event.code is not None else token))
    if event.boot and boot_id and event.boot != boot_id:
        pieces.append(("  (before the last boot)", "dim"))
    return pieces


def _machine(watch: NodeWatch, reading: NodeReading, steady: float) -> list[Line]:
    driver = reading.driver
    load = "  ".join(f"{value:.1f}" for value in reading.load)
    memory = f"{mib(reading.mem_available_mib)} of {mib(reading.mem_total_mib)} available"
    words = " · ".join(word for word in (driver.state.value, driver.version, driver.why) if word)
    stuck = "; ".join(f"{one.command} ({one.pid}) in {one.wait_channel or '?'}" for one in reading.stuck[:4])
    uptime = "" if reading.uptime_s is None else span(reading.uptime_s)
    seen = "" if watch.seen_at is None else f"{span(steady - watch.seen_at)} ago"
    return [
        fact("driver", words, state_token(_DRIVER_BAD.get(driver.state, Health.OK))),
        *facts(
            [
                ("load", f"{load}  on {reading.cpus} CPUs" if reading.cpus and load else load),
                ("memory", memory if reading.mem_total_mib else ""),
                ("up for", uptime),
                ("kernel", reading.kernel),
                ("stuck", f"{reading.stuck_count} in the kernel: {stuck}" if reading.stuck_count else ""),
                ("read", seen),
            ]
        ),
    ]


def _mounts(reading: NodeReading) -> list[Line]:
    """File systems, those in trouble first, then the fullest."""
    if not reading.mounts:
        return []
    mounts = sorted(reading.mounts, key=lambda mount: (not (mount.hung_since or mount.error), -(_used(mount) or 0.0)))
    return [[], section("file systems"), *[_mount(mount, reading.taken_at) for mount in mounts]]


def _used(mount: MountReading) -> float | None:
    """Per cent, as df counts it."""
    used, available = mount.used_mib, mount.available_mib
    return 100 * used / (used + available) if used is not None and available is not None and used + available else None


def _mount(mount: MountReading, now: float) -> Line:
    kind = (f"  {mount.kind} {mount.source}".rstrip(), "dim")
    if mount.hung_since is not None:
        return [label(mount.path), (f"does not answer since {span(now - mount.hung_since)}", "critical"), kind]
    if mount.error:
        return [label(mount.path), (f"error: {mount.error}", "warning"), kind]
    used = _used(mount)
    if used is None:
        return [label(mount.path), ("not read", "dim"), kind]
    token = "warning" if used >= _NEARLY_FULL_PCT else ""
    return [label(mount.path), (f"{used:.0f} % of {mib(mount.total_mib)} used", token), kind]


def _efa(devices: Sequence[EfaDevice]) -> list[Line]:
    """How many there are, and those whose counters tell of trouble since the device's last reset."""
    if not devices:
        return []
    bad = {device.name: words for device in devices if (words := _bad_words(device))}
    names = ", ".join(device.name for device in devices[:4]) + (" …" if len(devices) > 4 else "")
    lines: list[Line] = [[], section("EFA"), fact("devices", f"{len(devices)}: {names}")]
    lines += [[label(name), words] for name, words in list(bad.items())[:DEVICES_MAX]]
    if len(bad) > DEVICES_MAX:
        lines.append([(f"  and {len(bad) - DEVICES_MAX} more with such counts", "dim")])
    if bad:
        lines.append([("  counted since the devices' last reset: they say nothing of when", "dim")])
    return lines


def _bad_words(device: EfaDevice) -> str:
    return ", ".join(f"{name} {value}" for name in _BAD_COUNTERS if (value := device.counters.get(name)))
