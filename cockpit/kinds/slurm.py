"""Plain EC2 instances with Slurm on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.fleet_power import How, PowerLook, PowerPlan
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import aws_scope, slurm_power
from cockpit.kinds.base import StateChange, UsualKind


class PlainSlurm(UsualKind):
    """The kind of every Slurm head that is nothing more special."""

    id = "slurm"
    title = "Slurm"

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.slurm_dir is not None

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        return aws_scope.of_plain_slurm(config, facts)

    def stop_plan(self, look: PowerLook, how: How, *, head: bool) -> PowerPlan:
        return slurm_power.stop(look, how, head=head)

    def start_plan(self, look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
        return slurm_power.start(look)

    def replacement(self, node: str, *, cloud: bool, now: bool) -> StateChange | None:
        """A cloud node gets another instance by powering down and up again, if its SuspendProgram ends it."""
        if not cloud:
            return None
        fate = "powered down by this site's SuspendProgram; the next power-up brings what its ResumeProgram starts"
        if now:
            return StateChange("power_down_force", fate, kills_jobs=True)
        return StateChange("power_down_asap", fate, takes_reason=False)

    def size_for_good(
        self, queue: str, members: Sequence[str], wanted: int, stack: str, region: str
    ) -> tuple[str, ...]:
        return ("the queue's size is what slurm.conf says: edit its NodeName and PartitionName lines there",)
