"""Amazon SageMaker HyperPod with Slurm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.fleet_power import How, PowerLook, PowerPlan
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import aws_scope, hyperpod_power
from cockpit.kinds.base import StateChange, UsualKind

_AGENT = "HyperPod's agent"


class HyperPod(UsualKind):
    """Nodes belong to instance groups that SageMaker keeps at their size."""

    id = "hyperpod"
    title = "HyperPod"

    def recognises(self, facts: HeadFacts) -> bool:
        return facts.hyperpod

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        return aws_scope.of_hyperpod(config, facts)

    def stop_plan(self, look: PowerLook, how: How, *, head: bool) -> PowerPlan:
        return hyperpod_power.stop(look, how, head=head)

    def start_plan(self, look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
        return hyperpod_power.start(look, counts)

    def replacement(self, node: str, *, cloud: bool, now: bool) -> StateChange | None:
        """The agent watches the reason: its exact spelling counts, so the operator's words go to the audit only."""
        fate = f"{_AGENT} replaces the instance, with its root and attached volumes; the name stays"
        if now:
            return StateChange("down", fate, reason="Action:Replace", kills_jobs=True)
        return StateChange("fail", f"once its jobs have ended {fate}", reason="Action:Replace")

    def reboot(self, node: str) -> StateChange | None:
        fate = f"once its jobs have ended {_AGENT} reboots it; leave the node and slurmctld alone meanwhile"
        return StateChange("fail", fate, reason="Action:Reboot")

    def size_for_good(
        self, queue: str, members: Sequence[str], wanted: int, stack: str, region: str
    ) -> tuple[str, ...]:
        return (
            "the size of an instance group is SageMaker's: set its InstanceCount, sending all groups as described,",
            "  aws sagemaker describe-cluster --cluster-name NAME",
            "  aws sagemaker update-cluster --cluster-name NAME --instance-groups ...",
        )
