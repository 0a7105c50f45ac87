"""What ParallelCluster's daemons complain of: silence, refused launches, nodes that do not boot. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cockpit.event_models import ClusterEvent, ClusterEvents
from cockpit.formats.hostlist import brief, fold
from cockpit.formats.pcluster_events import LAUNCH_FAILURE, PROTECTED
from cockpit.models import Health, Problem
from cockpit.words import span

SILENT_S = 300.0  # slurm_resume launches nothing when the last loop is older than that
ENDANGERED_S = 600.0  # nodes shut themselves down when slurmctld is away as well
RECENT_S = 900.0
_FINAL = {
    "VcpuLimitExceeded": "the vCPU quota is used up: ask for more, or free some",
    "UnauthorizedOperation": "the head's role may not launch: look at its IAM policy",
    "InsufficientFreeAddressesInSubnet": "the subnet has no free address",
}


def of_events(events: ClusterEvents | None, head_now: float) -> Iterator[Problem]:
    """Problems as of the head's clock, in which its events are dated."""
    if events is None:
        return
    if events.heartbeat_at is not None and (age_s := head_now - events.heartbeat_at) > SILENT_S:
        health = Health.CRITICAL if age_s > ENDANGERED_S else Health.WARN
        title = f"clustermgtd is silent for {span(age_s)}: no node is launched or replaced"
        step = "on the head: `supervisorctl status clustermgtd`, then its log"
        yield Problem("events:silent", health, "clustermgtd", title, step, since=events.heartbeat_at)
    recent = [event for event in events.events if event.at and head_now - event.at <= RECENT_S]
    yield from _launches([event for event in recent if event.type == LAUNCH_FAILURE])
    yield from _boots([event for event in recent if event.type == PROTECTED])


def _launches(failures: Sequence[ClusterEvent]) -> Iterator[Problem]:
    """Told every minute while it lasts, so the last one is what holds."""
    if not failures:
        return
    last = failures[-1]
    codes = Counter(last.codes)
    title = f"{last.text} ({len(failures)} times in {span(RECENT_S)})" if len(failures) > 1 else last.text
    step = next((step for code, step in _FINAL.items() if code in codes), "")
    step = step or "EC2 has none now: ParallelCluster asks again in 10 min; other zones or types may have some"
    names = last.nodes
    yield Problem("events:launch", Health.WARN, brief(names) if names else "EC2", title, step, fold(names),
                  failures[0].at, count=last.count or 1)  # fmt: skip


def _boots(failures: Sequence[ClusterEvent]) -> Iterator[Problem]:
    if failures:
        last = failures[-1]
        title = f"{last.text}; at ten of a queue the fleet becomes PROTECTED"
        step = "see bootstrap_error_msg and the console output of these nodes"
        yield Problem("events:boot", Health.WARN, brief(last.nodes) if last.nodes else "nodes", title, step,
                      fold(last.nodes), failures[0].at, count=last.count or 1)  # fmt: skip
