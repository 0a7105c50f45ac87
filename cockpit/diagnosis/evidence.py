"""What is known of one job, frozen: what the cases of a diagnosis look at. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cockpit.diagnosis.doing import Doing
from cockpit.diagnosis.flight import Disagreement
from cockpit.diagnosis.gathered import GatheredEfa, GatheredGpu
from cockpit.diagnosis.log_cause import Explanation
from cockpit.diagnosis.progress import Progress
from cockpit.formats.ras import RasReport
from cockpit.rank_models import NodeSweep, RankProcess

# What a rank may be in, the worst first; the order is also that of a screen.
MISSING, ZOMBIE, STOPPED, BLOCKED = "missing", "zombie", "stopped", "blocked"
ODD, ALONE = "elsewhere", "other program"
WAITING, WORKING, UNKNOWN, UNREAD = "waiting", "working", "unknown", "not read"


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The job as Slurm tells it; `nodes` in Slurm's order. Times are on the head's clock."""

    label: str
    job_id: int
    state: str = ""
    reason: str = ""
    name: str = ""
    user: str = ""
    exit_code: str = ""
    nodes: tuple[str, ...] = ()
    started_at: float | None = None
    ends_at: float | None = None
    restarts: int | None = None
    tasks: int | None = None
    parts: bool = False  # one of several parts of a heterogeneous job, of which only this one is looked at

    @property
    def running(self) -> bool:
        """True while it has its nodes."""
        return self.state in ("RUNNING", "COMPLETING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "STOPPED")


@dataclass(frozen=True, slots=True)
class StepFacts:
    """One running step."""

    step: str
    state: str = ""
    nodes: tuple[str, ...] = ()
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class NodeEvidence:
    """One node of the job. `clock_ahead_s` of ours, known to `clock_error_s`."""

    name: str
    state: str = ""
    reason: str = ""
    sweep: NodeSweep | None = None
    fault: str = ""
    next_step: str = ""
    clock_ahead_s: float | None = None
    clock_error_s: float | None = None


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """One log of the job, or the end of it; `explained` is what it tells of trouble."""

    path: str
    where: str
    explained: Explanation
    progress: Progress
    age_s: float | None = None
    grown: bool | None = None
    size: int | None = None
    own: bool = True  # of the job; False: a rank writes it
    lines: tuple[str, ...] = ()  # its last ones


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank: where it is or should be, and what it does. `sure`: its node is known, not inferred."""

    rank: int
    node: str = ""
    local: int | None = None
    state: str = UNKNOWN
    words: str = ""
    process: RankProcess | None = None
    doing: Doing | None = None
    sure: bool = True
    moved: bool | None = None  # between the two looks
    gpu: GatheredGpu | None = None
    connected: bool | None = None  # to the master's port


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything. `world` is how many ranks there should be, None when nobody tells."""

    job: JobFacts
    now: float  # on the head's clock
    steps: tuple[StepFacts, ...] = ()
    nodes: tuple[NodeEvidence, ...] = ()
    ranks: tuple[Rank, ...] = ()
    extra: tuple[Rank, ...] = ()  # processes that stand for a rank that another one has already
    world: int | None = None
    launched: int | None = None  # tasks that Slurm started
    logs: tuple[LogEvidence, ...] = ()
    gpus: tuple[GatheredGpu, ...] = ()
    efa: tuple[GatheredEfa, ...] = ()  # of the nodes whose cards are watched
    env: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name -> its different values
    disagreements: tuple[Disagreement, ...] = ()  # of flight records
    records: int = 0  # flight records that were read
    ras: tuple[RasReport, ...] = ()  # in the order of asking
    missing: tuple[tuple[str, str], ...] = ()
    whole: bool = False
    cluster: str = ""
    taken_at: float = 0.0
    took_s: float = 0.0

    def of_state(self, *states: str) -> tuple[Rank, ...]:
        """Ranks in one of these states."""
        return tuple(rank for rank in self.ranks if rank.state in states)
