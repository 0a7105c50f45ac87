"""What differs between the kinds of clusters. The question "which kind is this?" is answered only in here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.fleet_power import How, PowerLook, PowerPlan
from cockpit.hosts.survey import HeadFacts


@dataclass(frozen=True, slots=True)
class StateChange:
    """A node state to set, and what that makes happen; `reason` is a text that the kind's own programs wait for."""

    state: str
    fate: str
    reason: str = ""  # "": the operator's own words
    takes_reason: bool = True
    kills_jobs: bool = False


class Kind(Protocol):
    """One kind of cluster; screens and actions ask it instead of comparing names."""

    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...

    def recognises(self, facts: HeadFacts) -> bool:
        """True when a head with these facts is of this kind."""
        ...

    def origin(self, node: str) -> str:
        """Where a node's instance comes from: static, dynamic, or "" where the kind makes no difference."""
        ...

    def aws_scope(self, config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
        """What of AWS belongs to this cluster; without facts, by the config alone."""
        ...

    def place(self, node: str) -> tuple[str, str]:
        """Queue and compute resource that a node's name tells; "" where a kind's names tell none."""
        ...

    @property
    def event_files(self) -> tuple[str, ...]:
        """Files on the head in which the kind's own daemons tell what they do; () for none."""
        ...

    def stop_plan(self, look: PowerLook, how: How, *, head: bool) -> PowerPlan:
        """How the whole cluster is stopped, with its head when asked for."""
        ...

    def start_plan(self, look: PowerLook, counts: Mapping[str, int]) -> PowerPlan:
        """How it is started; `counts` are sizes of instance groups, where a kind remembers none itself."""
        ...

    def fate_of_drained(self, node: str) -> str:
        """What happens to the instance of a node once it is drained (or down); "" when it stays as it is."""
        ...

    def replacement(self, node: str, *, cloud: bool, now: bool) -> StateChange | None:
        """How this node gets a new instance, after its jobs or `now`; None when nobody here replaces instances."""
        ...

    def reboot(self, node: str) -> StateChange | None:
        """How a node is rebooted where `scontrol reboot` is not the way; None where it is."""
        ...

    def reboot_warning(self, slurm: tuple[int, int, int]) -> str:
        """What is known to go wrong with a reboot under this version of Slurm; "" when nothing is."""
        ...

    def inactive_danger(self) -> str:
        """Why a queue must never be INACTIVE here; "" when that only pauses it."""
        ...

    def quarantine_flags(self) -> str:
        """The flags of the reservation that keeps a node for its finder."""
        ...

    def size_for_good(
        self, queue: str, members: Sequence[str], wanted: int, stack: str, region: str
    ) -> tuple[str, ...]:
        """The lines that tell how the queue's size is changed for good: the edit, and the command that applies it."""
        ...


class UsualKind:
    """The answers of a kind that nothing is special about; a kind says only what is different with it."""

    event_files: tuple[str, ...] = ()

    def origin(self, node: str) -> str:
        return ""

    def place(self, node: str) -> tuple[str, str]:
        return "", ""

    def fate_of_drained(self, node: str) -> str:
        return ""

    def reboot(self, node: str) -> StateChange | None:
        return None

    def reboot_warning(self, slurm: tuple[int, int, int]) -> str:
        return ""

    def inactive_danger(self) -> str:
        return ""

    def quarantine_flags(self) -> str:
        return "maint,ignore_jobs"
