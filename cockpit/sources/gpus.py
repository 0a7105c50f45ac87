"""GPUs of the whole fleet: one stream a node through the head, kept up, let go, and read as one answer."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.formats.probe import ProbeReader
from cockpit.gpu_models import NodeReading
from cockpit.hosts.base import Host, LineStream
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.probe.agent.options import SLOW_FACTOR
from cockpit.probe.bundle import probe_argv, probe_stdin
from cockpit.sources.base import SourceKey, unexpected
from cockpit.sources.efa_changes import EfaChanges
from cockpit.sources.efa_traffic import EfaTraffics
from cockpit.sources.gpu_events import NodeEvents
from cockpit.sources.gpu_history import GpuHistory
from cockpit.text import printable

OPEN_DEADLINE_S = 60.0  # the wait for a turn among all other nodes is part of it
STARTS_AT_ONCE = 12  # a collect, so that dialling a big fleet leaves the machine to the user
KEEP_S = 30.0  # with more nodes than may be watched, one stays that was on the screen so lately
RETRY_FIRST_S = 2.0
RETRY_MAX_S = 60.0
WORKED_S = 10.0  # a probe that has told its node for so long ended by no fault of its own: it is retried soon
HEARTBEAT_S = 4.0
BEAT, SLOW_BEAT = b".", b"-"  # what a beat asks for: the whole pace, or half of it
MANY = 64  # with more nodes, those that are neither on the screen nor in trouble tell half as often
SLOW_S = 3.0  # ECC, remap, NVLink, processes: a fault is to be seen within 5 s
SILENT_INTERVALS = 10
SILENT_MIN_S = 30.0
LINES_PER_INTERVAL = 20.0  # a probe says one or two; what had piled up in the network may come at once
LINES_AT_ONCE = 100.0
LINES_DROPPED_MAX = 2000  # then the stream is ended: reading on costs more than it tells


@dataclass(frozen=True, slots=True)
class Target:
    """A node to be watched: Slurm's name for it, and where its sshd is."""

    node: str
    address: str


@dataclass(frozen=True, slots=True)
class NodeWatch:
    """One node's stream: the last reading, when it came (steady clock), and the fault when it is broken."""

    node: str
    reading: NodeReading | None = None
    seen_at: float | None = None
    fault: Fault | None = None
    since: float | None = None  # steady clock: when the fault began
    events: NodeEvents = field(default_factory=NodeEvents)


@dataclass(frozen=True, slots=True)
class FleetReading:
    """Data of the source `gpus`. `left_out` are nodes beyond `nodes.max`, which nobody looks at."""

    nodes: Mapping[str, NodeWatch] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


GPUS: SourceKey[FleetReading] = SourceKey("gpus")


class Nodes(Protocol):
    """What reaches nodes by address (hosts.pool.NodePool)."""

    def node(self, name: str, address: str = "") -> Host: ...
    def prefer(self, names: Iterable[str]) -> None: ...
    def forget(self, name: str) -> None: ...
    def close(self) -> None: ...


