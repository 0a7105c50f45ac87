"""GPU checks of `cockpit check`, over the same rules as the panes use: one reading, one meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from cockpit.catalog.checks import check_fact
from cockpit.catalog.xids import xid
from cockpit.checks.efa_devices import result
from cockpit.checks.facts import Facts, unanswered
from cockpit.checks.models import Result, Verdict, worst
from cockpit.config import Rules
from cockpit.formats.kernel_log import KernelEvent, KernelKind, health_of
from cockpit.gpu_models import DriverState, GpuSample, NodeReading, known
from cockpit.gpu_rules import Finding, findings
from cockpit.models import Health
from cockpit.sources.gpu_events import NodeEvents
from cockpit.text import printable
from cockpit.words import moment, plural

_NVIDIA, _GPU_CLASSES, _BRIDGE = "0x10de", ("0x0302", "0x0300"), "0x0680"
_VERDICTS = {Health.CRITICAL: Verdict.FAIL, Health.WARN: Verdict.WARN, Health.UNKNOWN: Verdict.UNKNOWN}
_OF_CODE = {
    "recovery": "gpu.recovery",
    "remap_failed": "gpu.remap",
    "remap_pending": "gpu.remap",
    "ecc": "gpu.ecc",
    "nvlink": "gpu.nvlink",
    "hot": "gpu.temperature",
    "throttle": "gpu.throttle",
    "lost": "gpu.count",
    "reset": "gpu.count",
    "not_readable": "gpu.count",
    "hidden": "gpu.count",
}
_ANSWERS = (DriverState.OK, DriverState.SMI, DriverState.NEURON)
_READINGS: dict[str, Callable[[GpuSample], object]] = {
    "gpu.recovery": lambda gpu: known(gpu.recovery_action),
    "gpu.ecc": lambda gpu: known(gpu.ecc_uncorrected),
    "gpu.remap": lambda gpu: known(gpu.remap_pending),
    "gpu.nvlink": lambda gpu: known(gpu.nvlinks_down),
    "gpu.throttle": lambda gpu: known(gpu.throttle_mask),
    "gpu.temperature": lambda gpu: known(gpu.temp_c),
}
_ALL = ("gpu.driver", "gpu.count", *_READINGS, "gpu.pcie", "gpu.xid", "gpu.leftovers")
_WELL = {
    "gpu.recovery": "none is asked for",
    "gpu.ecc": "none",
    "gpu.remap": "none pending, none failed",
    "gpu.nvlink": "none is down",
    "gpu.throttle": "no clock is held down by heat or power",
    "gpu.temperature": "none above the rule",
}


def gpus(facts: Facts) -> Iterator[Result]:
    """Every GPU check; all of them not applicable on a node that has none by every account."""
    reading = facts.look.reading
    if reading is None:
        for check in _ALL:
            yield result(facts, check, Verdict.UNKNOWN, "this node cannot be asked for it (no python3)")
        return
    if _none_expected(facts, reading):
        for check in _ALL:
            yield result(facts, check, Verdict.NA, "no GPUs here")
        return
    yield _driver(facts, reading)
    yield _count(facts, reading)
    events = events_of(facts)
    found = [(gpu, finding) for gpu in reading.gpus for finding in findings(gpu, (), Rules(facts.known.gpu_hot_c))]
    for check in _READINGS:
        yield _reading(facts, check, reading, found)
    yield _pcie(facts, reading)
    yield _xids(facts, reading, events)
    yield _leftovers(facts, reading)


def _none_expected(facts: Facts, reading: NodeReading) -> bool:
    absent = reading.driver.state in (DriverState.ABSENT, DriverState.UNKNOWN) and not reading.gpus
    return absent and not reading.pci_gpus and not facts.known.gpus and not (facts.type and facts.type.count)


def _driver(facts: Facts, reading: NodeReading) -> Result:
    driver = reading.driver
    if driver.state in _ANSWERS:
        took = f", in {driver.answer_ms:.0f} ms" if driver.answer_ms is not None else ""
        by = "" if driver.state is DriverState.OK else f" by {driver.state.value}"
        says = f"answers{by}{took}{f', driver {driver.version}' if driver.version else ''}"
        return result(facts, "gpu.driver", Verdict.PASS, says)
    if driver.state in (DriverState.SLOW, DriverState.SILENT, DriverState.STARTING):
        return result(facts, "gpu.driver", Verdict.WARN, f"no answer yet ({driver.state.value})", driver.why)
    if driver.state is DriverState.UNKNOWN:
        return result(facts, "gpu.driver", Verdict.UNKNOWN, "not asked", driver.why)
    return result(facts, "gpu.driver", Verdict.FAIL, f"{driver.state.value}: {driver.why or 'no reason told'}")


def _count(facts: Facts, reading: NodeReading) -> Result:
    """The driver's list, the bus, Slurm and the instance type side by side; any two that differ are a finding."""
    lost = [gpu for gpu in reading.gpus if gpu.lost is not None]
    counts = {
        "driver": len(reading.gpus) - len(lost) if reading.driver.state in _ANSWERS else None,
        "PCI bus": len(reading.pci_gpus) or None,
        "Slurm": facts.known.gpus,
        facts.type_name or "type": facts.type.count if facts.type else None,
    }
    told = {name: count for name, count in counts.items() if count is not None}
    says = " · ".join(f"{name} {count}" for name, count in told.items())
    lines = [f"{_name(gpu)}: {gpu.lost.why or gpu.lost.kind.value}" for gpu in lost if gpu.lost is not None]
    lines += [f"{_name(gpu)}" for gpu in reading.gpus if gpu.lost is None][:16]
    if len(reading.hidden_gpus) and len(reading.hidden_gpus) >= len(lost) > 0:
        says = f"{plural(len(lost), 'GPU')} kept from this login"
        return result(facts, "gpu.count", Verdict.UNKNOWN, says, *lines)
    if not told or counts["driver"] is None:
        return result(facts, "gpu.count", Verdict.UNKNOWN, f"the driver lists none; {says}" if says else "not told")
    if len(set(told.values())) > 1 or lost:
        return result(facts, "gpu.count", Verdict.FAIL, says, *lines)
    return result(facts, "gpu.count", Verdict.PASS, says, *lines[:1])


