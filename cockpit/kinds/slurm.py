"""Plain EC2 instances with Slurm on them."""

from __future__ import annotations

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import aws_scope


class PlainSlurm:
    """The kind of every Slurm head that is nothing more special."""

    id = "slurm"
    title = "Slurm"

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.slurm_dir is not None

    def origin(self, node: str) -> str:
        return ""

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        return aws_scope.of_plain_slurm(config, facts)