class FleetStreams:
    """Keeps a stream to each target while it is one, with back-off; collect() never waits for a node."""

    def __init__(
        self,
        open_nodes: Callable[[], Nodes],
        targets: Callable[[], Iterable[Target]],
        *,
        most: int,
        interval_s: float,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._open_nodes, self._targets, self._most = open_nodes, targets, most
        self._interval_s, self._clock = interval_s, clock
        self._nodes: Nodes | None = None
        self._streams: dict[str, _NodeStream] = {}
        self._known: dict[str, Target] = {}  # those that were ever connected to, and are still there
        self._wishes: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()
        self._preferred, self._held = self._wishes
        self._preferred_at: dict[str, float] = {}  # node -> when it was last on the screen (steady clock)
        self._lock = threading.Lock()
        self._closed = False
        self.history = GpuHistory()
        self.efa, self.traffic = EfaChanges(), EfaTraffics()

    def collect(self) -> FleetReading:
        """What every node has told so far; also starts and ends streams as nodes come and go."""
        wanted = list(self._targets())
        with self._lock:
            if self._closed:
                return FleetReading()
            self._heed_wishes()
            self._let_go({target.node: target for target in wanted})
            new = [target for target in wanted if target.node not in self._streams]
            new.sort(key=lambda target: target.node not in self._preferred)
            self._make_room(new)
            for target in new[: max(0, min(STARTS_AT_ONCE, self._most - len(self._streams)))]:
                self._streams[target.node] = self._start(target)
            for name, running in self._streams.items():
                running.quick = len(self._streams) <= MANY or name in self._preferred or name in self._held
            watches = {name: stream.look() for name, stream in self._streams.items()}
        full = len(watches) >= self._most
        left_out = tuple(target.node for target in wanted if full and target.node not in watches)
        return FleetReading(watches, left_out)

    def _let_go(self, wanted: Mapping[str, Target]) -> None:
        for name, target in list(self._known.items()):
            if wanted.get(name) != target:
                del self._known[name]
                self._preferred_at.pop(name, None)
                self._end(name)
                with suppress(Exception):
                    self._pool().forget(name)

    def _end(self, name: str) -> None:
        if (stream := self._streams.pop(name, None)) is not None:
            stream.stop()
            self.history.forget(name)
            self.efa.forget(name)
            self.traffic.forget(name)

    def prefer(self, names: Iterable[str], *, held: Iterable[str] = ()) -> None:
        """Watch these nodes, which somebody looks at, before all others; let go of none that is held. Never blocks."""
        self._wishes = frozenset(names), frozenset(held)

    def _heed_wishes(self) -> None:
        names, self._held = self._wishes
        self._preferred_at.update(dict.fromkeys(names, self._clock.steady()))
        if names != self._preferred:
            self._preferred = names
            if self._nodes is not None:
                self._nodes.prefer(names)

    def _make_room(self, new: Iterable[Target]) -> None:
        """Where no more may be watched, let go of those that were on the screen the longest ago, for those that are."""
        wanted = sum(1 for target in new if target.node in self._preferred)
        short = min(wanted, STARTS_AT_ONCE) - (self._most - len(self._streams))
        if short <= 0:
            return
        latest = self._clock.steady() - KEEP_S
        others = self._streams.keys() - self._preferred - self._held
        seen = {name: self._preferred_at.get(name, -1.0) for name in self._streams if name in others}
        for name in sorted((name for name, at in seen.items() if at <= latest), key=seen.__getitem__)[:short]:
            self._end(name)

    def _start(self, target: Target) -> _NodeStream:
        self._known[target.node] = target
        stream = _NodeStream(target, self._pool(), self._interval_s, self._clock, self._kept)
        stream.start()
        return stream

    def _pool(self) -> Nodes:
        if self._nodes is None:
            self._nodes = self._open_nodes()
            self._nodes.prefer(self._preferred)
        return self._nodes

    def _kept(self, node: str, reading: NodeReading) -> None:
        self.history.add(node, reading)
        self.efa.add(node, reading)
        self.traffic.add(node, reading)

    def retry_now(self) -> None:
        """Try broken nodes at once, whatever their back-off."""
        with self._lock:
            for stream in self._streams.values():
                stream.wake()

    def close(self) -> None:
        """End every stream and connection; waits for nothing."""
        with self._lock:
            self._closed = True
            for stream in self._streams.values():
                stream.stop()
            if self._nodes is not None:
                self._nodes.close()


class _NodeStream:
    """The thread that reads one node's probe, again and again until it is stopped."""

    def __init__(
        self,
        target: Target,
        nodes: Nodes,
        interval_s: float,
        clock: Clock,
        keep: Callable[[str, NodeReading], object],
    ) -> None:
        self.target, self.quick = target, True
        self._nodes, self._interval_s, self._clock, self._keep = nodes, interval_s, clock, keep
        self._watch = NodeWatch(target.node)
        self._stop, self._wake = threading.Event(), threading.Event()
        # Held while a host is taken from the pool or a reading is put away, so that neither happens after stop().
        self._lock = threading.RLock()
        self._running = False
        self._stream: LineStream | None = None
        self._cut: tuple[LineStream, Fault] | None = None  # the stream that look() has closed, and why
        self._beat_at = self._line_at = clock.steady()

    def start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"gpus-{self.target.node}", daemon=True)
        try:
            thread.start()
            self._running = True
        except RuntimeError as error:  # the machine gives no more threads; look() tries again
            self._broken(unexpected(f"the probe on {self.target.node}", error))

    def stop(self) -> None:
        with self._lock:
            self._stop.set()
            stream = self._stream
        self._wake.set()
        if stream is not None:
            _close(stream)

    def wake(self) -> None:
        self._wake.set()

    def look(self) -> NodeWatch:
        """The state now. A stream that has been silent for too long is cut, so that it is opened anew."""
        if not self._running:
            self.start()
        with self._lock:
            stream, silent_s = self._stream, self._clock.steady() - self._line_at
            if stream is None or silent_s <= max(SILENT_MIN_S, SILENT_INTERVALS * self._interval_s):
                return self._watch
            fault = Fault(FaultKind.TIMEOUT, f"the probe on {self.target.node}", "it has fallen silent")
            self._cut = (stream, fault)
            self._broken(fault)
        _close(stream)
        return self._watch

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = self._clock.steady()
            try:
                self._broken(self._read())
            except FaultError as error:
                self._broken(_with_remedy(error.fault))
            except Exception as error:  # one node's nonsense must not end its thread in silence
                self._broken(unexpected(f"the probe on {self.target.node}", error))
            told_at = self._watch.seen_at
            worked = told_at is not None and told_at - began > WORKED_S
            failures = 1 if worked else failures + 1
            wait_s = min(RETRY_FIRST_S * float(2 ** min(failures - 1, 10)), RETRY_MAX_S)
            self._wake.wait(wait_s * (1 + random.random() / 2))  # noqa: S311
            self._wake.clear()

    def _read(self) -> Fault:
        """Read until the stream ends; returns why it did, raises FaultError when it could not be opened."""
        heard: list[bytes] = []
        stream = self._open(heard)
        if stream is None:
            return Fault(FaultKind.FAILED, f"the probe on {self.target.node}", "it was stopped")
        reader = ProbeReader(self._watch.reading)
        bound = _LineBound(self._interval_s, self._clock.steady())
        try:
            for line in stream:
                if self._stop.is_set():
                    break
                self._take(reader, stream, line, bound)
        except Exception:
            if not self._was_cut(stream):
                raise
        finally:
            with self._lock:
                self._stream = None
            _close(stream)
        return self._was_cut(stream) or _ended(self.target.node, reader, b"".join(heard))

    def _open(self, heard: list[bytes]) -> LineStream | None:
        """The started probe; None when this was stopped meanwhile."""
        with self._lock:
            if self._stop.is_set():
                return None
            host = self._nodes.node(self.target.node, self.target.address)
        stream = host.stream(
            probe_argv(self._interval_s, heartbeat=max(15.0, 4 * self._interval_s), slow=SLOW_S),
            open_deadline_s=OPEN_DEADLINE_S,
            stdin=probe_stdin(),
            on_stderr=lambda text: heard.append(text) if len(heard) < 8 else None,
        )
        with self._lock:
            if not self._stop.is_set():
                self._stream, self._line_at = stream, self._clock.steady()
                # The first line is answered with a beat: before it has one, a probe does not miss them, and
                # would stay behind for long when the link vanishes without a word.
                self._beat_at = self._line_at - HEARTBEAT_S
                return stream
        _close(stream)
        return None

    def _was_cut(self, stream: LineStream) -> Fault | None:
        cut = self._cut
        return cut[1] if cut is not None and cut[0] is stream else None

    def _take(self, reader: ProbeReader, stream: LineStream, line: bytes, bound: _LineBound) -> None:
        now = self._line_at = self._clock.steady()
        if now - self._beat_at >= HEARTBEAT_S:
            self._beat_at = now
            stream.write(BEAT if self.quick else SLOW_BEAT)
        if not bound.allows(now):
            if bound.dropped > LINES_DROPPED_MAX:
                why = "it sends far more lines than a probe does"
                raise FaultError(Fault(FaultKind.GARBLED, f"the probe on {self.target.node}", why))
            return
        reading = reader.feed(line)
        if reading is None:
            return
        if not self.quick and reading.interval_s:  # so that nobody takes the longer waits for a silence
            reading = replace(reading, interval_s=SLOW_FACTOR * reading.interval_s)
        events = self._watch.events.after(reading)
        with self._lock:
            if not self._stop.is_set():
                self._watch = NodeWatch(self.target.node, reading, now, events=events)
                self._keep(self.target.node, reading)

    def _broken(self, fault: Fault) -> None:
        with self._lock:
            watch = self._watch
            since = watch.since if watch.fault is not None else self._clock.steady()
            self._watch = replace(watch, fault=fault, since=since)