def _name(gpu: GpuSample) -> str:
    index = "?" if gpu.gpu.index is None else gpu.gpu.index
    return f"GPU {index} {gpu.gpu.pci} {gpu.gpu.uuid[:12]}".strip()


def _reading(facts: Facts, check: str, reading: NodeReading, found: Sequence[tuple[GpuSample, Finding]]) -> Result:
    mine = [(gpu, one) for gpu, one in found if _OF_CODE.get(one.code.partition(":")[0]) == check]
    if mine:
        verdict = worst(_VERDICTS.get(one.health, Verdict.PASS) for _, one in mine)
        lines = [f"{_name(gpu)}: {one.title}{f' ({one.evidence})' if one.evidence else ''}" for gpu, one in mine]
        head = min(mine, key=lambda pair: _VERDICTS.get(pair[1].health, Verdict.PASS).rank)[1]
        says = head.title if len(mine) == 1 else f"{head.title}, {plural(len({id(gpu) for gpu, _ in mine}), 'GPU')}"
        return result(facts, check, verdict, says, *lines, next_step=head.next_step)
    read = [gpu for gpu in reading.gpus if gpu.lost is None and _READINGS[check](gpu) is not None]
    if not read:
        why = "no GPU tells it" if reading.gpus and reading.driver.state in _ANSWERS else "the driver does not answer"
        told = Verdict.NA if reading.gpus and reading.driver.state in _ANSWERS else Verdict.UNKNOWN
        return result(facts, check, told, why)
    return result(facts, check, Verdict.PASS, f"{_WELL[check]} ({plural(len(read), 'GPU')})")


def _pcie(facts: Facts, reading: NodeReading) -> Result:
    narrow, read = [], 0
    for gpu in reading.gpus:
        width, most = known(gpu.pcie_width), known(gpu.gpu.pcie_width_max)
        if width is None or most is None:
            continue
        read += 1
        if width < most:
            narrow.append(f"{_name(gpu)}: x{width:.0f} of x{most:.0f}")
    if narrow:
        return result(facts, "gpu.pcie", Verdict.WARN, f"{plural(len(narrow), 'GPU')} below full width", *narrow)
    if not read:
        return result(facts, "gpu.pcie", Verdict.UNKNOWN, "not told")
    return result(facts, "gpu.pcie", Verdict.PASS, f"full width ({plural(read, 'GPU')})")


def events_of(facts: Facts) -> tuple[KernelEvent, ...]:
    """What the kernel and NVML complained of within two hours, earlier boots included."""
    reading = facts.look.reading
    if reading is None:
        return ()
    return NodeEvents().after(replace(reading, messages=facts.look.messages)).events


