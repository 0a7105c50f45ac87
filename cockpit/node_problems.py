"""What is wrong with the machines under the GPUs: drivers, file systems, stuck processes, probes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cockpit.fleet import watch_freshness
from cockpit.fleet_state import Fleet, about_nodes, earliest, of_several
from cockpit.formats.hostlist import brief, fold
from cockpit.gpu_models import DriverState, MountReading
from cockpit.kernel_problems import of_kernels
from cockpit.models import FaultKind, Freshness, Health, Problem
from cockpit.sources.gpus import NodeWatch
from cockpit.words import span

FULL_PCT = 90.0
FULL_INODES_PCT = 95.0
STUCK_S = 300.0

_DRIVER_BAD = {
    DriverState.HUNG: (Health.CRITICAL, "driver not answering", "look for Xid 119/120 and D-state processes; reboot"),
    DriverState.CRASHED: (Health.CRITICAL, "the driver's library crashes", "reboot the node"),
    DriverState.FAILED: (Health.CRITICAL, "the driver refuses", "reboot when idle; a new driver under an old module?"),
    DriverState.SLOW: (Health.WARN, "the driver answers slowly", "watch it; a driver that grows slow often hangs next"),
}


def of_nodes(fleet: Fleet) -> Iterator[Problem]:
    """Every problem of drivers, file systems, kernels and probes, in no order."""
    yield from _drivers(fleet)
    yield from _mounts(fleet)
    yield from _stuck(fleet)
    yield from of_kernels(fleet)
    yield from _probes(fleet)


def _drivers(fleet: Fleet) -> Iterator[Problem]:
    for name, watch in fleet.reading.nodes.items():
        driver = watch.reading.driver if watch.reading else None
        bad = _DRIVER_BAD.get(driver.state) if driver else None
        if driver is not None and bad is not None:
            health, title, step = bad
            title += (f": {driver.why}" if driver.why else "") + fleet.as_of(watch)
            yield Problem(f"driver:{name}", health, name, title, step, since=fleet.our_time(watch, driver.since),
                          about=about_nodes([name]))  # fmt: skip


def _mounts(fleet: Fleet) -> Iterator[Problem]:
    """Full, hung or failing file systems; the same one on several nodes is one problem."""
    full: dict[tuple[str, str], list[tuple[NodeWatch, str]]] = defaultdict(list)
    hung: dict[str, list[tuple[NodeWatch, MountReading]]] = defaultdict(list)
    failing: dict[str, list[tuple[NodeWatch, str]]] = defaultdict(list)
    for watch in fleet.reading.nodes.values():
        for mount in watch.reading.mounts if watch.reading else ():
            if mount.hung_since is not None:
                hung[mount.path].append((watch, mount))
            elif mount.error:
                # A login that may not look at a file system says nothing about it.
                if not _refused(mount.error):
                    failing[mount.path].append((watch, mount.error))
            elif words := _how_full(mount):
                shared = mount.kind in ("lustre", "nfs", "nfs4")
                full[mount.path, mount.source if shared else watch.node].append((watch, words))
    yield from _hung(hung, fleet)
    for path, errors in failing.items():
        title = f"{path} answers with an error: {errors[0][1]}"
        step = "unmount and mount it again, or reboot the node; jobs there fail at their first access"
        watches = [watch for watch, _ in errors]
        yield of_several(f"mount:error:{path}", Health.CRITICAL, watches, title, step, fleet)
    for (path, where), cases in full.items():
        step = "free space now: jobs die of a full file system at their next checkpoint"
        watches = [watch for watch, _ in cases]
        yield of_several(f"mount:full:{path}:{where}", Health.WARN, watches, f"{path} is {cases[0][1]}", step, fleet)


def _hung(hung: dict[str, list[tuple[NodeWatch, MountReading]]], fleet: Fleet) -> Iterator[Problem]:
    for path, found in hung.items():
        title = f"{path} does not answer"
        step = "whatever touches it waits: check the file system, then the nodes' kernel logs"
        since = earliest(fleet.our_time(watch, mount.hung_since) for watch, mount in found)
        watches = [watch for watch, _ in found]
        yield of_several(f"mount:hung:{path}", Health.CRITICAL, watches, title, step, fleet, since=since)


def _refused(why: str) -> bool:
    return any(word in why.lower() for word in ("permission denied", "not permitted", "eacces", "eperm"))


def _how_full(mount: MountReading) -> str:
    used, available = mount.used_mib, mount.available_mib
    if used is not None and available is not None and used + available > 0:
        pct = 100 * used / (used + available)  # as df counts it: what is kept for root is nobody's
        if pct >= FULL_PCT:
            return f"{pct:.0f} % full"
    inodes, inodes_used = mount.inodes, mount.inodes_used
    if inodes and inodes_used is not None and 100 * inodes_used / inodes >= FULL_INODES_PCT:
        return f"out of inodes: {100 * inodes_used / inodes:.0f} % used"
    return ""


def _stuck(fleet: Fleet) -> Iterator[Problem]:
    """Processes in uninterruptible sleep for minutes; all nodes that have some are one problem."""
    found: list[NodeWatch] = []
    words: list[str] = []
    begins: list[float | None] = []
    for watch in fleet.reading.nodes.values():
        reading = watch.reading
        stuck = [one for one in reading.stuck if one.seen_s > STUCK_S] if reading else []
        if reading is not None and stuck:
            found.append(watch)
            words += [f"{watch.node}: {one.command} ({one.pid}) in {one.wait_channel or '?'}" for one in stuck]
            begins.append(fleet.our_time(watch, reading.taken_at - max(one.seen_s for one in stuck)))
    if found:
        title = f"{len(words)} process{'es' if len(words) > 1 else ''} stuck in the kernel for over {span(STUCK_S)}"
        step = "no signal ends them: mend what they wait for (file system, driver), else reboot the node"
        yield of_several("stuck", Health.WARN, found, title, step, fleet,
                          evidence="; ".join(words[:8]), since=earliest(begins))  # fmt: skip


_FAULT_WORDS = {
    FaultKind.HOST_KEY: "its host key is not accepted",
    FaultKind.AUTH: "the login is refused",
    FaultKind.UNREACHABLE: "not reached",
    FaultKind.TIMEOUT: "no answer in time",
}


def _probes(fleet: Fleet) -> Iterator[Problem]:
    """Nodes nobody hears from, those with the same kind of fault as one: what a fault says may change each time."""
    alike: dict[str, list[NodeWatch]] = defaultdict(list)
    for watch in fleet.reading.nodes.values():
        live = watch_freshness(watch, fleet.steady) is Freshness.LIVE
        if not live and (watch.fault is not None or watch.seen_at is not None) and not _slurm_misses(watch, fleet):
            alike[watch.fault.kind.value if watch.fault else "silent"].append(watch)
    for kind, watches in alike.items():
        yield _probe_problem(kind, watches, fleet)
    if fleet.reading.left_out:
        names = fold(fleet.reading.left_out)
        title = f"{len(fleet.reading.left_out)} nodes are not watched: `nodes.max` is reached"
        yield Problem("probe:left_out", Health.WARN, brief(fleet.reading.left_out), title,
                      "raise `nodes.max` in the config", names, about=about_nodes(fleet.reading.left_out))  # fmt: skip


def _slurm_misses(watch: NodeWatch, fleet: Fleet) -> bool:
    """Whether Slurm itself says that the node does not respond: then that is the problem, and this part of it."""
    node = fleet.nodes.get(watch.node)
    return node is not None and fleet.nodes_live and node.state.has("not_responding")


def _probe_problem(kind: str, watches: list[NodeWatch], fleet: Fleet) -> Problem:
    fault, whys = watches[0].fault, {watch.fault.why for watch in watches if watch.fault}
    if fault is None:
        words = "its probe has fallen silent"
    else:
        words = _FAULT_WORDS.get(fault.kind) or (fault.why if len(whys) == 1 else "the probe fails")
    return Problem(
        key=f"probe:{kind}",
        health=Health.WARN,
        subject=brief(watch.node for watch in watches),
        title=f"no fresh GPU readings: {words}",
        next_step=fault.next_step if fault else "",
        evidence="; ".join(f"{watch.node}: {watch.fault.why}" for watch in watches[:8] if watch.fault),
        since=earliest(fleet.our_wall(watch.since if watch.fault else watch.seen_at) for watch in watches),
        count=len(watches),
        about=about_nodes(watch.node for watch in watches),
    )
