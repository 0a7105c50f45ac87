"""Jobs that look hung by what their GPUs show: they spin in a collective operation and move no data.

Or they idle while the job writes nothing, although it wrote in a rhythm before (`silences.py`).
The signature is that of facts gathered from hung NCCL runs: utilisation near 100 %, the memory bus all but still,
and far less power than work takes. It is silent when unsure; what it says is "looks", and the diagnosis decides.
"""

from __future__ import annotations

from statistics import median

from cockpit.fleet import GpuRow, about
from cockpit.fleet_state import Fleet
from cockpit.gpu_means import Means
from cockpit.gpu_models import known
from cockpit.models import Health, Job, Problem
from cockpit.words import span

SPIN_UTIL_PCT = 95.0
SPIN_MEM_UTIL_PCT = 5.0
SPIN_POWER_SHARE = 0.5  # of the power limit; GPUs that work, even without much memory traffic, take more
SPIN_RANKS = 0.8  # of a job's GPUs
IDLE_UTIL_PCT = 5.0
SHOWN = 4
NEXT = "H: which rank, where and why; o: what it wrote last"


def hung_job(job: Job, seen: list[GpuRow], total: int, means: Means, fleet: Fleet) -> Problem | None:
    """The problem of a job of several GPUs of which nearly all spin; None when they do not, or too few are known.

    `seen` are its GPUs with readings of now, `total` how many it has.
    """
    if total < 2 or len(seen) < SPIN_RANKS * total:
        return None
    spinning = [row for row in seen if _spins(row, means, fleet)]
    if len(spinning) < SPIN_RANKS * total:
        return _silent(job, seen, total, means, fleet)
    others = [row for row in seen if row not in spinning]
    silence = fleet.silence(job.job_id)
    title = f"looks hung: {len(spinning)} of its {total} GPUs spin and move no data · {job.user}"
    # The odd ones first: what is wrong is more likely there than where the others wait.
    return Problem(
        key=f"job:hung:{job.job_id}",
        health=Health.CRITICAL,
        subject=f"job {job.label}",
        title=title,
        next_step=NEXT,
        evidence=_evidence(spinning, others, means, fleet) + (f"; {silence}" if silence else ""),
        count=len(spinning),
        about=about([*others, *spinning]),
    )


def _silent(job: Job, seen: list[GpuRow], total: int, means: Means, fleet: Fleet) -> Problem | None:
    """The problem of a job that writes nothing against its own rhythm while nearly all its GPUs idle."""
    silence = fleet.silence(job.job_id)
    if not silence:
        return None
    over_s = fleet.rules.gpu_hang_for_s
    use = [means.of(fleet.history, row, "util_pct", over_s) for row in seen]
    idle = [row for row, pct in zip(seen, use, strict=True) if pct is not None and pct <= IDLE_UTIL_PCT]
    if len(idle) < SPIN_RANKS * total:
        return None
    others = [row for row in seen if row not in idle]
    return Problem(
        key=f"job:hung:{job.job_id}",
        health=Health.CRITICAL,
        subject=f"job {job.label}",
        title=f"looks hung: {silence}; {len(idle)} of its {total} GPUs idle · {job.user}",
        next_step=NEXT,
        evidence=f"{len(idle)} GPUs used under {IDLE_UTIL_PCT:.0f} % for {span(over_s)}",
        count=len(idle),
        about=about([*others, *idle]),
    )


def _spins(row: GpuRow, means: Means, fleet: Fleet) -> bool:
    over_s, history = fleet.rules.gpu_hang_for_s, fleet.history
    util = means.of(history, row, "util_pct", over_s)
    mem_util = means.of(history, row, "mem_util_pct", over_s)
    power_w = means.of(history, row, "power_w", over_s)
    limit_w = known(row.sample.power_limit_w) if row.sample else None
    if util is None or mem_util is None or power_w is None or not limit_w:
        return False
    return util >= SPIN_UTIL_PCT and mem_util <= SPIN_MEM_UTIL_PCT and power_w < SPIN_POWER_SHARE * limit_w


def _evidence(spinning: list[GpuRow], others: list[GpuRow], means: Means, fleet: Fleet) -> str:
    over_s = fleet.rules.gpu_hang_for_s
    power = [w for row in spinning if (w := means.of(fleet.history, row, "power_w", over_s)) is not None]
    limits = [w for row in spinning if row.sample and (w := known(row.sample.power_limit_w)) is not None]
    words = f"median power {median(power):.0f} of {median(limits):.0f} W"
    if not others:
        return f"{words}; every one of them spins"
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    return f"{words}; the odd ones: {', '.join(row.key for row in others[:SHOWN])}{more}"
