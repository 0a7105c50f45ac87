"""A simulated day of a cluster in which nothing stays as it is: new jobs, new words, new faults at every look."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig
from cockpit.demo.sim import Simulation
from cockpit.formats.probe import ProbeReader
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.gpus import GPUS, FleetReading, Target, _LineBound, _NodeStream
from cockpit.sources.slurm import NODES, QUEUE
from tests.still import StillClock, StillHost
from tests.still_gpus import tell
from tests.unit.test_gpu_streams import Node, Pool, Stream

EVERY_S = 15.0
LOOKS_AN_HOUR = 240
NODES_WATCHED = 2
XIDS = (31, 43)  # few codes and a new event each time: many codes would only make many problems of one GPU
_RECORD = re.compile(rb"\x1e[0-9a-f]+\n")


class Day:
    """Call look() LOOKS_AN_HOUR times an hour. What it makes up is kept nowhere but in the cockpit."""

    def __init__(self, nodes: int) -> None:
        self.clock = StillClock()
        self.head = StillHost(Simulation(clock=self.clock.now, nodes=nodes))
        self.cluster = Cluster(ClusterConfig("day"), clock=self.clock, head=self.head, watch_gpus=False)
        self.cluster.store.declare(GPUS, 1.0)
        self.number = 0
        self.cluster.read_once()
        self._jobs, self._nodes = self._records(QUEUE.name), self._records(NODES.name)
        self.head.answers |= {"squeue": self._answer(self._jobs), "sinfo": self._answer(self._nodes)}
        names = [node.name for node in self.cluster.view.nodes or () if node.gpus_total][:NODES_WATCHED]
        self.probes = [Probe(self.cluster, name, self.clock) for name in names]

    def _records(self, source: str) -> list[bytes]:
        """What Slurm's program prints of this cluster, without the marks."""
        heard: list[bytes] = []
        real = self.head.run

        def run(argv: Sequence[str], **options: object) -> Completed:
            done = real(argv, **options)  # type: ignore[arg-type]
            heard.append(done.stdout)
            return done

        self.head.run = run  # type: ignore[method-assign]
        self._poll(source)
        self.head.run = real  # type: ignore[method-assign]
        return _RECORD.split(heard[-1])[:-1]

    @staticmethod
    def _answer(records: list[bytes]) -> Callable[[Sequence[str]], Completed]:
        def answer(argv: Sequence[str]) -> Completed:
            end = b"\x1e" + argv[-1].rpartition("\x1e")[2].encode() + b"\n"
            return Completed(0, end.join(records) + end, b"", 0.01)

        return answer

    def _poll(self, source: str) -> None:
        next(poller for poller in self.cluster._pollers if poller.key.name == source).poll_once()

    def look(self) -> None:
        """Some seconds later."""
        self.clock.time += EVERY_S
        self.number += 1
        self._churn()
        if self.number % 2 == 0:
            why = f"no answer ({self.number})"
            self.head.fault = FaultError(Fault(FaultKind.TIMEOUT, "squeue", why))
        self._poll(NODES.name)
        self._poll(QUEUE.name)
        self.head.fault = None
        self.probes[self.number % len(self.probes)].tells(self.number)
        if self.number % 4 == 0:
            tell(self.cluster, FleetReading({probe.name: probe.stream._watch for probe in self.probes}))

    def _churn(self) -> None:
        """One job has gone and another one, which cannot start, has come; one node is drained in new words."""
        place = self.number % len(self._jobs)
        fields = self._jobs[place].split(b"\x1f")
        fields[0] = fields[1] = b"%d" % (100_000 + self.number)
        fields[-1] = b"run-%d" % self.number
        if fields[5] == b"PD":
            fields[-5] = b"BadConstraints"
        self._jobs[place] = b"\x1f".join(fields)
        fields = self._nodes[(self.number // 6) % len(self._nodes)].split(b"\x1f")
        was_drained = fields[3].endswith(b"+drain")
        fields[3] = fields[3].removesuffix(b"+drain") if was_drained else fields[3] + b"+drain"
        fields[-1] = b"none" if was_drained else b"looked at by hand, number %d" % self.number
        self._nodes[(self.number // 6) % len(self._nodes)] = b"\x1f".join(fields)


class Probe:
    """One node's stream, and what its probe tells: readings that differ, processes that come and go, Xids."""

    def __init__(self, cluster: Cluster, name: str, clock: StillClock) -> None:
        self.name, self._clock = name, clock
        self.stream = _NodeStream(Target(name, "10.0.0.1"), Pool(Node()), 2.0, clock, cluster.streams._kept)
        self._reader, self._line = ProbeReader(now=clock.now), Stream()
        gpus = [
            {"i": slot, "minor": slot, "uuid": f"GPU-{slot}", "pci": f"0000:{0x53 + slot:02x}:00"} for slot in range(8)
        ]
        hello = {"k": "h", "v": 1, "rev": 1, "host": name, "boot": "b", "iv": 2, "gpus": gpus}
        self._say({**hello, "efa": [["rdmap0", "", ["rx_drops"]]]})

    def _say(self, told: dict[str, object]) -> None:
        bound = _LineBound(2.0, self._clock.steady())
        self.stream._take(self._reader, self._line, json.dumps(told).encode(), bound)
        self._line.written.clear()

    def tells(self, number: int) -> None:
        fast = [[number % 97, number % 31, 60_000 + number % 999, 60, 70, 600, 1755, 0]] * 8
        slow = [[700, number, 0, 0, 0, 0, 18, 5, 16, 0]] * 8
        processes = [[slot, number, 60_000, None, 1, "maria", "python3", number, number, 0, slot] for slot in range(8)]
        now = self._clock.now()
        xid = f"NVRM: Xid (PCI:0000:53:00): {XIDS[number % 2]}, pid={number}"
        self._say(
            {
                "k": "s", "rev": 1, "n": number, "t": now, "l": [1, 1, 1], "m": [1000, 900], "d": 0, "g": fast,
                "G": slow, "p": processes, "e": [["rdmap0", "rx_drops", number]],
                "mt": [["/fsx", "lustre", f"fs-{number % 5}", 1000, 500, 500, 100, 50]], "km": [[now, xid]],
            }
        )  # fmt: skip