def _xids(facts: Facts, reading: NodeReading, events: Sequence[KernelEvent]) -> Result:
    """Only of this boot: an Xid that led to a reboot is evidence, no state."""
    if not reading.log_source:
        why = reading.not_read.get("kernel log", "not readable")
        return result(facts, "gpu.xid", Verdict.UNKNOWN, f"the kernel log cannot be read: {why}",
                      next_step="a login in the group adm or systemd-journal may read it")  # fmt: skip
    kinds = (KernelKind.XID, KernelKind.OFF_BUS, KernelKind.SXID)
    seen = [event for event in events if event.kind in kinds and not event.clears]
    current = [event for event in seen if not event.boot or _same_boot(event.boot, reading.boot_id)]
    lines = [_line(event, reading, current=event in current) for event in seen[-30:]]
    verdict = worst(_VERDICTS.get(health_of(event.severity), Verdict.PASS) for event in current)
    if verdict not in (Verdict.FAIL, Verdict.WARN):
        earlier = f", {len(seen)} before the reboot or harmless" if seen else ""
        return result(facts, "gpu.xid", Verdict.PASS, f"none within 2 h{earlier} (from {reading.log_source})", *lines)
    head = max(current, key=lambda event: event.severity.rank)
    codes = sorted({event.code for event in current if event.code is not None})
    says = f"{plural(len(current), 'event')}: {', '.join(str(code) for code in codes)}"
    step = xid(head.code).next_step if head.code is not None and head.kind is not KernelKind.SXID else ""
    title = xid(head.code).title if step and head.code is not None else ""
    return result(facts, "gpu.xid", verdict, f"{says}; {title}" if title else says, *lines, next_step=step)


def _same_boot(one: str, other: str) -> bool:
    return one.replace("-", "") == other.replace("-", "")


def _line(event: KernelEvent, reading: NodeReading, *, current: bool) -> str:
    """The event with its job, when the process that it names still holds a GPU."""
    job = next((process.job_id for process in reading.processes if event.pid and process.pid == event.pid), None)
    of_job = f" (job {job})" if job else ""
    before = "" if current else " [before the last boot]"
    return printable(f"{moment(event.at, reading.taken_at)} {event.text}{of_job}{before}")


def _leftovers(facts: Facts, reading: NodeReading) -> Result:
    """Processes on GPUs outside any job of this node; only where it is known which jobs those are."""
    check, jobs = "gpu.leftovers", facts.known.jobs
    if reading.processes_at is None:
        return result(facts, check, Verdict.UNKNOWN, "the driver tells no processes")
    gone = [process for process in reading.processes if process.exists is False]
    strange = [
        process
        for process in reading.processes
        if process.exists and (process.job_id is None or (jobs is not None and process.job_id not in jobs))
    ]
    lines = [
        f"pid {process.pid} {process.command or '?'} of {process.user or '?'}"
        f"{f', job {process.job_id}' if process.job_id else ', no job'}"
        for process in (*strange, *gone)
    ]
    if gone:
        return result(facts, check, Verdict.FAIL, f"memory held by {len(gone)} that are gone", *lines)
    if strange:
        return result(facts, check, Verdict.WARN, f"{len(strange)} on GPUs without a job of this node", *lines)
    held = len(reading.processes)
    return result(facts, check, Verdict.PASS, f"none; {held} of jobs" if held else "none")


def services(facts: Facts) -> Iterator[Result]:
    """Fabric manager where there are NVSwitches, and the persistence daemon."""
    reading = facts.look.reading
    nvidia = bool(reading and (reading.gpus or reading.pci_gpus)) or facts.pci_functions(_NVIDIA, *_GPU_CLASSES) > 0
    switches = facts.pci_functions(_NVIDIA, _BRIDGE)
    if switches:
        yield _service(facts, "gpu.fabric", "fabric_manager", Verdict.FAIL, f"NVSwitches: {switches}")
    else:
        yield result(facts, "gpu.fabric", Verdict.NA, "no NVSwitches here", parts=("pci",))
    if nvidia:
        yield _service(facts, "gpu.persistence", "persistence", Verdict.WARN, "")
    else:
        yield result(facts, "gpu.persistence", Verdict.NA, "no NVIDIA GPUs here", parts=("pci",))


def _service(facts: Facts, check: str, name: str, bad: Verdict, why: str) -> Result:
    part, word = facts.part(name), facts.part(name).first
    about = f" ({why})" if why else ""
    if word == "active":
        return result(facts, check, Verdict.PASS, f"active{about}", parts=(name,))
    if word in ("inactive", "failed", "activating"):
        return result(facts, check, bad, f"{word}{about}", parts=(name,), next_step=check_fact(check).next_step)
    return result(facts, check, Verdict.UNKNOWN, unanswered(part) or "not told", parts=(name,))
