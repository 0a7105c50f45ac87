"""What ParallelCluster's daemons on the head tell of themselves, as a time line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cockpit.models import Health


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One thing that happened, told by a daemon on the head."""

    at: float | None
    health: Health
    source: str  # clustermgtd, slurm-resume, slurm_resume.log
    type: str  # node-launch-failure-count, protected-mode-error-count, ...; "" for a line of prose
    text: str
    cause: str = ""  # the daemon's own word: ice-failures, dynamic-resume-timeout-error, ...
    count: int | None = None
    codes: Mapping[str, int] = field(default_factory=dict)  # EC2's error codes and how many nodes each hit
    nodes: tuple[str, ...] = ()  # at most 100 are told


@dataclass(frozen=True, slots=True)
class ClusterEvents:
    """Data of the source `events`: what happened, oldest first, and when clustermgtd last finished a loop."""

    events: tuple[ClusterEvent, ...] = ()
    heartbeat_at: float | None = None
    unread: Mapping[str, str] = field(default_factory=dict)  # file -> why it could not be read
    broken_lines: int = 0

    def of_node(self, name: str) -> tuple[ClusterEvent, ...]:
        """What concerns one node."""
        return tuple(event for event in self.events if name in event.nodes)
