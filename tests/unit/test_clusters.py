"""Clusters of a config: what the whole file says counts in each of them."""

from __future__ import annotations

from cockpit.clusters import Clusters
from cockpit.config import CheckSettings, ClusterConfig, Config


def test_the_sites_own_checks_count_in_the_app() -> None:
    checks = CheckSettings(off=("efa.hugepages",), thresholds={"host.disk": {"warn_pct": 85.0}})
    clusters = Clusters.of_config(Config({"one": ClusterConfig("one")}, checks=checks), "one", read_only=False)
    try:
        assert clusters.open("one").checks is checks
    finally:
        clusters.stop()
