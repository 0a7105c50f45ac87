"""What AWS tells of a cluster: instances, fleet status, stack, capacity. Frozen; no I/O.

Every string in here has passed `cockpit.text.printable`. Times are seconds since the epoch, a missing value is
None (or "" for a text) and never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from cockpit.models import Fault

T_co = TypeVar("T_co", covariant=True)

ALIVE = frozenset({"pending", "running", "stopping", "stopped"})  # what ParallelCluster itself counts
BILLED = frozenset({"pending", "running"})


class Market(str, Enum):
    """How an instance is paid for."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    CAPACITY_BLOCK = "capacity-block"


@dataclass(frozen=True, slots=True)
class ScheduledEvent:
    """Something AWS will do to an instance; finished ones are left out."""

    code: str  # instance-retirement, system-reboot, ...
    text: str = ""
    not_before: float | None = None
    not_after: float | None = None


@dataclass(frozen=True, slots=True)
class Checks:
    """EC2's status checks: ok, impaired, initializing, insufficient-data, not-applicable."""

    system: str = ""
    instance: str = ""
    storage: str = ""  # attached EBS volumes
    impaired_since: float | None = None
    events: tuple[ScheduledEvent, ...] = ()

    @property
    def impaired(self) -> tuple[str, ...]:
        """Which of the checks fail."""
        found = {"system": self.system, "instance": self.instance, "attached storage": self.storage}
        return tuple(name for name, word in found.items() if word == "impaired")


@dataclass(frozen=True, slots=True)
class Instance:
    """One EC2 instance or HyperPod node of the cluster."""

    id: str
    type: str = ""  # p5.48xlarge; HyperPod's with ml. in front
    state: str = ""  # pending, running, shutting-down, terminated, stopping, stopped
    state_reason: str = ""  # Server.SpotInstanceTermination, ...
    role: str = ""  # head, compute, login; "" where no tag says so
    queue: str = ""  # ParallelCluster's queue, HyperPod's instance group
    resource: str = ""  # ParallelCluster's compute resource
    market: Market | None = None
    private_ip: str = ""  # of the primary interface
    other_ips: tuple[str, ...] = ()
    private_dns: str = ""
    public_ip: str = ""
    zone: str = ""
    placement_group: str = ""
    subnet: str = ""
    vpc: str = ""
    security_groups: tuple[str, ...] = ()
    launched_at: float | None = None
    template: str = ""  # launch template id and version
    reservation: str = ""  # capacity reservation or block
    efa: int | None = None  # EFA interfaces attached; None: not told
    vcpus: int | None = None
    root_on_ebs: bool | None = None
    checks: Checks | None = None  # None: not read, or not running

    @property
    def alive(self) -> bool:
        """Whether a node may still stand on it."""
        return self.state in ALIVE

    @property
    def billed(self) -> bool:
        """Whether its hours cost money now."""
        return self.state in BILLED


@dataclass(frozen=True, slots=True)
class FleetItem:
    """ParallelCluster's fleet status as DynamoDB holds it. `old_form`: without the Data map, before 3.2.0."""

    status: str  # RUNNING, STOP_REQUESTED, STOPPING, STOPPED, START_REQUESTED, STARTING, PROTECTED
    updated_at: float | None = None
    old_form: bool = False


@dataclass(frozen=True, slots=True)
class Stack:
    """ParallelCluster's CloudFormation stack."""

    name: str
    status: str
    status_reason: str = ""
    version: str = ""
    head_instance: str = ""
    head_ip: str = ""
    user: str = ""
    scheduler: str = ""
    log_group: str = ""
    fsx_ids: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The status as ParallelCluster tells it: a rolled-back update is a failed one, the cluster still works."""
        if self.status == "UPDATE_ROLLBACK_COMPLETE":
            return "UPDATE_FAILED"
        return "CREATE_FAILED" if self.status.startswith("ROLLBACK_") else self.status

    @property
    def takes_orders(self) -> bool:
        """Whether ParallelCluster accepts a start or stop in this state."""
        return self.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")


@dataclass(frozen=True, slots=True)
class Reservation:
    """A capacity reservation; `block` when it is a Capacity Block, which ends by itself."""

    id: str
    type: str = ""
    zone: str = ""
    state: str = ""
    total: int | None = None
    available: int | None = None
    starts_at: float | None = None
    ends_at: float | None = None
    block: bool = False


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """One instance group of a HyperPod cluster."""

    name: str
    type: str = ""
    current: int | None = None
    target: int | None = None
    status: str = ""
    node_type: str = ""  # Controller, Login, Compute
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HyperPodCluster:
    """A HyperPod cluster as SageMaker describes it."""

    name: str
    status: str = ""
    arn: str = ""
    recovery: str = ""  # Automatic, None
    continuous: bool = False
    groups: tuple[InstanceGroup, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """As whom AWS sees us."""

    account: str = ""
    arn: str = ""


@dataclass(frozen=True, slots=True)
class AwsScope:
    """What belongs to one cluster; worked out by its kind. Empty parts are not asked for."""

    region: str | None = None  # None: what the profile says
    stack: str = ""  # ParallelCluster's root stack
    fleet_table: str = ""
    nodes_table: str = ""
    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of DescribeInstances
    hyperpod: str = ""  # name or ARN of the SageMaker cluster
    head_names: tuple[str, ...] = ()  # host name and address of the head, where no tag tells which one it is
    hint: str = ""  # why instances cannot be asked for, and what to write into the config


@dataclass(frozen=True, slots=True)
class Part(Generic[T_co]):
    """One part of a reading: its last good data with their time, and why the last try failed, if it did."""

    data: T_co | None = None
    read_at: float | None = None
    fault: Fault | None = None


UNREAD: Part[Any] = Part()


@dataclass(frozen=True, slots=True)
class AwsReading:
    """Data of the source `aws`. A part whose data is None was never read; other parts do not suffer from it."""

    scope: AwsScope
    instances: Part[tuple[Instance, ...]] = UNREAD  # with their checks, where those could be read
    checks: Part[Mapping[str, Checks]] = UNREAD
    fleet: Part[FleetItem] = UNREAD
    stack: Part[Stack] = UNREAD
    hyperpod: Part[HyperPodCluster] = UNREAD
    reservations: Part[Mapping[str, Reservation]] = UNREAD
    caller: Part[Caller] = UNREAD
    slurm_ids: Part[Mapping[str, str]] = UNREAD  # node -> instance id, as Slurm tells it
    table_ids: Part[Mapping[str, str]] = UNREAD  # instance id -> node, as the DynamoDB table tells it
    region: str = ""

    def parts(self) -> Mapping[str, Part[object]]:
        """Every part by its name."""
        return {name: getattr(self, name) for name in _PARTS}

    def gaps(self) -> Mapping[str, Fault]:
        """What could not be read at the last try, part by part."""
        return {name: part.fault for name, part in self.parts().items() if part.fault is not None}


_PARTS = (
    "instances", "checks", "fleet", "stack", "hyperpod", "reservations", "caller", "slurm_ids", "table_ids",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Joined:
    """Instances and nodes put together: each node's instance, and the instances that no node owns."""

    of_node: Mapping[str, Instance] = field(default_factory=dict)
    how: Mapping[str, str] = field(default_factory=dict)  # node -> slurm, address, name, table
    orphans: tuple[Instance, ...] = ()
    vanished: Mapping[str, str] = field(default_factory=dict)  # node with an address -> what it points at
