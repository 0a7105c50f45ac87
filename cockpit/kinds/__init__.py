"""The three kinds of clusters, most special first."""

from __future__ import annotations

from cockpit.config import ClusterConfig
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds.base import Kind
from cockpit.kinds.hyperpod import HyperPod
from cockpit.kinds.parallelcluster import ParallelCluster
from cockpit.kinds.slurm import PlainSlurm

ALL: tuple[Kind, ...] = (ParallelCluster(), HyperPod(), PlainSlurm())
_BY_ID = {kind.id: kind for kind in ALL}


def kind_named(name: str) -> Kind:
    """The kind a config names; KeyError for an unknown name (the config reader admits none)."""
    return _BY_ID[name]


def find_kind(facts: HeadFacts) -> Kind | None:
    """The kind of a head by what the survey found; None when there is no Slurm on it."""
    return next((kind for kind in ALL if kind.recognises(facts)), None)


def kind_of_config(config: ClusterConfig) -> Kind | None:
    """The kind as far as the config tells it: also while the head cannot be asked, as when it is stopped."""
    if config.kind is not None:
        return kind_named(config.kind)
    if config.stack is not None:
        return kind_named("parallelcluster")
    return kind_named("slurm") if config.instances else None


__all__ = ["ALL", "Kind", "find_kind", "kind_named", "kind_of_config"]
