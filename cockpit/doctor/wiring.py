"""All steps for one cluster, in the order in which they rest on each other."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from cockpit.cluster import Cluster
from cockpit.config import Config
from cockpit.doctor import on_prometheus
from cockpit.doctor.here import Here
from cockpit.doctor.models import Step
from cockpit.doctor.on_aws import OnAws
from cockpit.doctor.on_head import OnHead
from cockpit.doctor.on_nodes import OnNodes
from cockpit.doctor.way_in import WayIn


class Doctor:
    """The steps of one cluster of the config, and the connections they share; a context manager."""

    def __init__(self, config: Config, name: str, *, read_only: bool = False) -> None:
        entry = config.clusters[name]
        self.cluster = Cluster(entry, rules=config.rules, read_only=read_only, watch_gpus=False)
        self._here, self._way = Here(config, name), WayIn(entry)
        self._head, self._aws = OnHead(self.cluster), OnAws(self.cluster)
        self._nodes = OnNodes(self.cluster, lambda: self._head.nodes)

    def way_in(self) -> tuple[Step, ...]:
        """The steps up to Slurm's answer: without them there is no cluster to look at."""
        return (*self._here.steps(), *self._way.steps(), *self._head.steps())

    def steps(self) -> tuple[Step, ...]:
        """All of them."""
        prometheus = on_prometheus.steps(self.cluster.config, self.cluster.head)
        return (*self.way_in(), *self._nodes.steps(), *self._aws.steps(), *prometheus)

    def policies(self) -> Mapping[str, Any]:
        """The least-privilege policies of this cluster, by whose they are."""
        return self._aws.policies()

    def close(self) -> None:
        """Let go of every connection. Never blocks."""
        self._way.close()
        self._nodes.close()
        self.cluster.stop()

    def __enter__(self) -> Doctor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
