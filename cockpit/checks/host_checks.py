"""The machine under the GPUs: /dev/shm, clock, stuck processes, memory, file systems."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.checks.efa_devices import result
from cockpit.checks.facts import Facts, unanswered
from cockpit.checks.gpu_checks import events_of
from cockpit.checks.models import Result, Verdict
from cockpit.formats.kernel_log import KernelKind
from cockpit.gpu_models import MountReading, NodeReading
from cockpit.words import mib, moment, plural, span

_NO_READING = "this node cannot be asked for it (no python3)"
_CLOCK = re.compile(r"System time\s*: (\d+\.\d+) seconds (slow|fast) of NTP time")
_COMPLAINTS = (KernelKind.EFA, KernelKind.HUNG_TASK, KernelKind.LOCKUP, KernelKind.DISK)
_BAD = (KernelKind.EFA, KernelKind.DISK, KernelKind.LOCKUP)


def host(facts: Facts) -> Iterator[Result]:
    """Every check of the machine."""
    reading = facts.look.reading
    yield _shm(facts, reading)
    yield _clock(facts)
    yield _stuck(facts)
    yield from _kernel(facts, reading)
    yield _mounts(facts, reading)
    yield _disk(facts, reading)
    yield _memory_errors(facts)


def _shm(facts: Facts, reading: NodeReading | None) -> Result:
    """Full, emptied by logind behind the jobs' back, or with buffers of jobs that are gone."""
    check, parts = "host.shm", ("shm", "remove_ipc")
    full_pct = facts.limit(check, "full_pct")
    mounts = [mount for mount in reading.mounts if mount.path == "/dev/shm"] if reading else []  # noqa: S108
    used = _used_pct(mounts[0]) if mounts else None
    setting = next((row[1].replace(" ", "") for row in facts.part("remove_ipc").rows if len(row) == 2), "")
    left = [row[0] for row in facts.part("shm").rows]
    if used is not None and used >= full_pct:
        return result(facts, check, Verdict.FAIL, f"{used:.0f} % full", *left[:8], parts=parts)
    if setting.lower() in ("removeipc=yes", "removeipc=true", "removeipc=1"):
        says = "logind removes it when a user logs out (RemoveIPC=yes)"
        return result(facts, check, Verdict.WARN, says, parts=parts)
    if left and facts.known.jobs == ():
        says = f"{plural(len(left), 'buffer')} of NCCL left over, and no job here"
        return result(facts, check, Verdict.WARN, says, *left[:8], parts=parts)
    if used is None:
        return result(facts, check, Verdict.UNKNOWN, "it was not read" if reading else _NO_READING, parts=parts)
    return result(facts, check, Verdict.PASS, f"{used:.0f} % used", parts=parts)


def _clock(facts: Facts) -> Result:
    check, part, sync = "host.clock", facts.part("clock"), facts.part("clock_sync")
    text = "\n".join(part.lines)
    found = _CLOCK.search(text)
    if part.done and "Not synchronised" in text:
        return result(facts, check, Verdict.WARN, "not synchronised", *part.lines[:12], parts=("clock",))
    if part.done and found:
        off_ms = float(found[1]) * 1000
        verdict = Verdict.WARN if off_ms > facts.limit(check, "off_ms") else Verdict.PASS
        lines = part.lines[:12] if verdict is Verdict.WARN else ()
        return result(facts, check, verdict, f"{off_ms:.3g} ms {found[2]}", *lines, parts=("clock",))
    if sync.first in ("yes", "no"):
        bad = sync.first == "no"
        says = "not synchronised" if bad else "synchronised, by timedatectl"
        return result(facts, check, Verdict.WARN if bad else Verdict.PASS, says, parts=("clock_sync",))
    says = f"chronyc {unanswered(part) or 'tells no time'}"
    return result(facts, check, Verdict.UNKNOWN, says, parts=("clock", "clock_sync"))


def _stuck(facts: Facts) -> Result:
    """In D state at two looks; how long is told by how long the process lives, at most."""
    check, part = "host.stuck", facts.part("stuck")
    if not part.done:
        return result(facts, check, Verdict.UNKNOWN, unanswered(part), parts=("stuck",))
    rows = [row for row in part.rows if len(row) == 4]
    lines = [f"pid {row[0]} {row[1]} waits in {row[2] or '?'}, lives {_lives(row[3])}" for row in rows]
    driver = [row for row in rows if row[1].startswith("nvidia") or row[2].startswith(("nvidia", "os_acquire", "uvm_"))]
    if driver:
        says = f"{len(driver)} in the NVIDIA driver: it is wedged"
        return result(facts, check, Verdict.FAIL, says, *lines, parts=("stuck",), next_step="Reboot the node.")
    if rows:
        channels = sorted({row[2] for row in rows if row[2]})
        says = f"{len(rows)} wait in {', '.join(channels[:3]) or 'the kernel'}"
        return result(facts, check, Verdict.WARN, says, *lines, parts=("stuck",))
    return result(facts, check, Verdict.PASS, "none", parts=("stuck",))


