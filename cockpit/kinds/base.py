"""What differs between the kinds of clusters. The question "which kind is this?" is answered only in here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.fleet_power import How, PowerLook, PowerPlan
from cockpit.hosts.survey import HeadFacts


class Kind(Protocol):
    """One kind of cluster; screens and actions ask it instead of comparing names."""

    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...

    def recognises(self, facts: HeadFacts) -> bool:
        """True when a head with these facts is of this kind."""
        ...

    def origin(self, node: str) -> str:
        """Where a node's instance comes from: static, dynamic, or "" where the kind makes no difference."""
        ...

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        """What of AWS belongs to this cluster; without facts, by the config alone."""
        ...

    def place(self, node: str) -> tuple[str, str]:
        """Queue and compute resource that a node's name tells; "" where a kind's names tell none."""
        ...

    @property
    def event_files(self) -> tuple[str, ...]:
        """Files on the head in which the kind's own daemons tell what they do; () for none."""
        ...

    def stop_plan(self, look: PowerLook, how: How, *, head: bool) -> PowerPlan:
        """How the whole cluster is stopped, with its head when asked for."""
        ...

    def start_plan(self, look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
        """How it is started; `counts` are sizes of instance groups, where a kind remembers none itself."""
        ...
