"""The frozen answers that travel from sources to screens. No I/O, no Textual, nothing mutable.

Every string in here has passed `cockpit.text.printable`. Times are seconds since the epoch on the clock of
the machine that told them, sizes are MiB, a missing value is None and never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Health(str, Enum):
    """The five states everything on the screen is in, best first; see DESIGN of colours in themes/."""

    OK = "ok"
    UNKNOWN = "unknown"
    DRAINED = "drained"
    WARN = "warn"
    CRITICAL = "critical"


class Freshness(str, Enum):
    """How much a value may still be trusted."""

    LIVE = "live"
    STALE = "stale"
    LOST = "lost"
    NEVER = "never"


class FaultKind(str, Enum):
    """What kind of thing went wrong; screens and exit codes depend on it, never on the words."""

    UNREACHABLE = "unreachable"  # no TCP, no name, connection closed, jump host gone
    AUTH = "auth"  # reached, but the login was refused
    HOST_KEY = "host_key"  # unknown or changed host key
    TIMEOUT = "timeout"  # reached, but no answer within the deadline
    CONTROLLER_DOWN = "controller_down"  # slurmctld does not run
    CONTROLLER_HUNG = "controller_hung"  # slurmctld runs but does not answer
    DENIED = "denied"  # the program answered that this login has no right
    MISSING = "missing"  # a program or object is not there
    GARBLED = "garbled"  # an answer that cannot be read
    THROTTLED = "throttled"  # asked too often
    CONFLICT = "conflict"  # somebody else changed it since it was shown
    FAILED = "failed"  # the program ran and failed for another reason


@dataclass(frozen=True, slots=True)
class Fault:
    """What failed, why, and what to do next, in words for the person in front of the screen."""

    kind: FaultKind
    what: str
    why: str
    next_step: str = ""

    def line(self) -> str:
        """The fault as one line: `what: why`, and the next step when there is one."""
        tail = f" — {self.next_step}" if self.next_step else ""
        return f"{self.what}: {self.why}{tail}"


class FaultError(Exception):
    """Raised by hosts and formats; carries the Fault that a source puts into its snapshot."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.line())
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[T_co]):
    """One answer of a source: either data or an error, with the time it was taken and how long it took."""

    taken_at: float
    took_s: float
    data: T_co | None = None
    error: Fault | None = None


@dataclass(frozen=True, slots=True)
class Gres:
    """One generic resource of a node or job, such as `gpu:h100:8(IDX:0-7)`.

    `count` is None where Slurm names the resource without a number that can be trusted;
    `indices` is None when the text carried none, and () when it said that none is in use.
    """

    name: str
    type: str | None
    count: int | None
    indices: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeState:
    """A Slurm node state as `StateComplete` gives it: lower-case base and flags (`mixed+cloud+drain`)."""

    base: str
    flags: frozenset[str] = frozenset()

    def has(self, *flags: str) -> bool:
        """True when any of the lower-case flags is set."""
        return not self.flags.isdisjoint(flags)


@dataclass(frozen=True, slots=True)
class Node:
    """One Slurm node, once, whatever the number of its partitions."""

    name: str
    state: NodeState
    word: str  # plain word for the state: idle, draining, powered down, not responding, ...
    health: Health
    partitions: tuple[str, ...] = ()
    gres: tuple[Gres, ...] = ()
    gres_used: tuple[Gres, ...] = ()
    gpus_total: int | None = None  # None: no GPU GRES configured
    gpus_used: int | None = None
    gpu_type: str = ""
    gpu_indices: tuple[int, ...] | None = None
    cpus_total: int | None = None
    cpus_used: int | None = None
    cpu_load: float | None = None
    mem_mib: int | None = None
    mem_used_mib: int | None = None
    mem_free_mib: int | None = None
    features: tuple[str, ...] = ()
    weight: int | None = None
    address: str = ""
    hostname: str = ""
    version: str = ""
    reservation: str = ""
    reason: str = ""
    reason_by: str = ""
    reason_at: float | None = None
    comment: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True)