def _lives(word: str) -> str:
    return span(float(word)) if word.isdecimal() else "?"


def _kernel(facts: Facts, reading: NodeReading | None) -> Iterator[Result]:
    """Out of memory, and what else the kernel complained of since it booted, within two hours."""
    if reading is None or not reading.log_source:
        why = reading.not_read.get("kernel log", "it cannot be read") if reading else _NO_READING
        for check in ("host.oom", "host.kernel"):
            yield result(facts, check, Verdict.UNKNOWN, f"kernel log: {why}")
        return
    boot = reading.boot_id.replace("-", "")
    events = [each for each in events_of(facts) if not each.boot or each.boot.replace("-", "") == boot]
    killed = [event for event in events if event.kind is KernelKind.OOM]
    lines = [f"{moment(event.at, reading.taken_at)} {event.text}" for event in killed]
    says = ", ".join(sorted({event.name for event in killed if event.name})[:4])
    if killed:
        yield result(
            facts, "host.oom", Verdict.WARN, f"{plural(len(killed), 'time')}: {says or 'see the lines'}", *lines
        )
    else:
        yield result(facts, "host.oom", Verdict.PASS, "none within 2 h")
    complaints = [event for event in events if event.kind in _COMPLAINTS and not event.clears]
    lines = [f"{moment(event.at, reading.taken_at)} {event.text}" for event in complaints]
    if not complaints:
        yield result(facts, "host.kernel", Verdict.PASS, "none within 2 h")
        return
    bad = any(event.kind in _BAD and event.severity.rank >= 2 for event in complaints)
    kinds = sorted({event.kind.value.replace("_", " ") for event in complaints})
    says = f"{plural(len(complaints), 'line')}: {', '.join(kinds)}"
    yield result(facts, "host.kernel", Verdict.FAIL if bad else Verdict.WARN, says, *lines)


def _mounts(facts: Facts, reading: NodeReading | None) -> Result:
    check = "host.mounts"
    if reading is None:
        return result(facts, check, Verdict.UNKNOWN, _NO_READING)
    silent = [mount for mount in reading.mounts if mount.hung_since is not None or mount.error]
    lines = [f"{mount.path} ({mount.kind} from {mount.source}): {mount.error or 'does not answer'}" for mount in silent]
    if silent:
        says = f"{', '.join(mount.path for mount in silent[:4])}: {silent[0].error or 'no answer'}"
        return result(facts, check, Verdict.FAIL, says, *lines)
    if not reading.mounts:
        return result(facts, check, Verdict.UNKNOWN, "none was read")
    return result(facts, check, Verdict.PASS, f"all {len(reading.mounts)} answer")


def _disk(facts: Facts, reading: NodeReading | None) -> Result:
    """Space and inodes; network file systems are somebody else's to clean, yet a job stops on them too."""
    check = "host.disk"
    if reading is None:
        return result(facts, check, Verdict.UNKNOWN, _NO_READING)
    shares: list[tuple[float, str]] = []
    for mount in reading.mounts:
        if mount.path == "/dev/shm":  # noqa: S108
            continue
        used, inodes = _used_pct(mount), _pct(mount.inodes_used, mount.inodes)
        if used is not None:
            shares.append((used, f"{mount.path} {used:.0f} % of {mib(mount.total_mib)}"))
        if inodes is not None:
            shares.append((inodes, f"{mount.path} {inodes:.0f} % of its inodes"))
    if not shares:
        return result(facts, check, Verdict.UNKNOWN, "no size was read")
    shares.sort(reverse=True)
    most = shares[0][0]
    limits = (("fail_pct", Verdict.FAIL), ("warn_pct", Verdict.WARN))
    verdict = next((word for name, word in limits if most >= facts.limit(check, name)), Verdict.PASS)
    over = [text for share, text in shares if share >= facts.limit(check, "warn_pct")]
    says = "; ".join(over[:3]) if over else f"at most {shares[0][1]}"
    return result(facts, check, verdict, says, *(text for _, text in shares[:16]))


def _used_pct(mount: MountReading) -> float | None:
    """As df counts: of what ordinary users may have."""
    if mount.used_mib is None or mount.available_mib is None:
        return None
    return _pct(mount.used_mib, mount.used_mib + mount.available_mib)


def _pct(part: float | None, whole: float | None) -> float | None:
    return 100.0 * part / whole if part is not None and whole else None


def _memory_errors(facts: Facts) -> Result:
    check, rows = "host.memory_errors", facts.part("edac").rows
    counts = {row[0]: int(row[1].strip()) for row in rows if len(row) == 2 and row[1].strip().isdecimal()}
    bad = {path: count for path, count in counts.items() if count}
    if not counts:
        return result(facts, check, Verdict.NA, "this machine does not tell", parts=("edac",))
    if bad:
        lines = [f"{path}: {count}" for path, count in bad.items()]
        return result(facts, check, Verdict.FAIL, f"{sum(bad.values())} uncorrected", *lines, parts=("edac",))
    return result(facts, check, Verdict.PASS, "none", parts=("edac",))
