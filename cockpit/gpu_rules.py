"""What is wrong with a GPU, from one reading and its events. Pure; each finding says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cockpit.catalog.gpu_codes import recovery_action, throttle_reasons
from cockpit.catalog.severity import Severity
from cockpit.catalog.xids import xid
from cockpit.config import Rules
from cockpit.formats.kernel_log import KernelEvent, health_of
from cockpit.formats.probe_slots import HIDDEN
from cockpit.gpu_models import GpuSample, Lack, Missing, Value, known
from cockpit.models import Health

LOST_CODES = (15, 28, 999)  # NVML: GPU is lost, not found, unknown error
RESET_CODE = 16  # NVML: a reset is required before the GPU can be used
RECOVERY_XID = 154
REPLACE_STEP = "drain the node and replace the instance"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong. `code` names the rule and is stable; `title` and `evidence` are for people.

    `lasting`: one reading is only a warning; it is critical when it stays.
    """

    code: str
    health: Health
    title: str
    next_step: str
    evidence: str = ""
    lasting: bool = False


def findings(sample: GpuSample, events: tuple[KernelEvent, ...], rules: Rules) -> tuple[Finding, ...]:
    """Everything wrong with a GPU by its last reading, worst first. `events` are those since its node's last boot."""
    found = [
        *_lost(sample),
        *_recovery(sample),
        *_memory(sample),
        *_links(sample),
        *_heat(sample, rules),
        *_throttle(sample),
        *_xids(events),
    ]
    order = list(Health)
    return tuple(sorted(found, key=lambda finding: -order.index(finding.health)))


def _lost(sample: GpuSample) -> Iterator[Finding]:
    lost = sample.lost
    if lost is None:
        return
    if lost.kind is not Lack.LOST:
        yield _not_readable(lost)
    elif lost.code == RESET_CODE:
        step = "let its job end, drain, reset the GPU or reboot; if it comes back, replace"
        yield Finding("reset", Health.CRITICAL, "the GPU must be reset before it can be used", step)
    elif lost.code is None or lost.code in LOST_CODES:
        title = lost.why if "lost" in lost.why.lower() else f"GPU lost: {lost.why}" if lost.why else "GPU lost"
        yield Finding("lost", Health.CRITICAL, title, REPLACE_STEP)
    else:
        yield _not_readable(lost)


def _not_readable(lost: Missing) -> Finding:
    """It may work as ever: what is refused says nothing about the GPU, a failure only that somebody must look."""
    told = lost.kind in (Lack.DENIED, Lack.UNSUPPORTED, Lack.NOT_READ)
    if lost == HIDDEN:
        # Such a login sees the GPUs of one job only; the others may be as well as ever.
        step = "its cgroup or its rights keep the GPU from it: watch with a login that pam_slurm_adopt leaves alone"
        return Finding("hidden", Health.UNKNOWN, HIDDEN.why, step)
    step = "run nvidia-smi on the node as the user of the probe"
    title = f"not readable: {lost.why or lost.kind.value}"
    return Finding("not_readable", Health.UNKNOWN if told else Health.WARN, title, step)


def _recovery(sample: GpuSample) -> Iterator[Finding]:
    action = known(sample.recovery_action)
    if action:
        told = recovery_action(int(action))
        yield Finding("recovery", health_of(told.severity), f"the driver asks for: {told.word}", told.meaning)


def _memory(sample: GpuSample) -> Iterator[Finding]:
    if _positive(sample.remap_failed):
        yield Finding("remap_failed", Health.CRITICAL, "a row of its memory could not be remapped", REPLACE_STEP)
    if errors := _positive(sample.ecc_uncorrected):
        step = "let the job end, drain, reset or reboot; when it comes back, replace"
        yield Finding("ecc", Health.CRITICAL, f"{errors:.0f} uncorrected memory errors", step)
    if _positive(sample.remap_pending):
        step = "reset the GPU or reboot the node when its job has ended"
        yield Finding("remap_pending", Health.WARN, "a row remap is pending", step)


def _links(sample: GpuSample) -> Iterator[Finding]:
    if down := _positive(sample.nvlinks_down):
        of = known(sample.nvlinks)
        title = f"{down:.0f}{f' of {of:.0f}' if of else ''} NVLinks down"
        yield Finding("nvlink", Health.CRITICAL, title, "drain; reset, then reboot; if it stays, replace")


def _heat(sample: GpuSample, rules: Rules) -> Iterator[Finding]:
    temp_c = known(sample.temp_c)
    if temp_c is not None and temp_c >= rules.gpu_hot_c:
        step = "compare with the node's other GPUs; on EC2 a hot GPU is cured by replacing the instance"
        yield Finding("hot", Health.WARN, f"{temp_c:.0f} °C (rule: {rules.gpu_hot_c:.0f})", step)


def _throttle(sample: GpuSample) -> Iterator[Finding]:
    mask = known(sample.throttle_mask)
    clock = known(sample.sm_clock_mhz)
    evidence = "" if clock is None else f"SM clock {clock:.0f} MHz"
    for reason in throttle_reasons(int(mask)) if mask else ():
        if reason.severity is Severity.INFO:
            continue
        health = Health.WARN if reason.lasting else health_of(reason.severity)
        title = f"clocks held down: {reason.word}"
        yield Finding(f"throttle:{reason.bit:x}", health, title, reason.meaning, evidence, reason.lasting)


def _xids(events: tuple[KernelEvent, ...]) -> Iterator[Finding]:
    by_code: dict[int, list[KernelEvent]] = {}
    for event in events:
        if event.code is not None:
            by_code.setdefault(event.code, []).append(event)
    for code, seen in by_code.items():
        if code == RECOVERY_XID:
            # Each tells the state from then on. NVML tells the number without the state.
            seen = [event for event in seen if event.action is not None][-1:] or seen[-1:]
        seen = [event for event in seen if not event.clears]
        health = health_of(seen[-1].severity) if seen else Health.OK
        if health is not Health.OK:
            fact, times = xid(code), f" ×{len(seen)}" if len(seen) > 1 else ""
            yield Finding(f"xid:{code}", health, f"Xid {code}{times}: {fact.title}", fact.next_step, seen[-1].text)


def _positive(value: Value) -> float | None:
    number = known(value)
    return number if number is not None and number > 0 else None
