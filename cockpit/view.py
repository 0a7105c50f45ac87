"""Everything known of one cluster, joined and frozen: what screens and the command line show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cockpit import joins
from cockpit.aws_models import AwsReading, Instance, Joined
from cockpit.event_models import ClusterEvents
from cockpit.fleet import GpuRow
from cockpit.models import Job, Node, Problem, QueueReading, SlurmSite
from cockpit.price_models import Prices
from cockpit.sources.gpus import FleetReading
from cockpit.storage_models import StorageReading


@dataclass(frozen=True, slots=True)
class View:
    """What screens show, joined over all sources once per change, on the thread of the source that changed."""

    nodes: tuple[Node, ...] | None = None  # None: never read
    queue: QueueReading | None = None
    site: SlurmSite | None = None
    jobs_of_node: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    gpus: joins.GpuCounts = field(default_factory=joins.GpuCounts)
    fleet: FleetReading | None = None
    gpu_rows: tuple[GpuRow, ...] = ()
    aws: AwsReading | None = None  # None: not read
    joined: Joined = field(default_factory=Joined)
    prices: Prices | None = None  # None: not asked for
    events: ClusterEvents | None = None  # of ParallelCluster's daemons; None: not read
    storage: StorageReading | None = None  # FSx; None: not read
    problems: tuple[Problem, ...] = ()

    @property
    def instance_of_node(self) -> Mapping[str, Instance]:
        """The instance behind each node, as far as that is known."""
        return self.joined.of_node
