"""The app over the demo's Slurm with a job whose nodes answer as a test wants: at once, when told to, or never."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from cockpit.formats.hostlist import fold
from cockpit.models import Fault, FaultError, FaultKind
from screens.hang_view import HangView
from tests.screens.helpers import Driven
from tests.unit.diagnosis_kit import ELSEWHERE, R, sweep_lines
from tests.unit.test_print_output import Demo

RANKS = 4  # a node
THREADS = ("gather-", "diagnosis", "bundle")


class Line:
    """A stream of one node's lines, held back until the node may answer."""

    def __init__(self, lines: Sequence[bytes], go: threading.Event) -> None:
        self._lines, self._go = lines, go
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        while not self._go.wait(0.005):
            if self.closed.is_set():
                raise FaultError(Fault(FaultKind.UNREACHABLE, "node", "closed"))
        yield from self._lines

    def close(self) -> None:
        self.closed.set()


class Node:
    """A machine that can only be looked at."""

    def __init__(self, name: str, start: Callable[[], Line]) -> None:
        self.name, self._start = name, start

    def stream(self, argv: Sequence[str], **_: Any) -> Line:
        return self._start()

    def run(self, *_: Any, **__: Any) -> Any:
        raise FaultError(Fault(FaultKind.MISSING, "file", "not there"))


class Hanging(Driven):
    """The running app, the job that hangs, and its nodes."""

    app: CockpitApp
    pilot: Pilot[int]

    def __init__(self, app: CockpitApp, pilot: Pilot[int], demo: Demo) -> None:
        self.app, self.pilot, self.demo = app, pilot, demo
        self.job = demo.head.sim.jobs[demo.job("llama3-405b-pretrain")]
        self.hosts = list(self.job.hosts)
        self.ranks: dict[int, R | None] = {5: R(stack=ELSEWHERE)}
        self.may = {name: threading.Event() for name in self.hosts}
        self.streams: list[Line] = []
        self.let_gone: list[str] = []
        cluster: Any = demo.cluster
        cluster.node_host, cluster.let_go = self._node_host, self.let_gone.append

    def all_may(self) -> None:
        """Every node answers from now on."""
        for event in self.may.values():
            event.set()

    def _node_host(self, name: str) -> Node:
        def start() -> Line:
            line = Line(self._lines(name), self.may[name])
            self.streams.append(line)
            return line

        return Node(name, start)

    def _lines(self, name: str) -> tuple[bytes, ...]:
        place = self.hosts.index(name)
        world = RANKS * len(self.hosts)
        env = {"SLURM_TASKS_PER_NODE": f"{RANKS}(x{len(self.hosts)})", "SLURM_JOB_NODELIST": fold(self.hosts)}
        ranks: dict[int, R | None] = {}
        for rank in range(place * RANKS, (place + 1) * RANKS):
            one = self.ranks.get(rank, R())
            ranks[rank] = None if one is None else R(**{**vars_of(one), "env": env})
        return sweep_lines(0, ranks, world)

    @property
    def view(self) -> HangView:
        return self.app.cockpit.query_one(HangView)

    @property
    def whole(self) -> bool:
        """Whether a diagnosis is there and nothing is under way."""
        look = self.view.seen
        return look is not None and look.diagnosis is not None and not look.running

    def cursor_to(self, key: str) -> None:
        pane = self.app.cockpit.pane
        pane.state.move_to([pane.spec.key(row) for row in pane.visible_rows].index(key))
        pane.sync()

    @property
    def told(self) -> str:
        """Every toast so far."""
        return "\n".join(f"{note.title}: {note.message}" for note in self.app._notifications)


def vars_of(one: R) -> dict[str, Any]:
    """The fields of a rank."""
    return {name: getattr(one, name) for name in R.__dataclass_fields__}


def threads() -> list[str]:
    """What still looks at jobs."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(THREADS)]


@asynccontextmanager
async def hanging(folder: Path, size: tuple[int, int] = (120, 40), *, pane: str = "4") -> AsyncIterator[Hanging]:
    """The app with the queue in front and the cursor on the job that hangs."""
    demo = Demo(folder, "hang")
    demo.cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    app = CockpitApp(Clusters.only(demo.cluster))
    async with app.run_test(size=size, notifications=True) as pilot:
        demo.cluster.read_once()
        await pilot.press(pane)
        await pilot.pause()
        made = Hanging(app, pilot, demo)
        if pane == "4":
            made.cursor_to(str(made.job.job_id))
        try:
            yield made
        finally:
            made.all_may()