class _LineBound:
    """Lets through LINES_PER_INTERVAL lines on average, and LINES_AT_ONCE together."""

    def __init__(self, interval_s: float, now: float) -> None:
        self._per_s, self._left, self._at = LINES_PER_INTERVAL / interval_s, LINES_AT_ONCE, now
        self.dropped = 0

    def allows(self, now: float) -> bool:
        self._left = min(LINES_AT_ONCE, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            self.dropped += 1
            return False
        self._left -= 1
        return True


def _close(stream: LineStream) -> None:
    """Closing is the last that is wanted of a stream; one that cannot even do that is let go all the same."""
    with suppress(Exception):
        stream.close()


def _with_remedy(fault: Fault) -> Fault:
    """Nodes of a cluster that scales come and go with keys that nobody has accepted: there is a way for that."""
    unknown = fault.kind is FaultKind.HOST_KEY and fault.why.startswith("not in known_hosts")
    if not unknown or "known for this host" in fault.why:  # such a key is refused whatever `host_keys` says
        return fault
    step = "`nodes: {host_keys: head}` in the config trusts a node when it is first seen through the head; or "
    return replace(fault, next_step=step + fault.next_step)


def _ended(node: str, reader: ProbeReader, stderr: bytes) -> Fault:
    words = " ".join(stderr.decode("utf-8", "replace").split())[-200:]
    said = reader.ended or printable(words)
    why = f"it ended: {said}" if said else "it ended without a word"
    return Fault(FaultKind.FAILED, f"the probe on {node}", why, "it is started again")
