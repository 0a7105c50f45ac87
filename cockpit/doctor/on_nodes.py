"""A sample of the nodes: are they reached as the cockpit reaches them, is there Python, does the probe start?"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cockpit import joins
from cockpit.cluster import Cluster
from cockpit.doctor.models import Finding, Step, Verdict, failed, not_applicable, passed
from cockpit.fleet import WITHOUT_MACHINE
from cockpit.gpu_models import DriverState, NodeReading
from cockpit.hosts.base import Host
from cockpit.hosts.pool import NodePool
from cockpit.models import Fault, FaultError, FaultKind, Node
from cockpit.probe.bundle import PYTHONS
from cockpit.sources.gpus import FleetStreams, NodeWatch, Target
from cockpit.text import printable
from cockpit.words import plural

SAMPLE = 4
_REACH_S, _PYTHON_S, _PROBE_S = 40.0, 15.0, 30.0
_VERSION = "import sys; print(sys.version) if sys.version_info>=(3,6) else sys.exit(1)"
_FIND_PYTHON = (
    f'for p in {PYTHONS}; do v=$("$p" -IS -c "{_VERSION}" 2>/dev/null </dev/null) && [ -n "$v" ] && '
    '{ printf \'%s %s\' "$p" "$v"; exit 0; }; done; exit 3'
)
_BAD_DRIVER = (DriverState.HUNG, DriverState.CRASHED, DriverState.FAILED)


@dataclass(frozen=True, slots=True)
class _Told:
    """What one node answered, or why it did not."""

    node: str
    words: str = ""
    fault: Fault | None = None


class OnNodes:
    """Asks at most SAMPLE nodes, of different queues as far as there are; close() it."""

    def __init__(self, cluster: Cluster, nodes: Callable[[], Sequence[Node]]) -> None:
        self._cluster, self._nodes = cluster, nodes
        config = cluster.config
        self._pool = NodePool(cluster.head, config.nodes, ssh_config=config.ssh_config)
        self._reached: tuple[Node, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        return (
            Step("nodes", "nodes over SSH", self._reach, ("slurm",), _REACH_S + 10.0),
            Step("python", "Python on the nodes", self._python, ("nodes",), _PYTHON_S + 10.0),
            Step("probe", "probe on the nodes", self._probe, ("nodes",), _PROBE_S + 10.0),
        )

    def _reach(self) -> Finding:
        up = [node for node in self._nodes() if _is_up(node)]
        chosen = sample(up)
        if not chosen:
            return not_applicable("no node is up")
        told = self._ask(chosen, lambda host: _true(host))
        self._reached = tuple(node for node in chosen if told[node.name].fault is None)
        good = f"{len(self._reached)} of {len(chosen)} tried are reached ({plural(len(up), 'node')} up)"
        bad = [answer for answer in told.values() if answer.fault is not None]
        if not bad:
            return replace(passed(f"{good}: {', '.join(told)}"), parts=_parts(told))
        fault = bad[0].fault
        assert fault is not None
        line = f"by hand: {self._ssh_line(bad[0].node)}"
        words = f"{good}; {', '.join(answer.node for answer in bad)}: {fault.why}"
        return replace(failed(words, fault.next_step, *_access(fault), line), parts=_parts(told))

    def _ssh_line(self, node: str) -> str:
        config = self._cluster.config
        words = ["ssh", *(["-F", str(config.ssh_config)] if config.ssh_config else [])]
        words += ["-J", config.head] if config.nodes.via == "head" and config.head != "local" else []
        words += ["-l", config.nodes.user] if config.nodes.user else []
        words += ["-p", str(config.nodes.port)] if config.nodes.port != 22 else []
        return shlex.join([*words, node])

    def _python(self) -> Finding:
        if not self._reached:
            return not_applicable("no node is reached")
        told = self._ask(self._reached, _python_of)
        without = [name for name, answer in told.items() if answer.fault is not None]
        if without:
            step = "install python3 (3.6 or newer) there; until then only nvidia-smi is asked, and no EFA, mount or Xid"
            fault = told[without[0]].fault
            return replace(failed(f"{', '.join(without)}: {fault.why if fault else ''}", step), parts=_parts(told))
        return replace(passed("; ".join(_grouped(told.values()))), parts=_parts(told))

    def _probe(self) -> Finding:
        chosen = [node for node in self._reached if joins.has_accelerators(node)]
        if not chosen:
            return not_applicable("no node that is reached has GPUs")
        watches = self._watch(chosen)
        told = {node.name: _probed(node.name, watches.get(node.name)) for node in chosen}
        if bad := next((answer for answer in told.values() if answer.fault is not None), None):
            assert bad.fault is not None
            words = f"{bad.node}: {bad.fault.what}: {bad.fault.why}"
            return replace(failed(words, bad.fault.next_step), parts=_parts(told))
        return replace(passed("; ".join(_grouped(told.values()))), parts=_parts(told))

    def _watch(self, chosen: Sequence[Node]) -> Mapping[str, NodeWatch]:
        """The streams that the GPUs pane lives on, until each node's driver was asked or the time is up."""
        targets = [Target(node.name, node.address) for node in chosen]
        streams = FleetStreams(lambda: self._pool, lambda: targets, most=SAMPLE, interval_s=1.0)
        until = time.monotonic() + _PROBE_S
        try:
            while True:
                watches = streams.collect().nodes
                if all(_settled(watches.get(node.name)) for node in chosen) or time.monotonic() > until:
                    return watches
                time.sleep(0.1)
        finally:
            streams.close()

    def _ask(self, nodes: Iterable[Node], ask: Callable[[Host], str]) -> dict[str, _Told]:
        """All at the same time; the hosts have deadlines of their own."""
        told: dict[str, _Told] = {}

        def one(node: Node) -> None:
            try:
                told[node.name] = _Told(node.name, ask(self._pool.node(node.name, node.address)))
            except FaultError as error:
                told[node.name] = _Told(node.name, fault=error.fault)

        threads = [threading.Thread(target=one, args=(node,), daemon=True) for node in nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_REACH_S)
        late = Fault(FaultKind.TIMEOUT, "asking the node", "it did not answer in time", "look at its console")
        return {node.name: told.get(node.name, _Told(node.name, fault=late)) for node in nodes}

    def close(self) -> None:
        """End every connection to a node."""
        self._pool.close()


