"""The demo's partitions as they are configured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.demo.machines import SimNode


@dataclass(frozen=True, slots=True)
class PartitionSetup:
    """One PartitionName line of slurm.conf; max_time as Slurm prints it in each place."""

    name: str
    default: bool
    max_time: str  # scontrol's spelling
    max_time_short: str  # sinfo's
    priority_tier: int

    @property
    def starred(self) -> str:
        """The name with a `*` behind the default partition's."""
        return f"{self.name}*" if self.default else self.name

    def members(self, nodes: Sequence[SimNode]) -> list[SimNode]:
        """The partition's nodes among `nodes`, in their order."""
        return [node for node in nodes if self.name in node.partitions]


PARTITIONS = (
    PartitionSetup("gpu", True, "UNLIMITED", "infinite", 1),
    PartitionSetup("prio", False, "2-00:00:00", "2-00:00:00", 10),
    PartitionSetup("interactive", False, "08:00:00", "8:00:00", 5),
)
