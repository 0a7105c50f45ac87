"""Every cluster of the config: opened when first asked for, then kept until the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cockpit.config import Config

if TYPE_CHECKING:
    from cockpit.cluster import Cluster


class Clusters:
    """Opening starts nothing; `stop` lets go of all that were opened."""

    def __init__(self, names: tuple[str, ...], first: str, make: Callable[[str], Cluster]) -> None:
        self.names, self.first = names, first
        self._make = make
        self._opened: dict[str, Cluster] = {}

    @classmethod
    def of_config(cls, config: Config, first: str, *, read_only: bool) -> Clusters:
        """The clusters of a config file; `read_only` holds for all of them."""

        def make(name: str) -> Cluster:
            from cockpit.cluster import Cluster  # with all that the engine is made of

            cluster = Cluster(config.clusters[name], rules=config.rules, read_only=read_only, checks=config.checks)
            cluster.settings = config
            return cluster

        return cls(tuple(config.clusters), first, make)

    @classmethod
    def only(cls, cluster: Cluster) -> Clusters:
        """One cluster that is there already."""
        return cls((cluster.config.name,), cluster.config.name, lambda name: cluster)

    def open(self, name: str) -> Cluster:
        """The cluster of that name; KeyError when the config has none."""
        if name not in self.names:
            raise KeyError(name)
        if name not in self._opened:
            self._opened[name] = self._make(name)
        return self._opened[name]

    def begin(self) -> None:
        """Open the first and begin to read it, with all that takes loading; for a thread of its own."""
        from cockpit.hosts import load

        cluster = self.open(self.first)
        load(cluster.head)  # not on the threads that poll: loading on several at once takes longer than on one
        cluster.start()

    def opened(self) -> tuple[Cluster, ...]:
        """Those that were asked for, in the order of the config."""
        return tuple(self._opened[name] for name in self.names if name in self._opened)

    def stop(self) -> None:
        """End the pollers and connections of all; waits for nothing."""
        for cluster in self._opened.values():
            cluster.stop()