def sample(nodes: Sequence[Node], most: int = SAMPLE) -> tuple[Node, ...]:
    """The first node of each set of queues, then others in order."""
    first = {node.partitions: node for node in reversed(nodes)}
    lead = [node for node in nodes if first[node.partitions] is node]
    return tuple([*lead, *(node for node in nodes if node not in lead)][:most])


def _is_up(node: Node) -> bool:
    return not node.state.has(*WITHOUT_MACHINE, "not_responding") and node.state.base not in ("down", "future")


def _true(host: Host) -> str:
    host.run(["true"], deadline_s=_REACH_S)
    return "reached"


def _python_of(host: Host) -> str:
    done = host.run(["sh", "-c", _FIND_PYTHON], deadline_s=_PYTHON_S)
    words = printable(done.stdout[:200]).split()
    if done.rc != 0 or len(words) < 2:
        raise FaultError(Fault(FaultKind.MISSING, host.name, "no Python of 3.6 or newer was found"))
    return f"Python {words[1]} ({words[0]})"


def _settled(watch: NodeWatch | None) -> bool:
    reading = watch.reading if watch else None
    asked = reading is not None and reading.driver.state is not DriverState.STARTING
    return watch is not None and (watch.fault is not None or asked)


def _probed(name: str, watch: NodeWatch | None) -> _Told:
    reading = watch.reading if watch else None
    if watch is not None and watch.fault is not None:
        return _Told(name, fault=watch.fault)
    if reading is None:
        return _Told(name, fault=Fault(FaultKind.TIMEOUT, "starting the probe", "it said nothing in time"))
    driver = reading.driver
    if driver.state in _BAD_DRIVER:
        return _Told(
            name, fault=Fault(FaultKind.FAILED, f"the driver is {driver.state.value}", driver.why or "no reason")
        )
    return _Told(name, _reading_words(reading))


def _reading_words(reading: NodeReading) -> str:
    version = f" {reading.driver.version}" if reading.driver.version else ""
    return f"{plural(len(reading.gpus), 'GPU')}, driver{version} {reading.driver.state.value}"


def _access(fault: Fault) -> tuple[str, ...]:
    """What usually helps with nodes alone."""
    if fault.kind is FaultKind.HOST_KEY:
        return ("for nodes that come and go: `nodes: {host_keys: head}` in the config (docs/CONFIG.md)",)
    if fault.kind is FaultKind.AUTH:
        return ("the login of the nodes is `nodes: {user: NAME}` in the config; its key must be good there too",)
    return ()


def _grouped(told: Iterable[_Told]) -> list[str]:
    """The same words once, with the nodes that said them."""
    names: dict[str, list[str]] = {}
    for answer in told:
        names.setdefault(answer.words, []).append(answer.node)
    return [f"{words} on {', '.join(some)}" for words, some in names.items()]


def _parts(told: Mapping[str, _Told]) -> dict[str, Verdict]:
    return {name: Verdict.PASS if answer.fault is None else Verdict.FAIL for name, answer in told.items()}
