"""The demo's ParallelCluster in moto's server, as the cockpit's own code reaches it."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import requests

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.demo.account import KEYS, REGION, STAMP, Account
from cockpit.kinds import kind_named
from cockpit.sources.aws_client import AwsAccess, AwsCalls

__all__ = ["KEYS", "REGION", "STAMP", "MotoCluster", "reset"]


@functools.cache
def _calls(endpoint: str) -> AwsCalls:
    return AwsCalls(AwsAccess(REGION, None, endpoint, attempts=1))


class MotoCluster(Account):
    """One cluster named `name`; every helper writes through the real API."""

    @property
    def config(self) -> ClusterConfig:
        return ClusterConfig(self.name, kind="parallelcluster", region=REGION, endpoint_url=self.endpoint)

    @property
    def scope(self) -> AwsScope:
        return kind_named("parallelcluster").aws_scope(self.config, None)

    def calls(self) -> AwsCalls:
        """The cockpit's own way to this server; its clients are made once, since that takes botocore long."""
        return _calls(self.endpoint)

    def build(self, nodes: Sequence[str], kind: str = "p5.48xlarge") -> MotoCluster:
        super().build(nodes, kind)
        return self


def reset(endpoint: str) -> None:
    """Empty every service of the server."""
    requests.post(f"{endpoint}/moto-api/reset", timeout=10).raise_for_status()
