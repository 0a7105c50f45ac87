"""One cluster wired together: its head, its sources, its store and its problems.

This is what screens and the command line are handed; they never build a host or a source themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from cockpit import joins, problems
from cockpit.acknowledged import Acknowledged
from cockpit.acknowledged_file import AcknowledgedFile
from cockpit.arming import ReadOnly
from cockpit.aws_wiring import AwsWiring
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.cluster_questions import Questions
from cockpit.config import CheckSettings, ClusterConfig, Config, Rules
from cockpit.fleet import LIVE_S, SLACK_S, WITHOUT_MACHINE, FleetJoin, has_looked, newest_at
from cockpit.fleet_state import Fleet, Silence
from cockpit.gpu_problems import FleetProblems
from cockpit.gpu_wiring import INTERVAL_S, PROMETHEUS, GpuWiring
from cockpit.hosts import open_host, retry_now
from cockpit.hosts.base import Host
from cockpit.instance_join import join
from cockpit.kinds import Kind, find_kind, kind_named
from cockpit.models import Fault, FaultError, FaultKind, Freshness, Node, Problem
from cockpit.sources.aws import AWS
from cockpit.sources.base import Beat, Pace, Poller, SourceKey
from cockpit.sources.cluster_events import EVENTS, EventReads
from cockpit.sources.gpus import GPUS, MANY, FleetReading, FleetStreams, Target
from cockpit.sources.slurm import NODES, QUEUE, SITE, SlurmClient, SlurmReads
from cockpit.sources.storage import STORAGE
from cockpit.store import SourceState, Store
from cockpit.text import printable
from cockpit.view import View as View

if TYPE_CHECKING:
    from cockpit.aws_models import AwsReading, Joined
    from cockpit.aws_problems import AwsProblems

T = TypeVar("T")

SITE_INTERVAL_S = 300.0
EVENTS_INTERVAL_S = 60.0  # clustermgtd's own loop
AWS_WAIT_S = 20.0  # how long a single read waits for AWS; all the rest is worth telling without it
ACKNOWLEDGED_EVERY_S = 2.0


class Cluster(Questions):
    """Start it to poll; stop it to let go of every connection at once."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        rules: Rules | None = None,
        read_only: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        head: Host | None = None,
        watch_gpus: bool = True,
        checks: CheckSettings | None = None,
    ) -> None:
        self.config, self.clock, self.rules = config, clock, rules or Rules()
        self.checks, self.settings = checks or CheckSettings(), Config({})  # the whole file, by whoever read it
        self.lock = ReadOnly(forced=read_only, configured=config.read_only, clock=clock)
        self.store = Store(clock)
        self.pace = Pace(clock)
        self.head: Host = head or open_host(config.head, ssh_config=config.ssh_config)
        self.slurm = SlurmClient(self.head, clock)
        self.streams = FleetStreams(
            self._open_nodes,
            self._gpu_targets,
            most=config.nodes.max,
            interval_s=config.refresh.gpus,
            clock=clock,
        )
        self.gpus = GpuWiring(config, self.streams, self.store, clock, self.head)
        self.view = View()
        self.silences: Mapping[int, Silence] = {}  # from `silences.SilenceWatch`, where one runs
        self._fleet_join = FleetJoin(self.rules)
        self._fleet_problems = FleetProblems()
        self._settled = problems.Settled()
        self._slurm_problems: tuple[Problem, ...] = ()
        self._aws_problems: tuple[Problem, ...] = ()
        self._aws_rules: AwsProblems | None = None
        self._ages = problems.Ages()
        self.acknowledged = Acknowledged(
            AcknowledgedFile(config.name), clock, slow_rules_s=max(300.0, self.rules.gpu_idle_for_s)
        )
        super().__init__()
        self._acknowledging = threading.Thread(target=self._keep_acknowledged, name="acknowledged", daemon=True)
        self._view_lock = threading.Lock()
        self._started = False
        self.aws = AwsWiring(config, self.slurm, self.store, lambda: self.view.nodes or (), clock)
        self.watches_gpus = watch_gpus
        self.only_nodes: frozenset[str] | None = None  # watch the GPUs of these alone; None: of all
        self._pollers = self._slurm_pollers()
        self._gpus: Poller[FleetReading] | None = None
        self._gpus_wanted = threading.Event()
        self._gpus_lock = threading.Lock()
        if watch_gpus:
            self._gpus = self._poller(GPUS, self.gpus.read, config.refresh.gpus / 2)
            self._pollers += (self._gpus,)
        self._begin_aws()
        self.store.listen(self._join)

    def _begin_aws(self) -> None:
        """Poll what is asked only of some clusters; of some it is known only when the head was surveyed."""
        if self.watches_gpus and self.gpus.wanted:
            self._begin(PROMETHEUS, self.gpus.read_prometheus, INTERVAL_S)
        if self.aws.wanted:
            self._begin(AWS, self.aws.read, self.config.refresh.aws)
        if self.aws.file_systems:
            self._begin(STORAGE, self.aws.read_storage, self.config.refresh.storage)
        if files := self.kind.event_files if self.kind else ():
            self._begin(EVENTS, EventReads(self.head, files).read, EVENTS_INTERVAL_S)

    def _begin(self, key: SourceKey[T], read: Callable[[], T], interval_s: float) -> None:
        if not any(poller.key is key for poller in self._pollers):
            poller = self._poller(key, read, interval_s)
            self._pollers += (poller,)
            if self._started:
                poller.start()

    def _slurm_pollers(self) -> tuple[Poller[Any], ...]:
        reads, every_s = SlurmReads(self.slurm), self.config.refresh.slurm
        return (
            self._poller(NODES, reads.nodes, every_s),
            self._poller(QUEUE, reads.queue, every_s),
            self._poller(SITE, reads.site, SITE_INTERVAL_S),
        )

    def _gpu_targets(self) -> Iterable[Target]:
        return self.gpus.dialled(self._with_machines())

    def look_closely(self, node: str) -> None:
        """Somebody looks at this node; where a Prometheus stands in for probes, it gets one. Waits for Prometheus."""
        self.gpus.look_closely(node)

    def look_at(self, nodes: Iterable[str]) -> None:
        """These nodes are on the screen: they are dialled and watched before others. Never blocks."""
        few = len(self.view.nodes or ()) <= min(MANY, self.config.nodes.max)
        self.streams.prefer(nodes, held=() if few else {row.node for row in self.view.gpu_rows if row.findings})

    def _with_machines(self) -> Iterable[Target]:
        """Nodes with accelerators that have a machine behind them; Slurm gives a powered-down one no address."""
        for node in self.view.nodes or ():
            if self.only_nodes is not None and node.name not in self.only_nodes:
                continue
            if joins.has_accelerators(node) and node.address and not node.state.has(*WITHOUT_MACHINE):
                yield Target(node.name, node.address)

    def _poller(self, key: SourceKey[T], read: Callable[[], T], interval_s: float) -> Poller[T]:
        self.store.declare(key, interval_s)
        return Poller(key, read, self._take, interval_s=interval_s, pace=self.pace, clock=self.clock)

    def _take(self, name: str, beat: Beat) -> None:
        back = self.store.put(name, beat)
        if name == NODES.name:
            self._start_gpus()
        if back:
            self._wake_failing()

    def _wake_failing(self) -> None:
        """One source is back, so the others may be as well."""
        failing = {state.name for state in self.store.states() if state.error}
        for poller in self._pollers:
            if poller.key.name in failing:
                poller.poke()
        self._try_nodes_again()

    def _try_nodes_again(self) -> None:
        """Whatever their back-off; streams that run are left alone."""
        if self._pool is not None:
            self._pool.retry_now()
        self.streams.retry_now()

    def _join(self, name: str) -> None:
        with self._view_lock:
            view = self.view
            if name in (NODES.name, SITE.name):
                view = self._with_nodes(replace(view, site=self.store.state(SITE).data))
            if name == QUEUE.name:
                queue = self.store.state(QUEUE).data
                view = replace(view, queue=queue, jobs_of_node=joins.jobs_by_node(queue))
            if name in (EVENTS.name, STORAGE.name):
                events, storage = self.store.state(EVENTS).data, self.store.state(STORAGE).data
                view = replace(view, events=events, storage=storage)
            if name in (AWS.name, NODES.name, SITE.name):
                self._begin_aws()
                view = self._with_aws(view)
            if name != GPUS.name:
                self._slurm_problems = problems.of_slurm(self.store, self._head_ahead_s())
            # Before the nodes are known nobody was asked: that is not the same as no GPUs.
            fleet = self.store.state(GPUS).data if view.nodes is not None else None
            rows = self._fleet_join.rows(fleet, view.nodes or (), view.jobs_of_node)
            view = replace(view, fleet=fleet, gpu_rows=rows)
            self.view = replace(view, problems=self._problems(view))
            found = problems.of_sources(self.store) + self.view.problems
            self.acknowledged.observe(found, whole=self.trusts(NODES) and self.trusts(QUEUE) and self.trusts(GPUS))

    def _problems(self, view: View) -> tuple[Problem, ...]:
        steady, found = self.clock.steady(), [*self._slurm_problems, *self._aws_problems]
        found += self.kept_checks.problems(view)
        if view.events is not None or view.storage is not None:
            from cockpit.event_problems import of_events
            from cockpit.storage_problems import of_storage

            found += [*of_events(view.events, self.head_now()), *of_storage(view.storage)]
        if view.fleet is not None:
            nodes = {node.name: node for node in view.nodes or ()}
            fleet = Fleet(
                view.gpu_rows,
                view.fleet,
                nodes,
                self.streams.history,
                self.rules,
                steady,
                self.clock.now(),
                nodes_live=self.trusts(NODES),
                queue_live=self.trusts(QUEUE),
                silences=self.silences,
            )
            found += self._settled.held(self._fleet_problems.of(fleet), steady)
        return problems.ranked(self._ages.dated(found, self.clock.now()))

    def _with_nodes(self, view: View) -> View:
        reading = self.store.state(NODES).data
        if reading is None:
            return view
        nodes = reading.nodes + joins.hidden_nodes(reading, self.store.state(SITE).data)
        return replace(view, nodes=nodes, gpus=joins.gpu_counts(nodes))

    def _with_aws(self, view: View) -> View:
        reading = self.store.state(AWS).data
        if reading is None:
            return view
        self.aws.note_mounts(_mount_sources(view))
        new = join(view.nodes or (), reading)
        joined = new if new != view.joined else view.joined
        live = self.trusts(NODES) and self.trusts(AWS)
        self._aws_problems = self._wrong_with_aws(reading, joined, view.nodes if live else None)
        return replace(view, aws=reading, joined=joined, prices=self.aws.prices)

    def _wrong_with_aws(
        self, reading: AwsReading, joined: Joined, nodes: tuple[Node, ...] | None
    ) -> tuple[Problem, ...]:
        from cockpit.aws_problems import AwsLook, AwsProblems

        rules = self._aws_rules = self._aws_rules or AwsProblems()
        return rules.of(AwsLook(reading, joined, nodes, self.clock.now())) if self.trusts(AWS) else ()

    @property
    def read_only(self) -> bool:
        """True when changes are refused just now; `lock` says why, and for how long it is armed."""
        return self.lock.on

    @property
    def kind(self) -> Kind | None:
        """The kind named in the config, else what the survey of the head found, else None."""
        if self.config.kind is not None:
            return kind_named(self.config.kind)
        facts = self.slurm.known_facts()
        return find_kind(facts) if facts else None

    def problems(self) -> tuple[Problem, ...]:
        """Everything wrong: failing sources, then what was read, worst first; what is acknowledged comes last."""
        fault = self.acknowledged.fault()
        own = problems.of_acknowledged(fault) if fault else ()
        return self.acknowledged.marked(problems.of_sources(self.store) + self.view.problems + own)

    def acknowledge(self, key: str, note: str) -> None:
        """Put a problem out of the way until it gets worse or comes again; waits for the disk.

        Raises FaultError when there is no such problem, or when the acknowledgement cannot be written down.
        """
        problem = next((problem for problem in self.problems() if problem.key == key), None)
        if problem is None:
            what, why = f"acknowledging {printable(key)}", "there is no such problem now"
            raise FaultError(Fault(FaultKind.MISSING, what, why, "`cockpit status --json` shows the keys of all"))
        self.acknowledged.acknowledge(problem, note)

    def take_back(self, key: str) -> None:
        """End an acknowledgement; the same as to waiting and errors."""
        self.acknowledged.take_back(key)

    def origin(self, node: str) -> str:
        """Where a node's instance comes from: static, dynamic, or "" when that is not known."""
        kind = self.kind
        return kind.origin(node) if kind else ""

    def head_now(self) -> float:
        """The time on the head's clock, which Slurm's times are in; our own until the head was asked."""
        return self.clock.now() + self._head_ahead_s()

    def _head_ahead_s(self) -> float:
        return ((facts := self.slurm.known_facts()) and facts.clock_ahead_s) or 0.0

    def start(self, *, gpus: bool = True) -> None:
        """Begin to poll every source on its own daemon thread; without `gpus` no node is dialled yet."""
        self._started = True
        for poller in self._pollers:
            if poller is not self._gpus:
                poller.start()
        if gpus:
            self._gpus_wanted.set()
            self._start_gpus()
        if self._acknowledging.ident is None:
            self._acknowledging.start()

    def _start_gpus(self) -> None:
        """Begin to dial nodes once it is known which there are."""
        with self._gpus_lock:
            if self._gpus is not None and self._gpus_wanted.is_set() and self.view.nodes is not None:
                self._gpus.start()

    def _keep_acknowledged(self) -> None:
        """On a thread of its own: where the home directory hangs, nothing else waits for it."""
        while not self._stopped.is_set():
            if self.kept_checks.sync():
                self._join("checks")
            self.acknowledged.sync()
            self._stopped.wait(ACKNOWLEDGED_EVERY_S)

    def stop(self) -> None:
        """End the pollers and close every connection; waits for nothing."""
        self._stopped.set()
        for poller in self._pollers:
            poller.stop()
        self.streams.close()
        if self._pool is not None:
            self._pool.close()
        self.head.close()

    def refresh(self) -> None:
        """Poll every source now, whatever its pace or the head's back-off."""
        retry_now(self.head)
        self._try_nodes_again()
        for poller in self._pollers:
            poller.poke()

    def read_once(self) -> None:
        """Poll every source once, all at once, until each has answered or failed; AWS no longer than AWS_WAIT_S."""
        self.acknowledged.sync()
        self.kept_checks.sync()
        asked = self._pollers
        _join_all(_poll_all(asked), asked)
        late = tuple(poller for poller in self._pollers if poller not in asked)  # the survey has found a region
        _join_all(_poll_all(late), late)

    def wait_for_gpus(self, deadline_s: float) -> None:
        """Collect until every watched node has told something or failed, or the time is up."""
        until = self.clock.steady() + deadline_s
        poller = next(poller for poller in self._pollers if poller.key is GPUS)
        while self.clock.steady() < until:
            poller.poll_once()
            watches = self.view.fleet.nodes.values() if self.view.fleet else ()
            told = sum(1 for watch in watches if watch.fault or has_looked(watch))
            if told >= min(len(list(self._gpu_targets())), self.config.nodes.max):
                return
            time.sleep(0.2)

    def sources(self) -> tuple[SourceState[Any], ...]:
        """Every source for the eye: the GPUs are as old as the newest word of any node, however often we ask."""
        return tuple(self._as_heard(state) if state.name == GPUS.name else state for state in self.store.states())

    def _as_heard(self, state: SourceState[Any]) -> SourceState[Any]:
        if (fleet := self.view.fleet) is None or not fleet.nodes:
            return state if self.view.nodes is not None else replace(state, good=None)
        at = newest_at(fleet)
        live_s = max(LIVE_S, 2 * self.config.refresh.gpus + SLACK_S)
        return replace(state, good=None) if at is None else replace(state, good_at=at, interval_s=live_s / 2)

    def trusts(self, source: SourceKey[Any]) -> bool:
        """True while the data of a source are live."""
        return self.store.state(source).freshness(self.clock.steady()) is Freshness.LIVE


def _mount_sources(view: View) -> Iterable[str]:
    watches = view.fleet.nodes.values() if view.fleet else ()
    return (mount.source for watch in watches if watch.reading for mount in watch.reading.mounts)


def _poll_all(pollers: Iterable[Poller[Any]]) -> list[threading.Thread]:
    threads = [threading.Thread(target=poller.poll_once, daemon=True) for poller in pollers]
    for thread in threads:
        thread.start()
    return threads


def _join_all(threads: Iterable[threading.Thread], pollers: Iterable[Poller[Any]]) -> None:
    for thread, poller in zip(threads, pollers, strict=True):
        thread.join(AWS_WAIT_S if poller.key is AWS else None)
