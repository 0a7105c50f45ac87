"""Streams of the fleet that fall silent, fail, flood or end while they are opened, and the history they fill."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pytest

from cockpit.formats.probe import ProbeReader
from cockpit.gpu_models import GpuSample, NodeReading
from cockpit.hosts.base import Channel, Completed
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources import gpus
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import FleetStreams, NodeWatch, Target
from tests.sshd import wait_for
from tests.unit.test_fleet import sample

TARGET = Target("p5-1", "10.0.0.1")
HELLO = json.dumps({"k": "h", "v": 1, "rev": 1, "host": "p5-1", "gpus": []}).encode()


def line(number: int) -> bytes:
    return json.dumps({"k": "s", "rev": 1, "t": time.time() - 1000 + number, "n": number}).encode()


class Stream:
    """A probe whose lines the test puts in; None ends it."""

    def __init__(self) -> None:
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.closed = False
        self.close_error: Exception | None = None
        self.written: list[bytes] = []

    def __iter__(self) -> Iterator[bytes]:
        while (told := self.lines.get()) is not None:
            yield told

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close_stdin(self) -> None: ...

    def close(self) -> None:
        self.closed = True
        self.lines.put(None)
        if self.close_error is not None:
            raise self.close_error


class Node:
    """One node, and whether it is in the pool."""

    name = "p5-1"

    def __init__(self, stderr: bytes = b"") -> None:
        self.streams: list[Stream] = []
        self.stderr = stderr
        self.before: Callable[[], object] = lambda: None

    def stream(
        self,
        argv: Sequence[str],
        *,
        open_deadline_s: float,
        stdin: bytes = b"",
        max_line: int = 2**20,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> Stream:
        self.before()
        if on_stderr is not None and self.stderr:
            on_stderr(self.stderr)
        self.streams.append(Stream())
        return self.streams[-1]

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        raise NotImplementedError

    def open_tcp(self, address: str, port: int, *, deadline_s: float) -> Channel:
        raise NotImplementedError

    def close(self) -> None: ...


class Pool:
    """Nodes by name, as many as were asked for and not forgotten."""

    def __init__(self, node: Node) -> None:
        self.held: set[str] = set()
        self.host = node
        self.entered, self.go = threading.Event(), threading.Event()
        self.go.set()

    def node(self, name: str, address: str = "") -> Node:
        self.entered.set()
        self.go.wait(10)
        self.held.add(name)
        return self.host

    def prefer(self, names: Iterable[str]) -> None: ...

    def forget(self, name: str) -> None:
        self.held.discard(name)

    def close(self) -> None: ...


class Clock:
    """Stands still until it is moved."""

    at = 500.0

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at


class Fleet:
    """One node's stream, with the test as the node."""

    def __init__(self, node: Node | None = None) -> None:
        self.node, self.clock, self.targets = node or Node(), Clock(), [TARGET]
        self.pool = Pool(self.node)
        self.streams = FleetStreams(
            lambda: self.pool, lambda: list(self.targets), most=8, interval_s=2.0, clock=self.clock
        )

    def look(self) -> NodeWatch:
        return self.streams.collect().nodes["p5-1"]

    def opened(self) -> Stream:
        self.look()
        assert wait_for(lambda: self.node.streams)
        return self.node.streams[-1]

    def wait(self, true: Callable[[NodeWatch], bool]) -> NodeWatch:
        assert wait_for(lambda: true(self.look()))
        return self.look()


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet()
    yield made
    made.pool.go.set()
    made.streams.close()


def test_a_silent_stream_is_cut_and_the_reason_stays(fleet: Fleet) -> None:
    stream = fleet.opened()
    for told in (HELLO, line(1)):
        stream.lines.put(told)
    fleet.wait(lambda watch: watch.reading is not None)
    fleet.clock.at += 31
    assert fleet.look().fault is not None
    assert stream.closed
    assert wait_for(lambda: fleet.streams._streams["p5-1"]._stream is None)
    threading.Event().wait(0.1)  # the thread has told its end by now, and may not replace the reason
    fault = fleet.look().fault
    assert fault is not None
    assert (fault.kind, fault.why) == (FaultKind.TIMEOUT, "it has fallen silent")


