"""What to press: actions by their id and key, with the targets a diagnosis names."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.diagnosis.evidence import Evidence
from cockpit.diagnosis.hypothesis import Move, Verdict

REASON_CHARS = 180  # Slurm's own lists show fewer; who says it comes in front


def of_hardware(evidence: Evidence, nodes: Iterable[str]) -> tuple[Move, ...]:
    """The node is bad: out of service with it, the job again elsewhere."""
    names = tuple(dict.fromkeys(name for name in nodes if name))
    drain = (Move("drain", "D", names, "take the node out of service"),) if names else ()
    return (*drain, *again(evidence))


def again(evidence: Evidence) -> tuple[Move, ...]:
    """The job anew on the same or other nodes."""
    return (Move("requeue", "Q", (evidence.job.label,), "end it and put it back into the queue"),)


def of_program(evidence: Evidence) -> tuple[Move, ...]:
    """The program is at fault: no node is to blame, and it would do the same again."""
    return (Move("cancel", "K", (evidence.job.label,), "end it; no node is to blame"),)


def reason_of(job: str, verdict: Verdict) -> str:
    """The words for a drain: which job hung, and what was seen."""
    said = f"job {job} {verdict.state}: {verdict.sentence}"
    return said if len(said) <= REASON_CHARS else f"{said[: REASON_CHARS - 1]}…"
