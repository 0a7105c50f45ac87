"""What is wrong between Slurm and AWS: money burnt, instances gone, checks failed, a fleet that is stuck."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cockpit.aws_fabric import of_fabric
from cockpit.aws_models import AwsReading, Instance, Joined, ScheduledEvent
from cockpit.fleet_state import Onsets
from cockpit.formats.hostlist import brief, fold
from cockpit.models import FaultKind, Health, Node, Problem
from cockpit.words import moment, plural, span

YOUNG_S = 600.0  # ParallelCluster ends an orphan by itself after 5 min; a new node needs a while to own its instance
GONE_FOR_S = 90.0  # the lists of nodes and instances are not of the same moment
OLD_PART_S = 300.0  # nothing is concluded from a part older than that
BLOCK_SOON_S = 2 * 3600.0
BLOCK_TAKEN_S = 30 * 60.0  # EC2 takes the instances of a Capacity Block about that long before its end
REQUESTED_FOR_S = 300.0
CHANGING_FOR_S = 900.0

_REQUESTED = ("STOP_REQUESTED", "START_REQUESTED")
_CHANGING = ("STOPPING", "STARTING")
_STATUS_LOGS = "/var/log/parallelcluster/clusterstatusmgtd and /var/log/chef-client.log on the head"
_DOWN = ("down", "error", "hidden", "unknown", "future")


@dataclass(frozen=True, slots=True)
class AwsLook:
    """What the rules look at; `now` is our wall clock, `nodes` are Slurm's, live or not at all."""

    reading: AwsReading
    joined: Joined
    nodes: tuple[Node, ...] | None
    now: float

    def name(self, instance: Instance) -> str:
        """The node on an instance, else the head or the bare id."""
        owner = next((node for node, found in self.joined.of_node.items() if found is instance), "")
        return owner or ("head" if instance.role == "head" else instance.id)

    def fresh(self, read_at: float | None) -> bool:
        """Whether a part is recent enough to conclude from."""
        return read_at is not None and self.now - read_at <= OLD_PART_S


class AwsProblems:
    """The rules that need to know for how long something is so."""

    def __init__(self) -> None:
        self._onsets = Onsets()

    def of(self, look: AwsLook) -> tuple[Problem, ...]:
        """Every problem, in no order."""
        found = [*_fleet(look), *_stack(look), *_gaps(look)]
        if look.fresh(look.reading.instances.read_at):
            found += [*_orphans(look), *self._vanished(look), *_checks(look), *_events(look), *_blocks(look)]
            found += [*_hyperpod(look), *of_fabric(look.joined.of_node, _queues(look))]
        self._onsets.turn()
        return tuple(found)

    def _vanished(self, look: AwsLook) -> Iterator[Problem]:
        """Nodes that are up for Slurm while EC2 knows no such instance."""
        if not look.nodes:
            return
        up = {node.name for node in look.nodes if node.state.base not in _DOWN}
        gone = [
            name
            for name in look.joined.vanished
            if name in up and self._onsets.lasted_s(("gone", name), look.now) >= GONE_FOR_S
        ]
        if gone:
            evidence = ", ".join(f"{name} points at {look.joined.vanished[name]}" for name in gone[:8])
            if look.reading.scope.stack:
                title = "up for Slurm, but EC2 has no such instance of this cluster"
                step = "clustermgtd replaces them within minutes; if not, look at its log and set them down"
                health = Health.CRITICAL
            else:
                title = "no instance that the config's `instances` names has their address"
                step = "tag their instances, or see in EC2 whether these are gone"
                health = Health.WARN
            yield Problem("aws:gone", health, brief(gone), title, step, evidence, count=len(gone))


def _queues(look: AwsLook) -> Mapping[str, str]:
    return {node.name: node.partitions[0] for node in look.nodes or () if node.partitions}


def _orphans(look: AwsLook) -> Iterator[Problem]:
    """Instances that cost money and carry no node."""
    if look.nodes is None:
        return
    old = [i for i in look.joined.orphans if i.launched_at and look.now - i.launched_at >= YOUNG_S]
    if old:
        kinds = ", ".join(f"{count} × {name}" for name, count in Counter(i.type for i in old).most_common())
        title = f"without a node, but running and paid for: {kinds}"
        step = "terminate them in EC2, unless somebody holds them on purpose"
        evidence = ", ".join(f"{i.id} {i.zone} up {span(look.now - (i.launched_at or 0))}" for i in old[:8])
        since = min(i.launched_at for i in old if i.launched_at)
        yield Problem("aws:orphans", Health.WARN, _ids(old), title, step, evidence, since, len(old))


def _ids(instances: Sequence[Instance]) -> str:
    return ", ".join(i.id for i in instances[:2]) + (f" and {len(instances) - 2} more" if len(instances) > 2 else "")


def _checks(look: AwsLook) -> Iterator[Problem]:
    for instance in look.reading.instances.data or ():
        checks = instance.checks
        if checks is not None and checks.impaired:
            name = look.name(instance)
            title = f"EC2's {' and '.join(checks.impaired)} status check fails"
            step = "stop and start it" if instance.role == "head" else "replace it; the machine beneath may be broken"
            yield Problem(
                f"aws:check:{instance.id}", Health.CRITICAL, name, title, step, instance.id, checks.impaired_since
            )


