"""One thing for each cluster, made when it is first asked for and gone with the cluster. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from cockpit.cluster import Cluster

T = TypeVar("T")


class PerCluster(Generic[T]):
    """Call it with a cluster: the one of that cluster."""

    def __init__(self, make: Callable[[Cluster], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Cluster, T] = WeakKeyDictionary()

    def __call__(self, cluster: Cluster) -> T:
        if cluster not in self._made:
            self._made[cluster] = self._make(cluster)
        return self._made[cluster]
