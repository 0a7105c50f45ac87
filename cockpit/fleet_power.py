"""Starting and stopping a whole cluster, as plans: what is ordered, waited for, lost, and left alone. Pure.

Kinds make the plans (`kinds/*_power.py`); `sources/aws_power.py` carries their steps out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from cockpit.aws_models import AwsReading, Instance, Joined, Market
from cockpit.aws_orders import AwsOrder
from cockpit.models import Job, Node

PICKED_UP_S = 180.0  # how long ParallelCluster's own tool waits for the head to take a request up
IN_PROGRESS_S = 600.0  # and then for the end
GONE_S = 600.0
BOOT_S = 900.0
BATCH = 100  # instances in one call


class How(Enum):
    """When a fleet is stopped."""

    NOW = "now"
    AFTER_JOBS = "after-jobs"


@dataclass(frozen=True, slots=True)
class PowerStep:
    """One step. `via`: `aws` (an order to AWS), `head` (a command of Slurm's) or `wait` (until something is so)."""

    title: str
    argv: tuple[str, ...]
    via: str
    writes: bool = True
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """The steps in order, or why there are none: `done` (nothing to do) or `refusal`."""

    title: str
    steps: tuple[PowerStep, ...] = ()
    effects: tuple[str, ...] = ()
    irreversible: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()  # (instance, why it is not touched)
    done: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class PowerLook:
    """What a plan is made of; read just before. `jobs` are those that run or wait."""

    reading: AwsReading
    joined: Joined
    nodes: tuple[Node, ...] = ()
    jobs: tuple[Job, ...] = ()
    queues: Mapping[str, str] = field(default_factory=dict)  # queue -> up, down, drain, inactive
    described: Mapping[str, Any] = field(default_factory=dict)  # HyperPod: DescribeCluster as it came

    @property
    def compute(self) -> tuple[Instance, ...]:
        """Compute instances that live, by role."""
        return tuple(i for i in self.reading.instances.data or () if i.role == "compute" and i.alive)

    @property
    def head(self) -> Instance | None:
        """The head's instance, by the stack or by role."""
        wanted = self.reading.stack.data.head_instance if self.reading.stack.data else ""
        found = self.reading.instances.data or ()
        return next((i for i in found if i.id == wanted), None) or next((i for i in found if i.role == "head"), None)

    @property
    def closed_queues(self) -> list[str]:
        """Queues in which nothing starts, as a stop after the jobs leaves them."""
        return [name for name, state in self.queues.items() if state in ("down", "drain")]

    @property
    def region(self) -> str:
        return self.reading.region or self.reading.scope.region or ""


def aws_step(title: str, order: AwsOrder, subjects: Iterable[str] = ()) -> PowerStep:
    """An order to AWS as a step."""
    return PowerStep(title, order.argv, "aws", subjects=tuple(subjects))


def wait_step(title: str, *words: str) -> PowerStep:
    """A step that only waits; see `sources/aws_power.py` for the words."""
    return PowerStep(title, ("wait", *words), "wait", writes=False)


def queue_steps(queues: Mapping[str, str], state: str) -> list[PowerStep]:
    """Close or open queues in Slurm; never INACTIVE, which ParallelCluster answers by ending their instances.

    One that is inactive stays so: nothing starts there, and otherwise its broken nodes would be launched again.
    """
    return [
        PowerStep(
            f"set queue {name} {state}",
            ("scontrol", "update", f"PartitionName={name}", f"State={state}"),
            "head",
            subjects=(name,),
        )
        for name, now in queues.items()
        if now != state.lower() and not now.startswith("inact")
    ]


def instance_steps(verb: str, ids: Sequence[str], region: str, what: str) -> list[PowerStep]:
    """Stop or start instances in batches; `verb` is stop or start."""
    return [
        aws_step(
            f"{verb} {len(batch)} {what}",
            AwsOrder("ec2", f"{verb}_instances", {"InstanceIds": list(batch)}, region),
            batch,
        )
        for batch in (ids[at : at + BATCH] for at in range(0, len(ids), BATCH))
    ]


def cannot_stop(instance: Instance) -> str:
    """Why EC2 would refuse to stop an instance, and with it the whole call; "" when it would not."""
    if instance.market is Market.SPOT:
        return "a one-time spot instance cannot be stopped, only terminated"
    if instance.root_on_ebs is False:
        return "its root disk is an instance store: stopping is not possible"
    return ""


def types_of(instances: Iterable[Instance]) -> str:
    """`4 × p5.48xlarge, 1 × m6i.xlarge`, most first."""
    counts = Counter(instance.type or "unknown type" for instance in instances)
    return ", ".join(f"{count} × {name}" for name, count in counts.most_common())


def public_address_warning(head: Instance) -> tuple[str, ...]:
    """What becomes of the way to the head; an Elastic IP cannot be told from here."""
    if not head.public_ip:
        return ()
    return (f"the head's public address {head.public_ip} changes unless it is an Elastic IP: `head` may need a change",)


Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a stop or start is, seen by what AWS says: `failed` when waiting longer will not help."""

    done: bool
    text: str
    failed: bool = False
    left: tuple[str, ...] = ()  # instances that are still there, with their state


def stopped_outcome(status: str | None, instances: Sequence[Instance] | None) -> Outcome:
    """Stopped is what DynamoDB calls STOPPED **and** what EC2 has no compute instance of."""
    if instances is None:
        return Outcome(False, "the instances could not be read: nobody knows what still runs")
    left = [i for i in instances if i.role == "compute" and i.state not in ("terminated", "stopped")]
    names = tuple(f"{i.id} {i.state}" for i in left)
    if status is not None and status not in ("STOPPED", "STOPPING", "STOP_REQUESTED"):
        return Outcome(False, f"the fleet is {status}: it is not stopping any more", failed=True, left=names)
    if left:
        states = ", ".join(f"{count} {state}" for state, count in Counter(i.state for i in left).items())
        return Outcome(False, f"{'' if status is None else f'fleet {status}, '}{states}", left=names)
    if status not in (None, "STOPPED"):
        return Outcome(False, f"fleet {status}, 0 compute instances")
    return Outcome(True, "0 instances running, 0 $/h compute")


def started_outcome(status: str | None, instances: Sequence[Instance] | None, static: int, up: int) -> Outcome:
    """Started is RUNNING, with as many nodes up as there are static ones."""
    running = len([i for i in instances or () if i.role == "compute" and i.state == "running"])
    words = f"{up} of {static} static nodes up, {running} compute instances running"
    if status in ("STOP_REQUESTED", "STOPPING", "STOPPED"):
        return Outcome(False, f"the fleet is {status}: somebody stopped it again", failed=True)
    if status == "PROTECTED":
        return Outcome(False, f"PROTECTED: nodes fail to boot; {words}", failed=True)
    if status not in (None, "RUNNING"):
        return Outcome(False, f"fleet {status}; {words}")
    return Outcome(up >= static, words)
