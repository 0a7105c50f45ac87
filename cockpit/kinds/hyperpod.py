"""Amazon SageMaker HyperPod with Slurm."""

from __future__ import annotations

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import aws_scope


class HyperPod:
    """Nodes belong to instance groups that SageMaker keeps at their size."""

    id = "hyperpod"
    title = "HyperPod"

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.hyperpod

    def origin(self, node: str) -> str:
        return ""

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        return aws_scope.of_hyperpod(config, facts)
