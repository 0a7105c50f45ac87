"""Gathering: partial answers as they come, a node that never answers, an end at once when it is asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cockpit.clock import SYSTEM_CLOCK
from cockpit.cluster import Cluster
from cockpit.diagnosis.diagnose import diagnose
from cockpit.diagnosis.gathered import Gathered
from cockpit.gather import Gatherer
from cockpit.hosts.base import NotAskedError
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.efa_changes import EfaChanges
from tests.unit.diagnosis_kit import GONE, NODES, STEPS, R, job_text, sweep_lines


class Stream:
    """Lines of one node, held back until `go`."""

    def __init__(self, lines: tuple[bytes, ...], go: threading.Event) -> None:
        self._lines, self._go, self.closed = lines, go, threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            while not self._go.wait(0.01):
                if self.closed.is_set():
                    raise FaultError(Fault(FaultKind.UNREACHABLE, "node", "closed"))
            yield line

    def close(self) -> None:
        self.closed.set()


class Machine:
    """A node, or the head, that answers with what it is given."""

    def __init__(self, name: str, start: Callable[[], Stream]) -> None:
        self.name, self._start = name, start

    def stream(self, argv: list[str], **_: Any) -> Stream:
        assert "job=77" in argv
        return self._start()

    def run(self, *_: Any, **__: Any) -> Any:
        raise FaultError(Fault(FaultKind.MISSING, "file", "not there"))


class Site:
    """As much of a Cluster as a Gatherer uses."""

    def __init__(self, starts: dict[str, Callable[[], Stream]], text: bytes = b"") -> None:
        self._starts, self._text = starts, text or job_text()
        self.clock, self.config = SYSTEM_CLOCK, SimpleNamespace(name="prod", head="local")
        nodes = [SimpleNamespace(name=name, word="allocated", reason="", address="") for name in starts or NODES]
        self.view = SimpleNamespace(nodes=nodes, gpu_rows=())
        self.streams = SimpleNamespace(efa=EfaChanges())
        self.slurm = SimpleNamespace(
            read=self._read, facts=lambda: SimpleNamespace(slurm_dir=""), known_facts=lambda: None
        )
        self.head = Machine("head", lambda: Stream((), threading.Event()))
        self.let_gone: list[str] = []

    def _read(self, _program: str, args: list[str], _what: str) -> bytes:
        return STEPS % 8 if "step" in args else self._text

    def head_now(self) -> float:
        return self.clock.now()

    def node_host(self, name: str) -> Machine:
        return Machine(name, self._starts[name])

    def let_go(self, name: str) -> None:
        self.let_gone.append(name)


def lines(node: int) -> tuple[bytes, ...]:
    ranks: dict[int, R | None] = {rank: R() for rank in range(node * 4, node * 4 + 4)}
    if 5 in ranks:
        ranks[5] = GONE
    return sweep_lines(node, ranks, 8)


def gatherer(site: Site, **options: Any) -> Gatherer:
    return Gatherer(cast(Cluster, site), "77", **options)


@pytest.fixture
def go() -> threading.Event:
    return threading.Event()


def test_what_has_come_is_told_before_the_rest(go: threading.Event) -> None:
    ready = threading.Event()
    ready.set()
    site = Site({"p5-1": lambda: Stream(lines(0), ready), "p5-2": lambda: Stream(lines(1), go)})
    told: list[Gathered] = []

    def changed(gathered: Gathered) -> None:
        told.append(gathered)
        if gathered.nodes and gathered.nodes[0].lines:
            go.set()

    whole = gatherer(site, changed=changed).run()
    first = next(each for each in told if each.nodes[0].lines)
    assert not first.nodes[1].lines
    assert not diagnose(first).verdict.final
    found = diagnose(whole)
    assert (found.verdict.ranks, found.verdict.final) == ((5,), True)
    assert sorted(site.let_gone) == list(NODES)


def test_a_node_that_never_answers_is_missing_and_is_let_go(go: threading.Event) -> None:
    ready = threading.Event()
    ready.set()
    silent = Stream(lines(1), go)
    site = Site({"p5-1": lambda: Stream(lines(0), ready), "p5-2": lambda: silent})
    found = diagnose(gatherer(site, deadline_s=2.0).run())
    assert silent.closed.is_set()
    assert ("p5-2", "no answer within 2 s") in found.evidence.missing
    assert {rank.state for rank in found.evidence.ranks if rank.rank >= 4} == {"not read"}
    assert not found.verdict.final


def test_a_node_that_refuses_says_why() -> None:
    def refuses() -> Stream:
        raise FaultError(Fault(FaultKind.AUTH, "SSH to p5-2", "permission denied", "check nodes.user"))

    ready = threading.Event()
    ready.set()
    site = Site({"p5-1": lambda: Stream(lines(0), ready), "p5-2": refuses})
    found = diagnose(gatherer(site).run())
    assert ("p5-2", "SSH to p5-2: permission denied") in found.evidence.missing
    assert found.evidence.nodes[1].next_step == "check nodes.user"


def test_it_can_be_stopped(go: threading.Event) -> None:
    site = Site({name: partial(Stream, lines(node), go) for node, name in enumerate(NODES)})
    one = gatherer(site)
    threading.Timer(0.2, one.stop).start()
    began = time.monotonic()
    gathered = one.run()
    assert time.monotonic() - began < 5
    assert not gathered.whole


def test_64_nodes_are_asked_at_the_same_time_and_all_of_them_answer() -> None:
    """None of them answers before all have been asked: one after another, or few at once, there would be no answer."""
    count, world = 64, 64 * 8
    names = [f"p5-{number}" for number in range(count)]
    everybody = threading.Event()
    asked: set[str] = set()
    lock = threading.Lock()

    def start(place: int) -> Stream:
        with lock:
            asked.add(names[place])
            if len(asked) == count:
                everybody.set()
        ranks: dict[int, R | None] = {rank: R() for rank in range(place * 8, place * 8 + 8)}
        if 300 in ranks:
            ranks[300] = GONE
        return Stream(sweep_lines(0, ranks, world), everybody)

    text = job_text().replace(b"NodeList=p5-[1-2]", b"NodeList=p5-[0-63]")
    site = Site({name: partial(start, place) for place, name in enumerate(names)}, text)
    told: list[Gathered] = []
    gathered = gatherer(site, changed=told.append).run()
    assert asked == set(names)
    assert gathered.whole
    assert all(node.answered for node in gathered.nodes)
    assert sorted(site.let_gone) == sorted(names)
    found = diagnose(gathered)
    assert found.verdict.ranks == (300,)
    assert len(found.evidence.ranks) == world
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gather-p5-")]


def test_one_of_64_nodes_that_hangs_keeps_no_other_from_being_heard(go: threading.Event) -> None:
    ready = threading.Event()
    ready.set()
    names = [f"p5-{number}" for number in range(64)]

    def start(place: int) -> Stream:
        ranks: dict[int, R | None] = {rank: R() for rank in range(place * 8, place * 8 + 8)}
        return Stream(sweep_lines(0, ranks, 512), go if place == 17 else ready)

    text = job_text().replace(b"NodeList=p5-[1-2]", b"NodeList=p5-[0-63]")
    site = Site({name: partial(start, place) for place, name in enumerate(names)}, text)
    gathered = gatherer(site, deadline_s=4.0).run()
    assert not gathered.whole
    assert [node.name for node in gathered.nodes if not node.answered] == ["p5-17"]
    assert sum(1 for rank in diagnose(gathered).evidence.ranks if rank.state == "not read") == 8


def test_a_node_whose_turn_to_be_connected_to_never_came_is_not_blamed() -> None:
    ready = threading.Event()
    ready.set()

    def not_yet() -> Stream:
        why = "no connection within 9 s; still waiting for its turn to connect"
        raise NotAskedError(Fault(FaultKind.UNREACHABLE, "SSH to p5-2", why))

    gathered = gatherer(Site({"p5-1": lambda: Stream(lines(0), ready), "p5-2": not_yet})).run()
    assert not gathered.whole
    assert [node.fault for node in gathered.nodes] == ["", ""]
    assert [why for what, why in gathered.missing if "p5-2" in what and "turn" in why]
    assert not [each for each in diagnose(gathered).hypotheses if "answer" in each.sentence]
