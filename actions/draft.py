"""What every plan is built with: steps as the right login, and the fields that never differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from actions.reasons import REASON_HERE
from actions.rights import Rights, rights
from actions.spec import COUNTED, Options, Plan, Step, Targets
from cockpit.kinds import Kind, find_kind

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

REASON = f"reason={REASON_HERE}"


class Draft:
    """One plan in the making; asks the head for the login's rights when they are not known. Raises FaultError."""

    def __init__(self, cluster: Cluster, action_id: str, targets: Targets, options: Options) -> None:
        self.cluster, self.action_id, self.targets, self.options = cluster, action_id, targets, options
        self.rights: Rights = rights(cluster)
        self.kind: Kind = cluster.kind or _kind(cluster)
        self.steps: list[Step] = []
        self.warnings: list[str] = []
        self.patience_s: float | None = None  # of the steps to come

    def admin(self, title: str, args: Sequence[str], subjects: Sequence[str]) -> None:
        """A step of scontrol that needs an administrator: nodes, queues, power."""
        self.step(title, "scontrol", args, subjects, as_root=not self.rights.admin)

    def operator(self, title: str, args: Sequence[str], subjects: Sequence[str]) -> None:
        """A step of scontrol that needs an operator: reservations."""
        self.step(title, "scontrol", args, subjects, as_root=not self.rights.operator)

    def step(self, title: str, program: str, args: Sequence[str], subjects: Sequence[str], *, as_root: bool) -> None:
        """One command; says once when sudo is known to refuse it."""
        argv = self.cluster.slurm.argv(program, args, as_root=as_root)
        self.steps.append(Step(title, argv, tuple(subjects), patience_s=self.patience_s))
        if as_root and self.rights.sudo_says:
            said = f"{self.rights.user} has no such right in Slurm, and sudo -n says: {self.rights.sudo_says}"
            if said not in self.warnings:
                self.warnings.append(said)

    def plan(self, title: str, *, tier: int, count: int, **fields: Any) -> Plan:
        """The plan; more than one target is at least tier 2."""
        warnings = (*self.warnings, *fields.pop("warnings", ()))
        return Plan(
            action_id=self.action_id,
            title=title,
            cluster=self.cluster.config.name,
            production=self.cluster.config.production,
            targets=self.targets,
            options=self.options,
            steps=tuple(self.steps),
            tier=max(tier, COUNTED) if count > 1 else tier,
            count=count,
            warnings=warnings,
            **fields,
        )


def _kind(cluster: Cluster) -> Kind:
    found = find_kind(cluster.slurm.facts())
    if found is None:
        cluster.slurm.argv("scontrol", [])  # raises: there is no Slurm on this head
        raise AssertionError("unreachable")
    return found
