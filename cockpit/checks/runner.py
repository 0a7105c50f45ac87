"""Asks many nodes at once, each within its own time; what hangs on one of them costs only that one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cockpit.catalog.checks import parts_for
from cockpit.checks.facts import Facts, Known
from cockpit.checks.judge import drift, judge
from cockpit.checks.models import CheckRun, NodeResult, Result
from cockpit.checks.own import own_parts
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.config import CheckSettings
from cockpit.formats.look import NodeLook, parse_look
from cockpit.hosts.base import Host
from cockpit.kept_lines import run_id
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.probe.look import Asking, look_argv, look_stdin
from cockpit.sources.base import unexpected
from cockpit.text import printable

LOOK_S = {"efa": 25.0, "health": 30.0}
# A node waits for one of the few connections that are set up at once, behind others that hang.
DIAL_S = 60.0
AT_ONCE = 96
MAX_WINDOW_S = 60.0
_MAX_BYTES = 8 * 2**20
_LOOK_UP_S = 0.2

OpenHost = Callable[[str], Host]
OnResult = Callable[[NodeResult], None]


@dataclass(frozen=True, slots=True)
class Target:
    """One node to be asked, what is known of it, and what others found of it already (AWS)."""

    node: str
    known: Known = field(default_factory=Known)
    extra: tuple[Result, ...] = ()
    ask_driver: bool = True  # False: another reader of its GPU driver hangs already


class CheckRunner:
    """One run of `efa` or `health` over some nodes. cancel() from any thread; what has answered stays."""

    def __init__(
        self,
        kind: str,
        open_host: OpenHost,
        *,
        settings: CheckSettings | None = None,
        window_s: float | None = None,
        clock: Clock = SYSTEM_CLOCK,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.kind, self._open, self._clock = kind, open_host, clock
        self._settings, self._options = settings or CheckSettings(), dict(options or {})
        self.window_s = _window(window_s)
        self._parts = self._asked_parts()
        self.cancelled = threading.Event()

    def _asked_parts(self) -> dict[str, dict[str, Any]]:
        parts = parts_for(self.kind) | own_parts(self._settings.commands, self.kind)
        if "counters" in parts and self.window_s is not None:
            parts["counters"] |= {"window_s": self.window_s, "timeout_s": self.window_s + 11}
        return parts

    @property
    def deadline_s(self) -> float:
        """Seconds one look may take on its node."""
        longest = max((float(part["timeout_s"]) for part in self._parts.values()), default=0.0)
        return max(LOOK_S[self.kind], longest + 5)

    def run(self, targets: Sequence[Target], on_result: OnResult | None = None) -> CheckRun:
        """Ask all of them; `on_result` is called here, as each node is done. Returns at once when it is cancelled."""
        began, at = self._clock.steady(), self._clock.now()
        found: dict[str, NodeResult] = {}
        for node in self._answers(targets):
            found[node.node] = node
            if on_result is not None:
                on_result(node)
        nodes = tuple(found[target.node] for target in targets if target.node in found)
        return CheckRun(
            id=run_id(at),
            kind=self.kind,
            at=at,
            took_s=self._clock.steady() - began,
            nodes=nodes,
            drift=drift(nodes, self.kind),
            left_out=tuple((target.node, "cancelled") for target in targets if target.node not in found),
            cancelled=self.cancelled.is_set(),
        )

    def _answers(self, targets: Sequence[Target]) -> Iterator[NodeResult]:
        """Each node's result as it comes. The threads are daemons: one that hangs must not keep the cockpit open."""
        work: queue.SimpleQueue[Target] = queue.SimpleQueue()
        done: queue.SimpleQueue[NodeResult] = queue.SimpleQueue()
        for target in targets:
            work.put(target)
        for number in range(min(AT_ONCE, len(targets))):
            name = f"check-{self.kind}-{number}"
            threading.Thread(target=self._work, args=(work, done), name=name, daemon=True).start()
        left = len(targets)
        while left and not self.cancelled.is_set():
            with suppress(queue.Empty):
                yield done.get(timeout=_LOOK_UP_S)
                left -= 1

    def _work(self, work: queue.SimpleQueue[Target], done: queue.SimpleQueue[NodeResult]) -> None:
        with suppress(queue.Empty):
            while not self.cancelled.is_set():
                done.put(self._one(work.get_nowait()))

    def cancel(self) -> None:
        """Ask no further node, and wait for none; what runs on nodes ends by its own deadlines."""
        self.cancelled.set()

    def _one(self, target: Target) -> NodeResult:
        """One node to its end; whatever happens is in the result."""
        began, at = self._clock.steady(), self._clock.now()
        try:
            look, again = self._look_until_complete(target)
            return self.judged(target, look, at, self._clock.steady() - began, again)
        except FaultError as error:
            fault = error.fault
        except Exception as error:  # whatever one node does, the others are told
            fault = unexpected(f"checking {target.node}", error)
        return NodeResult(target.node, at, self._clock.steady() - began, fault=fault, queue=target.known.queue)

    def judged(self, target: Target, look: NodeLook, at: float, took_s: float, again: int = 0) -> NodeResult:
        """What such a look says of a node, however it came; wall time and seconds."""
        facts = Facts(look, target.known, self._settings)
        return NodeResult(
            node=target.node,
            at=at,
            took_s=took_s,
            results=judge(facts, self.kind, target.extra),
            queue=target.known.queue,
            instance_type=facts.type_name,
            versions=facts.versions,
            asked_again=again,
        )

    def _look_until_complete(self, target: Target) -> tuple[NodeLook, int]:
        """Once more, twice at most, for a node that booted lately and has fewer devices than its type."""
        look = self.look(target)
        if self.kind != "efa":
            return look, 0
        again = 0
        while again < Facts(look, target.known, self._settings).limit("efa.devices", "retries"):
            facts = Facts(look, target.known, self._settings)
            if not _may_be_late(facts) or self.cancelled.wait(facts.limit("efa.devices", "retry_after_s")):
                break
            look, again = self.look(target), again + 1
        return look, again

    def asking(self, *, driver: bool = True) -> Asking:
        """What one look asks."""
        return Asking(self._parts, self.deadline_s, reading=self.kind == "health", driver=driver, options=self._options)

    def look(self, target: Target) -> NodeLook:
        """Ask one node once; raises FaultError."""
        asking = self.asking(driver=target.ask_driver)
        host = self._open(target.node)
        done = host.run(
            look_argv(asking),
            deadline_s=self.deadline_s + DIAL_S,
            stdin=look_stdin(asking),
            max_bytes=_MAX_BYTES,
        )
        if not done.stdout.strip():
            said = printable((done.stderr.strip() or b"nothing at all")[-200:])
            why = f"the look ended with status {done.rc} and said {said}"
            step = "log in there by hand; is there a shell, and room for processes?"
            raise FaultError(Fault(FaultKind.FAILED, f"node {printable(target.node)}", why, step))
        return parse_look(done.stdout, self._clock.now)


def _window(window_s: float | None) -> float | None:
    if window_s is not None and not 0.1 <= window_s <= MAX_WINDOW_S:
        raise ValueError(f"a window of 0.1 to {MAX_WINDOW_S:.0f} seconds, not {window_s:g}")
    return window_s


def _may_be_late(facts: Facts) -> bool:
    uptime_s, expected = facts.uptime_s, facts.expected_efa
    young = uptime_s is not None and uptime_s < facts.limit("efa.devices", "late_s")
    return young and expected is not None and expected > 0 and len(facts.devices) < expected
