"""Plain EC2 instances with Slurm on them."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.fleet_power import How, PowerLook, PowerPlan
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import aws_scope, slurm_power


class PlainSlurm:
    """The kind of every Slurm head that is nothing more special."""

    id = "slurm"
    title = "Slurm"

    event_files: tuple[str, ...] = ()

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.slurm_dir is not None

    def origin(self, node: str) -> str:
        return ""

    def place(self, node: str) -> tuple[str, str]:
        return "", ""

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        return aws_scope.of_plain_slurm(config, facts)

    def stop_plan(self, look: PowerLook, how: How, *, head: bool) -> PowerPlan:
        return slurm_power.stop(look, how, head=head)

    def start_plan(self, look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
        return slurm_power.start(look)
