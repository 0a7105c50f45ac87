"""One cluster's way to its GPUs: a probe on each node, a Prometheus that knows them all, or both."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from cockpit.clock import Clock
from cockpit.config import ClusterConfig
from cockpit.hosts.base import Host
from cockpit.models import FaultError, Node
from cockpit.sources.base import SourceKey
from cockpit.sources.gpus import FleetReading, FleetStreams, Target
from cockpit.sources.slurm import NODES
from cockpit.store import Store

if TYPE_CHECKING:  # what speaks HTTP is loaded only where a Prometheus is configured
    from cockpit.sources.prometheus import PrometheusReading, PrometheusReads

INTERVAL_S = 30.0  # the exporter's own
CLOSELY_S = 600.0  # so long a node is dialled after somebody has looked at it
PROMETHEUS: SourceKey[PrometheusReading] = SourceKey("prometheus")


class GpuWiring:
    """What the source `gpus` reads: streams of nodes, filled up by Prometheus where one is configured."""

    def __init__(self, config: ClusterConfig, streams: FleetStreams, store: Store, clock: Clock, head: Host) -> None:
        self._config, self._streams, self._store, self._clock, self._head = config, streams, store, clock, head
        self._reads: PrometheusReads | None = None
        self._told: PrometheusReading | None = None
        self._closely: dict[str, float] = {}  # node -> when somebody last looked at it (steady clock)
        self._lock = threading.Lock()

    @property
    def wanted(self) -> bool:
        """Whether a Prometheus is to be asked: once it is known which nodes there are."""
        return self._config.prometheus is not None and self._store.state(NODES).data is not None

    def _nodes(self) -> Iterable[Node]:
        reading = self._store.state(NODES).data
        return reading.nodes if reading is not None else ()

    def read_prometheus(self) -> PrometheusReading:
        """The whole fleet by Prometheus; raises FaultError."""
        self._told = told = self._source().read()
        return told

    def _source(self) -> PrometheusReads:
        from cockpit.sources.prometheus import PrometheusReads
        from cockpit.sources.prometheus_client import PrometheusClient

        settings = self._config.prometheus
        assert settings is not None
        with self._lock:
            if self._reads is None:
                client = PrometheusClient(settings, self._head)
                history = self._streams.history
                self._reads = PrometheusReads(settings, self._nodes, history, client=client, clock=self._clock)
            return self._reads

    def read(self) -> FleetReading:
        """Each node by whoever heard from it last; a node that only Prometheus knows is not left out."""
        direct, told = self._streams.collect(), self._told
        if told is None:
            return direct
        nodes = dict(told.nodes)
        for name, watch in direct.nodes.items():
            other = nodes.get(name)
            if other is None or (watch.seen_at or 0.0) >= (other.seen_at or 0.0):
                nodes[name] = watch
        return FleetReading(nodes, tuple(name for name in direct.left_out if name not in nodes))

    def dialled(self, targets: Iterable[Target]) -> list[Target]:
        """Which nodes get a probe: all, or with a Prometheus beyond `nodes.max` those that somebody looks at."""
        found = list(targets)
        if self._config.prometheus is None or len(found) <= self._config.nodes.max:
            return found
        oldest = self._clock.steady() - CLOSELY_S
        with self._lock:
            self._closely = {name: at for name, at in self._closely.items() if at >= oldest}
            return [target for target in found if target.node in self._closely]

    def look_closely(self, node: str) -> None:
        """Somebody looks at this node: dial it, and fill in its past. Waits for Prometheus."""
        if self._config.prometheus is None:
            return
        with self._lock:
            new = node not in self._closely
            self._closely[node] = self._clock.steady()
        if new:
            with suppress(FaultError):  # without it the graphs begin now
                self._source().history(node)