def test_a_new_stream_knows_what_the_one_before_had_read(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[NodeReading | None] = []
    monkeypatch.setattr(gpus, "RETRY_FIRST_S", 0.01)

    def reader(last: NodeReading | None) -> ProbeReader:
        known.append(last)
        return ProbeReader(last)

    monkeypatch.setattr(gpus, "ProbeReader", reader)
    stream = fleet.opened()
    for told in (HELLO, line(1), None):
        stream.lines.put(told)
    assert wait_for(lambda: len(known) == 2)
    assert known[0] is None
    assert known[1] is not None
    assert known[1].number == 1


def test_a_stream_that_cannot_even_be_closed_does_not_fail_the_others(fleet: Fleet) -> None:
    stream = fleet.opened()
    stream.close_error = OSError("no such file descriptor")
    fleet.wait(lambda _: fleet.streams._streams["p5-1"]._stream is stream)
    fleet.clock.at += 31
    assert fleet.look().fault is not None
    fleet.targets = [Target("p5-2", "10.0.0.2")]
    assert set(fleet.streams.collect().nodes) == {"p5-2"}


def test_no_host_is_taken_from_the_pool_after_it_was_forgotten(fleet: Fleet) -> None:
    fleet.pool.go.clear()
    fleet.look()
    assert fleet.pool.entered.wait(10)
    fleet.targets = []
    ending = threading.Thread(target=fleet.streams.collect)
    ending.start()
    ending.join(0.2)  # it may have to wait for the pool's answer
    fleet.pool.go.set()
    ending.join(10)
    assert not ending.is_alive()
    threading.Event().wait(0.1)
    assert fleet.pool.held == set()
    assert all(stream.closed for stream in fleet.node.streams)


def test_a_stream_that_opens_after_the_stop_is_closed(fleet: Fleet) -> None:
    entered, go = threading.Event(), threading.Event()

    def before() -> None:
        entered.set()
        go.wait(10)

    fleet.node.before = before
    fleet.look()
    assert entered.wait(10)
    fleet.targets = []
    fleet.streams.collect()
    go.set()
    assert wait_for(lambda: fleet.node.streams and fleet.node.streams[-1].closed)


def test_what_a_node_says_on_stderr_is_harmless() -> None:
    fleet = Fleet(Node(b"\x1b]0;owned\x07 no\x1b[2J python\n"))
    fleet.opened().lines.put(None)
    fault = fleet.wait(lambda watch: watch.fault is not None).fault
    fleet.streams.close()
    assert fault is not None
    assert "python" in fault.why
    assert fault.why.isprintable()


def test_a_flood_of_lines_is_not_read(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "LINES_DROPPED_MAX", 100)
    stream = fleet.opened()
    stream.lines.put(HELLO)
    for number in range(190):
        stream.lines.put(line(number))
    fleet.wait(lambda watch: watch.reading is not None and stream.lines.empty())
    watch = fleet.look()
    assert watch.reading is not None
    assert watch.reading.number < 100
    assert watch.fault is None
    for number in range(20):
        stream.lines.put(line(number))
    fault = fleet.wait(lambda watch: watch.fault is not None).fault
    assert fault is not None
    assert "far more lines" in fault.why


def test_lines_at_a_probes_own_pace_are_all_read(fleet: Fleet) -> None:
    stream = fleet.opened()
    stream.lines.put(HELLO)
    for number in range(1, 300):
        fleet.clock.at += 1
        stream.lines.put(line(number))
        if number % 20 == 0:
            fleet.wait(lambda watch, at=number: watch.reading is not None and watch.reading.number == at)  # type: ignore[misc]


def test_only_for_a_key_that_nobody_knows_is_trust_at_first_sight_named() -> None:
    def step(why: str) -> str:
        return gpus._with_remedy(Fault(FaultKind.HOST_KEY, "host key of p5-1", why, "compare")).next_step

    assert "host_keys: head" in step("not in known_hosts; the server shows ssh-ed25519 SHA256:x")
    assert step("THE KEY HAS CHANGED: the server shows ssh-ed25519") == "compare"
    assert step("not in known_hosts; it shows x, known for this host are only other types: y") == "compare"


def test_a_thread_that_cannot_be_started_is_told_and_tried_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        fault = fleet.look().fault
    assert fault is not None
    assert "new thread" in fault.why
    fleet.opened()


def reading(samples: list[GpuSample], at: float) -> NodeReading:
    return NodeReading(at, 1, gpus=tuple(replace(one, taken_at=at) for one in samples))


def history_of(*times: float, interval_s: float | None = 2.0) -> GpuHistory:
    history = GpuHistory()
    for at in times:
        history.add("p5-1", replace(reading([sample(0)], at), interval_s=interval_s))
    return history


@pytest.mark.parametrize("step_s", [1.0, 2.0, 3.0, 5.0, 30.0])
def test_the_history_ends_after_ten_minutes_whatever_the_interval(step_s: float) -> None:
    times = [step_s * number for number in range(int(2000 / step_s))]
    series = history_of(*times, interval_s=step_s).series("p5-1", "GPU-0", "util_pct")
    assert 600 - max(step_s, 8.0) <= series[-1][0] - series[0][0] <= 600
    assert None not in [value for _, value in series]


def test_a_gap_in_the_history_holds_no_values() -> None:
    times = [*range(0, 100, 4), *range(200, 300, 4)]
    series = history_of(*map(float, times)).series("p5-1", "GPU-0", "power_w")
    empty = [at for at, value in series if value is None]
    assert empty == [float(at) for at in range(100, 200, 4)]
    assert [at for at, _ in series] == sorted(at for at, _ in series)
    long = history_of(0.0, 4.0, 10_000.0).series("p5-1", "GPU-0", "power_w")
    assert 100 < len(long) <= 151
    assert [value for _, value in long if value is not None] == [600]


def test_uuids_that_change_with_every_reading_are_not_kept() -> None:
    history = GpuHistory()
    for at in range(0, 400, 4):
        history.add("p5-1", reading([sample(at), sample(at + 1)], float(at)))
    assert [slot for slot in range(402) if history.series("p5-1", f"GPU-{slot}", "temp_c")] == [396, 397]
    history.add("p5-1", reading([], 404.0))
    assert history.series("p5-1", "GPU-396", "temp_c")


def test_a_fault_of_the_pool_is_the_nodes_own(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(name: str, address: str = "") -> Node:
        raise FaultError(Fault(FaultKind.FAILED, f"node {name}", "too many are connected"))

    monkeypatch.setattr(fleet.pool, "node", full)
    fault = fleet.wait(lambda watch: watch.fault is not None).fault
    assert fault is not None
    assert fault.why == "too many are connected"


def test_the_first_line_is_answered_with_a_beat_at_once(fleet: Fleet) -> None:
    """Until it has heard one, a probe cannot miss them, and would stay on a node whose link vanished."""
    for number in range(2):  # the second stream begins right after the first, on a clock that stands still
        fleet.opened()
        assert wait_for(lambda: len(fleet.node.streams) > number)  # noqa: B023
        stream = fleet.node.streams[number]
        stream.lines.put(HELLO)
        assert wait_for(lambda: stream.written)  # noqa: B023
        stream.lines.put(None)
        fleet.streams.retry_now()


def test_of_many_nodes_those_that_nobody_looks_at_are_asked_for_half_the_pace(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "MANY", 1)
    fleet.targets = [TARGET, Target("p5-2", "10.0.0.2")]
    fleet.streams.prefer(["p5-2"])
    fleet.look()
    assert {name: stream.quick for name, stream in fleet.streams._streams.items()} == {"p5-1": False, "p5-2": True}
    assert wait_for(lambda: len(fleet.node.streams) == 2)
    for stream in fleet.node.streams:
        stream.lines.put(HELLO)
    assert wait_for(lambda: all(stream.written for stream in fleet.node.streams))
    assert sorted(stream.written[0] for stream in fleet.node.streams) == [b"-", b"."]
    fleet.streams.prefer([], held=["p5-1"])
    fleet.look()
    assert {name: stream.quick for name, stream in fleet.streams._streams.items()} == {"p5-1": True, "p5-2": False}
