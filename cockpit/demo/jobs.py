"""The demo cluster's jobs: what was asked for, how it stands, what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from cockpit.demo.machines import CPUS_PER_GPU, MEM_PER_GPU_MIB

USERS = {  # login name -> uid
    "root": 0,
    "demo": 1000,
    "maria": 1001,
    "kenji": 1002,
    "tomasz": 1003,
    "aisha": 1004,
    "lucas": 1005,
    "wei": 1006,
}

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
CODES = {
    "PENDING": "PD",
    "RUNNING": "R",
    "CONFIGURING": "CF",
    "COMPLETING": "CG",
    "COMPLETED": "CD",
    "FAILED": "F",
    "CANCELLED": "CA",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
}


@dataclass(frozen=True, slots=True)
class Ask:
    """What a submission asks for. Times in seconds; `runs_s` is how long it would really run."""

    name: str
    user: str
    nodes: int = 1
    gpus: int = 8  # per node
    runs_s: float = 3600.0
    limit_s: float | None = 86400.0
    partition: str = "gpu"
    priority: int = 1000
    typed: bool = False  # asks for gpu:h100:N
    whole: bool = False  # asks with --gpus instead of --gpus-per-node
    tasks: tuple[int, ...] = ()  # array task ids
    throttle: int = 0
    on: str = ""  # --nodelist with one node
    after: int | None = None  # afterok:ID
    begin_in_s: float | None = None
    held: str = ""  # "user" or "admin"
    ends_as: str = "COMPLETED"
    comment: str = ""
    own_errors: bool = False  # --error names a file of its own


@dataclass(slots=True)
class SimJob:
    """One record as the controller keeps it. Pending array tasks share one record (`rest`)."""

    job_id: int
    ask: Ask
    submitted_at: float
    state: str = "PENDING"
    configuring: bool = False
    reason: str = "None"
    priority: int = 1000
    array_job_id: int | None = None
    task: int | None = None  # a started array task
    rest: list[int] = field(default_factory=list)  # array tasks that still wait, ascending
    het_job_id: int | None = None
    het_offset: int = 0
    het_size: int = 0
    eligible_at: float | None = None
    started_at: float | None = None  # on a pending job: the scheduler's estimate
    ended_at: float | None = None
    hosts: tuple[str, ...] = ()  # nodes it holds or held
    gpus: dict[str, tuple[int, ...]] = field(default_factory=dict)  # host -> GPU indices it holds or held
    scheduled: tuple[str, ...] = ()  # nodes that are meant for it
    dependency: str = ""
    evaluated_at: float | None = None
    restarts: int = 0
    nice: int = 0
    not_before: float | None = None  # a requeued job waits for two minutes
    run: int = 0  # counts what ends a run, so that the end planned for an earlier one does nothing

    @property
    def shown_state(self) -> str:
        """The one word that squeue prints: a flag wins over the base state."""
        return "CONFIGURING" if self.configuring and self.state == "RUNNING" else self.state

    @property
    def holds_gpus(self) -> bool:
        """True from allocation to the end of the run; the epilog (COMPLETING) holds none."""
        return self.state == "RUNNING"

    @property
    def cpus(self) -> int:
        return self.ask.nodes * self.ask.gpus * CPUS_PER_GPU

    @property
    def mem_mib(self) -> int:
        return self.ask.nodes * self.ask.gpus * MEM_PER_GPU_MIB

    @property
    def ends_at(self) -> float | None:
        """When it ended, or when its limit is over; None when that is unknown or unlimited."""
        if self.ended_at is not None:
            return self.ended_at
        if self.started_at is None or self.ask.limit_s is None:
            return None
        return self.started_at + self.ask.limit_s

    def run_s(self, now: float) -> float:
        """Seconds it has run, 0.0 while it waits."""
        if self.started_at is None or self.state == "PENDING":
            return 0.0
        return max(0.0, (self.ended_at if self.ended_at is not None else now) - self.started_at)