class Partition:
    """A queue as the node list tells it; `available` is up, down, drain or inactive."""

    name: str
    available: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodesReading:
    """Data of the source `nodes`: every visible node once, in Slurm's order, and the queues."""

    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One record of squeue: a job, an array task, a bundle of pending array tasks, or a het component."""

    job_id: int
    state: str  # compact code: R, PD, CG, ...
    name: str = ""
    array_job_id: int | None = None  # None: not an array
    array_tasks: str = ""  # "7", or "1-100%5" for the pending rest
    task_count: int = 1  # how many array tasks this record stands for
    het_job_id: int | None = None
    het_offset: int | None = None
    partitions: tuple[str, ...] = ()
    user: str = ""
    account: str = ""
    qos: str = ""
    node_count: int | None = None
    cpus: int | None = None
    gpus: int | None = None  # None: not told by this record
    gpu_type: str = ""
    submitted_at: float | None = None
    eligible_at: float | None = None
    started_at: float | None = None  # on a pending job: Slurm's estimate
    ends_at: float | None = None
    limit_s: float | None = None  # None: unlimited or not told; see `limit_word`
    limit_word: str = ""
    priority: int | None = None
    hostlist: str = ""
    scheduled_hostlist: str = ""
    batch_host: str = ""
    dependency: str = ""
    reservation: str = ""
    restarts: int | None = None
    requeueable: bool | None = None
    features: str = ""
    reason: str = ""  # as Slurm prints it; "" when there is none
    comment: str = ""
    admin_comment: str = ""
    system_comment: str = ""

    @property
    def label(self) -> str:
        """The id people type: 123, 123_7, 123_[1-100%5] or 123+1."""
        if self.array_job_id is not None:
            tasks = self.array_tasks
            return f"{self.array_job_id}_{tasks if tasks.isdigit() else f'[{tasks}]'}"
        if self.het_job_id is not None:
            return f"{self.het_job_id}+{self.het_offset or 0}"
        return str(self.job_id)

    @property
    def key(self) -> str:
        """What names it for good: its label, or the whole array's key for pending tasks, whose list changes."""
        if self.array_job_id is not None and not self.array_tasks.isdigit():
            return f"{self.array_job_id}_"
        return self.label


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One line of the queue pane: a job, or a whole array folded with a tally of its tasks by state."""

    key: str  # stable over refreshes: the job id, "123_" for a folded array, "123+1"
    jobs: tuple[Job, ...]  # at least one; running ones first
    tally: tuple[tuple[str, int], ...]  # (compact state, tasks), in the order running, pending, rest

    @property
    def lead(self) -> Job:
        """The job that stands for the row."""
        return self.jobs[0]


@dataclass(frozen=True, slots=True)
class QueueReading:
    """Data of the source `queue`: every record in Slurm's order, and the rows they fold to."""

    jobs: tuple[Job, ...]
    rows: tuple[QueueRow, ...]
    by_state: Mapping[str, int] = field(default_factory=dict)  # array tasks counted singly


@dataclass(frozen=True, slots=True)
class SlurmSite:
    """What the cluster is configured to do; data of the slow source `slurm`."""

    version: str = ""
    cluster_name: str = ""
    controller: str = ""
    private_data: tuple[str, ...] = ()
    message_timeout_s: float | None = None
    suspend_time_s: float | None = None
    suspend_timeout_s: float | None = None
    resume_timeout_s: float | None = None
    accounting: bool | None = None
    partitions: tuple[PartitionConfig, ...] = ()
    sees_all_jobs: bool | None = None  # False: PrivateData hides others' jobs from this login
    hides_powered_down: bool = False  # True: powered-down cloud nodes are left out of sinfo
    slurm_user: str = ""  # beside root the one login that may change everything
    kept_up: str = ""  # SuspendExcNodes as Slurm writes it: nodes that never power down by themselves


@dataclass(frozen=True, slots=True)
class PartitionConfig:
    """A queue as `scontrol show partition` tells it; `hostlist` also names nodes that sinfo hides.

    `limits` are Slurm's own keys and values, of those that keep somebody or something out.
    """

    name: str
    state: str
    hostlist: str = ""
    total_nodes: int | None = None
    default: bool = False
    hidden: bool = False
    max_time: str = ""
    limits: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Somebody knows of a problem: a note in their words, who, and when."""

    note: str
    who: str
    at: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong, with the next step. `key` is stable, so that a problem keeps its age.

    `acknowledged`: somebody knows of it, so it stays out of the way. `about` names what it concerns as (kind, key):
    node and queue by name, gpu as `node/slot`, job by `Job.key`.
    """

    key: str
    health: Health
    subject: str  # node, job, queue or source
    title: str
    next_step: str
    evidence: str = ""
    since: float | None = None
    count: int = 1
    acknowledged: Acknowledgement | None = None
    about: tuple[tuple[str, str], ...] = ()
