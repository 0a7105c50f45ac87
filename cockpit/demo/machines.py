"""The demo cluster's nodes: what each has, how its power stands, which jobs hold what of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

GPUS = 8
GPU_TYPE = "h100"
CPUS = 192
SOCKETS, CORES_PER_SOCKET, THREADS_PER_CORE = 2, 48, 2
CPUS_PER_GPU = CPUS // GPUS
MEM_MIB = 1_992_294  # 95 % of a p5.48xlarge, as ParallelCluster configures it
MEM_PER_GPU_MIB = 245_760
SLURM_VERSION = "23.11.10"


class Power(str, Enum):
    """Where a cloud node is between having an instance and having none."""

    UP = "up"
    DOWN = "powered_down"
    STARTING = "powering_up"
    STOPPING = "powering_down"


@dataclass(frozen=True, slots=True)
class Share:
    """What one job holds of one node; GPU g goes with CPUs g*24 to g*24+23."""

    gpus: tuple[int, ...]
    cpus: tuple[int, ...]
    mem_mib: int


@lru_cache(maxsize=512)
def share_of(gpus: tuple[int, ...]) -> Share:
    """The share of a job that holds exactly these GPUs of a node."""
    cpus = tuple(cpu for gpu in gpus for cpu in range(gpu * CPUS_PER_GPU, (gpu + 1) * CPUS_PER_GPU))
    return Share(gpus, cpus, MEM_PER_GPU_MIB * len(gpus))


@dataclass(slots=True)
class SimNode:
    """One p5.48xlarge. Flags are Slurm's own, in lower case; `completing` holds jobs whose epilog runs."""

    name: str
    index: int  # from 0 over the whole cluster; the address follows from it
    static: bool
    partitions: tuple[str, ...]
    power: Power = Power.UP
    phase_ends: float | None = None
    down: bool = False
    responding: bool = True
    drain: bool = False
    reason: str = ""
    reason_by: str = ""
    reason_at: float | None = None
    idle_since: float | None = None
    busy_at: float | None = None
    boot_at: float | None = None
    shares: dict[int, Share] = field(default_factory=dict)
    completing: set[int] = field(default_factory=set)
    failing: bool = False
    leaving: bool = False  # powers down as soon as it has no job
    reboot: str = ""  # requested or issued
    reservations: dict[str, bool] = field(default_factory=dict)  # name -> with the MAINT flag

    @property
    def out(self) -> bool:
        """True when it takes no new work although its slurmd answers."""
        return self.drain or self.down or self.failing or self.leaving or bool(self.reboot or self.reservations)

    @property
    def features(self) -> str:
        """Features as ParallelCluster names them: kind of node and instance type."""
        return f"{'static' if self.static else 'dynamic'},p5.48xlarge,gpu"

    @property
    def own_address(self) -> str:
        """The loopback address that stands for this node's private IP."""
        return f"127.77.{self.index // 250}.{self.index % 250 + 1}"

    @property
    def address(self) -> str:
        """NodeAddr as Slurm prints it: the bare name while there is no instance."""
        return self.name if self.power is Power.DOWN else self.own_address

    @property
    def reachable(self) -> bool:
        """True when something listens on its SSH port."""
        return self.power in (Power.UP, Power.STOPPING) and self.responding

    @property
    def registered(self) -> bool:
        """True once its slurmd has told version, boot time and memory."""
        return self.boot_at is not None

    @property
    def gpus_used(self) -> tuple[int, ...]:
        """Indices of the GPUs that jobs hold, ascending."""
        return tuple(sorted(gpu for share in self.shares.values() for gpu in share.gpus))

    @property
    def cpus_used(self) -> int:
        return sum(len(share.cpus) for share in self.shares.values())

    @property
    def mem_used_mib(self) -> int:
        return sum(share.mem_mib for share in self.shares.values())

    @property
    def free_gpus(self) -> int:
        """How many GPUs a job could get now; none on a node that takes no new work."""
        if self.out or not self.responding or self.completing:
            return 0
        if self.power in (Power.STARTING, Power.STOPPING):
            return 0
        return GPUS - sum(len(share.gpus) for share in self.shares.values())

    def take(self, job_id: int, count: int) -> Share:
        """Give `count` GPUs, lowest indices first, to a job; the caller has checked `free_gpus`."""
        used = set(self.gpus_used)
        share = share_of(tuple([gpu for gpu in range(GPUS) if gpu not in used][:count]))
        self.shares[job_id] = share
        return share

    @property
    def base(self) -> str:
        """Slurm's base state in lower case."""
        if self.down or self.reboot == "issued":
            return "down"
        if not self.shares:
            return "idle"
        return "allocated" if self.cpus_used == CPUS else "mixed"

    @property
    def flags(self) -> frozenset[str]:
        """Slurm's state flags in lower case; on ParallelCluster every node is a cloud node."""
        told = {
            "cloud": True,
            "completing": bool(self.completing),
            "drain": self.drain or bool(self.reboot),
            "fail": self.failing,
            "maintenance": any(self.reservations.values()),
            "reserved": bool(self.reservations),
            "power_down": self.leaving,
            "reboot_requested": self.reboot == "requested",
            "reboot_issued": self.reboot == "issued",
            "not_responding": not self.responding,
            "powered_down": self.power is Power.DOWN,
            "powering_up": self.power is Power.STARTING,
            "powering_down": self.power is Power.STOPPING,
        }
        return frozenset(flag for flag, is_set in told.items() if is_set)


def build_nodes(count: int) -> list[SimNode]:
    """`count` nodes, two thirds static, named and partitioned as on the demo's ParallelCluster."""
    static = max(1, round(count * 2 / 3))
    nodes = [SimNode(f"gpu-st-p5-{number}", number - 1, True, _partitions(number)) for number in range(1, static + 1)]
    for number in range(1, count - static + 1):
        node = SimNode(f"gpu-dy-p5-{number}", static + number - 1, False, ("gpu",), Power.DOWN)
        nodes.append(node)
    return nodes


def _partitions(number: int) -> tuple[str, ...]:
    return ("gpu", "prio", "interactive") if number <= 2 else ("gpu", "prio")
