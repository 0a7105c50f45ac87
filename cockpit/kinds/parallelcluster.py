"""AWS ParallelCluster 3 with Slurm."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.fleet_power import How, PowerLook, PowerPlan
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import aws_scope, parallelcluster_power
from cockpit.kinds.base import StateChange, UsualKind

# <queue>-<st|dy>-<compute resource>-<n>, as ParallelCluster's node package names them.
_NODE = re.compile(r"(?P<queue>.+)-(?P<origin>st|dy)-(?P<resource>[^-]+(?:-[^-]+)*)-(?P<number>\d+)")


class ParallelCluster(UsualKind):
    """Nodes are made and replaced by clustermgtd on the head, which looks at them once a minute."""

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

    def fate_of_drained(self, node: str) -> str:
        if self.origin(node) == "dynamic":
            return "within about a minute of its last job ParallelCluster terminates the instance; the reason is lost"
        return (
            "within about a minute of its last job ParallelCluster terminates the instance and launches a new one, "
            "and overwrites the reason"
        )

    def replacement(self, node: str, *, cloud: bool, now: bool) -> StateChange | None:
        """The product's own mapping, as for its queue update strategies DRAIN and TERMINATE."""
        again = "terminated; the next job that needs it gets a fresh one"
        if self.origin(node) != "dynamic":
            again = "terminated and a new one is launched under the same name"
        if now:
            return StateChange("power_down_force", f"its instance is {again}", kills_jobs=True)
        if self.origin(node) == "dynamic":
            return StateChange(
                "power_down_asap", f"once its jobs have ended its instance is {again}", takes_reason=False
            )
        return StateChange("drain", f"once its jobs have ended its instance is {again}")

    def reboot_warning(self, slurm: tuple[int, int, int]) -> str:
        """Releases up to 3.5.1, all with Slurm 22.05 or older (aws/aws-parallelcluster#4751, #5295)."""
        if (0, 0, 0) < slurm < (23, 2, 0):
            return "on ParallelCluster before 3.6 a reboot is known to end in the node being replaced"
        return ""

    def inactive_danger(self) -> str:
        return (
            "clustermgtd terminates every instance of an INACTIVE queue; to pause one set it down (jobs wait) "
            "or to drain (no new jobs)"
        )

    def quarantine_flags(self) -> str:
        """Without MAINT: 3.8.0 to 3.15.1 terminate and launch such static nodes in a loop (#7465, #7470)."""
        return "ignore_jobs"

    def size_for_good(
        self, queue: str, members: Sequence[str], wanted: int, stack: str, region: str
    ) -> tuple[str, ...]:
        static: Counter[str] = Counter()
        total: Counter[str] = Counter()
        for match in filter(None, map(_NODE.fullmatch, members)):
            total[match["resource"]] += 1
            static[match["resource"]] += match["origin"] == "st"
        if not total:
            return ()
        resource, most = total.most_common(1)[0]
        others = len(members) - most
        return (
            "in the cluster's YAML, which the cockpit does not edit:",
            *_edit(queue, resource, static[resource], most, max(1, wanted - others)),
            f"  pcluster update-cluster --cluster-name {stack}{f' --region {region}' if region else ''} "
            "--cluster-configuration FILE.yaml --dryrun true",
            "  and the same without --dryrun once it says that the request would have succeeded",
        )


def _edit(queue: str, resource: str, static: int, most: int, wanted: int) -> list[str]:
    """MaxCount bounds the queue, MinCount keeps nodes up for good; what each change needs (release 3.16's table)."""
    lines = [
        "  Scheduling: SlurmQueues:",
        f"    - Name: {queue}",
        "      ComputeResources:",
        f"        - Name: {resource}",
        f"          MinCount: {wanted}    # is {static}: so many are always up",
    ]
    higher = max(most, wanted, most + max(0, wanted - static))
    if higher != most:
        lines.append(f"          MaxCount: {higher}    # is {most}")
    if wanted > static:
        return [*lines, "  MinCount goes up without a stop only when MaxCount rises by at least as much, as here."]
    return [*lines, "  A lower MinCount needs a stopped fleet, or QueueUpdateStrategy: TERMINATE."]