def _events(look: AwsLook) -> Iterator[Problem]:
    """What AWS has scheduled, the same thing on several instances as one."""
    alike: dict[str, list[tuple[Instance, ScheduledEvent]]] = defaultdict(list)
    for instance in look.reading.instances.data or ():
        for event in instance.checks.events if instance.checks else ():
            alike[event.code].append((instance, event))
    for code, found in alike.items():
        names = [look.name(instance) for instance, _ in found]
        first = min((event.not_before for _, event in found if event.not_before), default=None)
        when = f" on {moment(first, look.now)}" if first else ""
        title = f"AWS has scheduled {code}{when}"
        step = "let its jobs end, then replace it before that time"
        evidence = "; ".join(dict.fromkeys(event.text for _, event in found if event.text))
        yield Problem(f"aws:event:{code}", Health.WARN, brief(names), title, step, evidence, count=len(names))


def _blocks(look: AwsLook) -> Iterator[Problem]:
    for block in (look.reading.reservations.data or {}).values():
        if not block.block or block.ends_at is None or not -3600 < block.ends_at - look.now <= BLOCK_SOON_S:
            continue
        names = [look.name(i) for i in look.reading.instances.data or () if i.reservation == block.id and i.billed]
        if names:
            left_s = block.ends_at - look.now
            health = Health.CRITICAL if left_s <= 1.5 * BLOCK_TAKEN_S else Health.WARN
            title = f"capacity block {block.id} ends in {span(left_s)}; EC2 takes its instances about 30 min before"
            step = "checkpoint and end the jobs on it, or book the next block"
            yield Problem(f"aws:block:{block.id}", health, brief(names), title, step, fold(names), count=len(names))


def _fleet(look: AwsLook) -> Iterator[Problem]:
    """A fleet that is protected, stuck, or stopped with machines left."""
    fleet = look.reading.fleet.data
    if fleet is None or not look.fresh(look.reading.fleet.read_at):
        return
    for_s = look.now - fleet.updated_at if fleet.updated_at else None
    if fleet.status == "PROTECTED":
        title = "PROTECTED: nodes kept failing to boot, so their queues are switched off"
        step = "find the cause in the bootstrap log, then start the fleet (P): it opens every queue again"
        yield Problem("aws:fleet:protected", Health.CRITICAL, "fleet", title, step, since=fleet.updated_at)
    elif fleet.status in _REQUESTED and for_s is not None and for_s > REQUESTED_FOR_S:
        title = f"{fleet.status} for {span(for_s)}: the head does not pick it up"
        step = "is the head running? `supervisorctl status clusterstatusmgtd` there"
        yield Problem("aws:fleet:stuck", Health.WARN, "fleet", title, step, since=fleet.updated_at)
    elif fleet.status in _CHANGING and for_s is not None and for_s > CHANGING_FOR_S:
        title = f"stuck in {fleet.status} for {span(for_s)}"
        yield Problem("aws:fleet:stuck", Health.WARN, "fleet", title, f"see {_STATUS_LOGS}", since=fleet.updated_at)
    elif fleet.status == "STOPPED" and (for_s is None or for_s > YOUNG_S):
        yield from _undead(look)


def _undead(look: AwsLook) -> Iterator[Problem]:
    left = [i for i in look.reading.instances.data or () if i.role == "compute" and i.billed]
    if left and look.fresh(look.reading.instances.read_at):
        title = f"STOPPED, yet {plural(len(left), 'compute instance')} still {'runs' if len(left) == 1 else 'run'}"
        step = "clustermgtd ends them each minute; if they stay, see its log for the EC2 error"
        yield Problem("aws:fleet:undead", Health.CRITICAL, _ids(left), title, step, count=len(left))


def _stack(look: AwsLook) -> Iterator[Problem]:
    stack = look.reading.stack.data
    if stack is not None and stack.word.endswith("FAILED"):
        works = "; the cluster still works" if stack.takes_orders else ""
        step = "see the stack's events in CloudFormation before the next update"
        yield Problem(
            "aws:stack", Health.WARN, f"stack {stack.name}", f"{stack.word}{works}", step, stack.status_reason
        )


def _hyperpod(look: AwsLook) -> Iterator[Problem]:
    cluster = look.reading.hyperpod.data
    if cluster is not None and cluster.status in ("Failed", "RollingBack"):
        step = "see the cluster's events in SageMaker"
        yield Problem("aws:hyperpod", Health.CRITICAL, cluster.name, cluster.status, step, cluster.failure)
    for instance in look.reading.instances.data or ():
        if instance.state_reason.split(" ")[0] == "Failure" and not look.reading.scope.filters:
            title = f"SageMaker finds it broken: {instance.state_reason.partition(' ')[2] or 'no reason given'}"
            step = "replace it; with automatic recovery SageMaker does so once its job ends"
            yield Problem(f"aws:broken:{instance.id}", Health.CRITICAL, look.name(instance), title, step, instance.id)


def _gaps(look: AwsLook) -> Iterator[Problem]:
    """What AWS would not tell: missing rights as one quiet problem, the rest one by one."""
    gaps = look.reading.gaps()
    denied = {name: fault for name, fault in gaps.items() if fault.kind is FaultKind.DENIED}
    if denied:
        title = "; ".join(dict.fromkeys(fault.why for fault in denied.values()))
        step = next(iter(denied.values())).next_step
        evidence = "not read: " + ", ".join(_words(denied))
        yield Problem("aws:denied", Health.UNKNOWN, "AWS", title, step, evidence, count=len(denied))
    for name, fault in gaps.items():
        if name not in denied and name != "slurm_ids":  # Slurm's own silence is told by its own sources
            health = Health.UNKNOWN if name == "caller" else Health.WARN
            yield Problem(f"aws:part:{name}", health, f"AWS {name}", fault.why, fault.next_step, fault.what)


def _words(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name.replace("_", " ")
