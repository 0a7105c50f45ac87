"""Amazon SageMaker HyperPod with Slurm."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.fleet_power import How, PowerLook, PowerPlan
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import aws_scope, hyperpod_power


class HyperPod:
    """Nodes belong to instance groups that SageMaker keeps at their size."""

    id = "hyperpod"
    title = "HyperPod"

    event_files: tuple[str, ...] = ()

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.hyperpod

    def origin(self, node: str) -> str:
        return ""

    def place(self, node: str) -> tuple[str, str]:
        return "", ""

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        return aws_scope.of_hyperpod(config, facts)

    def stop_plan(self, look: PowerLook, how: How, *, head: bool) -> PowerPlan:
        return hyperpod_power.stop(look, how, head=head)

    def start_plan(self, look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
        return hyperpod_power.start(look, counts)
