"""A cluster that stands still: the demo's simulated Slurm behind a host without a network, and a clock to move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig
from cockpit.demo.programs.registry import is_simulated, run
from cockpit.demo.sim import Simulation
from cockpit.hosts.base import Completed
from cockpit.models import FaultError

NOON = 1_764_500_000.0  # 2025-11-30 10:53:20 UTC


class StillClock:
    """Stands still until moved."""

    def __init__(self, time: float = NOON) -> None:
        self.time = time

    def now(self) -> float:
        return self.time

    def steady(self) -> float:
        return self.time - NOON + 1000.0


class StillHost:
    """A head whose programs answer at once; `fault` makes every call fail, `answers` overrides programs."""

    name = "head"

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.fault: FaultError | None = None
        self.answers: dict[str, Callable[[Sequence[str]], Completed]] = {}
        self.calls: list[Sequence[str]] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        unset: Sequence[str] = (),
        max_bytes: int = 0,
    ) -> Completed:
        self.calls.append(argv)
        if self.fault is not None:
            raise self.fault
        root = argv[0] == "sudo"
        if root and "-l" in argv:
            return Completed(0, b"", b"", 0.01)
        argv = argv[2:] if root else argv
        program = argv[0].rsplit("/", 1)[-1]
        if program in self.answers:
            return self.answers[program](argv)
        if program == "sh":
            return Completed(0, self._survey(), b"", 0.01)
        if not is_simulated(program):
            return Completed(127, b"", f"{program}: command not found".encode(), 0.01)
        answer = run(self.sim, argv, env or {}, "head", root=root)
        return Completed(answer.rc, answer.stdout, answer.stderr, 0.01)

    def _survey(self) -> bytes:
        facts = ["squeue=/opt/slurm/bin/squeue", "user=ops", "uid=1000", "hostname=head", "end=yes"]
        return "\n".join([*facts, f"epoch={int(self.sim.clock())}"]).encode()

    def stream(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    def open_tcp(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def retry_now(self) -> None:
        pass


def still_cluster(config: ClusterConfig | None = None, **simulation: Any) -> tuple[Cluster, StillHost, StillClock]:
    """A cluster with nothing read yet, its head, and its clock."""
    clock = StillClock()
    head = StillHost(Simulation(clock=clock.now, **simulation))
    return Cluster(config or ClusterConfig("still"), clock=clock, head=head, watch_gpus=False), head, clock
