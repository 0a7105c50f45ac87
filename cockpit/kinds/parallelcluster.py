"""AWS ParallelCluster 3 with Slurm."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.fleet_power import How, PowerLook, PowerPlan
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import aws_scope, parallelcluster_power

# <queue>-<st|dy>-<compute resource>-<n>, as ParallelCluster's node package names them.
_NODE = re.compile(r"(?P<queue>.+)-(?P<origin>st|dy)-(?P<resource>[^-]+(?:-[^-]+)*)-(?P<number>\d+)")


class ParallelCluster:
    """Nodes are made and replaced by clustermgtd on the head."""

    id = "parallelcluster"
    title = "ParallelCluster"

    event_files = tuple(
        f"/var/log/parallelcluster/{name}" for name in ("clustermgtd.events", "slurm_resume.events", "slurm_resume.log")
    )

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.parallelcluster

    def origin(self, node: str) -> str:
        match = _NODE.fullmatch(node)
        return {"st": "static", "dy": "dynamic"}[match["origin"]] if match else ""

    def place(self, node: str) -> tuple[str, str]:
        match = _NODE.fullmatch(node)
        return (match["queue"], match["resource"]) if match else ("", "")

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        return aws_scope.of_parallelcluster(config, facts)

    def stop_plan(self, look: PowerLook, how: How, *, head: bool) -> PowerPlan:
        return parallelcluster_power.stop(look, how, head=head)

    def start_plan(self, look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
        return parallelcluster_power.start(look)
