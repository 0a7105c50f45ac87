"""Stops and starts at a time, by EventBridge Scheduler: made, changed, and taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from actions import blast
from actions.errors import ActionError, Refusal
from actions.fleet import by_aws, guessed
from actions.spec import COUNTED, NAMED, Context, Finding, HurtJob, Look, Options, Plan, Step, Targets
from actions.who import who
from cockpit.aws_orders import AwsOrder, order_of
from cockpit.fleet_power import PowerStep
from cockpit.formats.hostlist import fold
from cockpit.models import FaultError
from cockpit.power_looks import schedule_owner
from cockpit.schedule_times import When, local_zone, read_when
from cockpit.schedules import Owner, Scheduled, delete_steps, parse_schedule, start_steps, still_running, stop_steps
from cockpit.sources.aws import AWS
from cockpit.sources.aws_schedules import read_schedules
from cockpit.words import plural

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

DEADLINE_S = 30.0
_NO_ROLE = (
    "the config has no `schedule_role`: a role that scheduler.amazonaws.com may take and that may change this "
    "cluster; docs/AWS.md has its policy"
)


def schedule(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Schedules for the times in `at` and `start_at`; those that are there already are changed."""
    if options.after_jobs:
        raise ActionError(Refusal.USAGE, "a schedule waits for no jobs: stop after the jobs now, or stop at a time")
    owner = _owner(cluster, head=options.head)
    there = _there(cluster, owner)
    down, up = _when(cluster, options.at, options.every), _when(cluster, options.start_at, options.every)
    steps: tuple[PowerStep, ...] = ()
    if down is not None:
        steps += stop_steps(owner, down, (one.name for one in there))
    if up is not None:
        steps += start_steps(owner, up, (one.name for one in there))
    if not steps:
        raise ActionError(Refusal.USAGE, "say when: `--at 'Fri 19:00'`, and `--start 'Mon 07:00'` for the way back")
    jobs = _jobs(cluster, down)
    return _plan(
        cluster,
        "schedule",
        targets,
        options,
        steps,
        tier=NAMED,
        jobs=jobs,
        warnings=(*_warnings(down, jobs, options), *_ids_may_go(cluster, owner)),
        left_out=owner.left_out,
        effects=(*(step.title for step in steps), *_staying(there, steps)),
        wish=Made(targets.names, _wanted(steps), _deleted(steps), owner),
    )


def _staying(there: Sequence[Scheduled], steps: Sequence[PowerStep]) -> Iterable[str]:
    changed = {name for step in steps for name in step.subjects}
    return (f"{one.name} stays: {one.expression} {one.zone}" for one in there if one.name not in changed)


def _wanted(steps: Sequence[PowerStep]) -> tuple[Scheduled, ...]:
    """The schedules as the steps order them."""
    return tuple(parse_schedule(order.request) for order in map(_order, steps) if order.method != "delete_schedule")


def _deleted(steps: Sequence[PowerStep]) -> tuple[str, ...]:
    return tuple(name for step in steps if _order(step).method == "delete_schedule" for name in step.subjects)


def _order(step: PowerStep) -> AwsOrder:
    return order_of(step.argv)


def unschedule(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Delete every schedule of this cluster."""
    owner = _owner(cluster, head=False, needs_role=False)
    there = _there(cluster, owner)
    if not there:
        raise ActionError(Refusal.REFUSED, f"there is no schedule of {cluster.config.name}")
    steps = delete_steps(owner, [one.name for one in there])
    effects = tuple(f"{one.name}: {one.expression} {one.zone}" for one in there)
    wish = Made(targets.names, (), _deleted(steps), owner)
    return _plan(cluster, "unschedule", targets, options, steps, tier=COUNTED, effects=effects, wish=wish)


def _plan(
    cluster: Cluster,
    action_id: str,
    targets: Targets,
    options: Options,
    steps: tuple[PowerStep, ...],
    *,
    tier: int,
    effects: tuple[str, ...],
    wish: Made,
    jobs: tuple[HurtJob, ...] = (),
    warnings: tuple[str, ...] = (),
    left_out: tuple[tuple[str, str], ...] = (),
) -> Plan:
    return Plan(
        action_id=action_id,
        title=f"{action_id} {cluster.config.name}",
        cluster=cluster.config.name,
        production=cluster.config.production,
        targets=targets,
        options=options,
        steps=tuple(Step(s.title, s.argv, targets.names, s.writes, s.via) for s in steps),
        tier=tier,
        count=len(steps),
        jobs=jobs,
        effects=(*effects, by_aws(cluster)),
        warnings=(*warnings, *guessed(cluster)),
        left_out=left_out,
        wishes=(wish,),
        needs=(AWS,),
    )


def _owner(cluster: Cluster, *, head: bool, needs_role: bool = True) -> Owner:
    role = cluster.config.schedule_role or ""
    if needs_role and not role:
        raise ActionError(Refusal.REFUSED, _NO_ROLE)
    try:
        owner = schedule_owner(cluster, role=role, who=who(cluster).user, head=head)
    except FaultError as error:
        raise ActionError(Refusal.UNREACHED, error.fault.line()) from error
    if not owner.scope.fleet_table and not owner.instances and needs_role:
        raise ActionError(Refusal.REFUSED, "only ParallelCluster and plain EC2 instances can be stopped at a time")
    if head and not owner.head:
        raise ActionError(Refusal.REFUSED, "which instance the head is, is not known")
    return owner


def _there(cluster: Cluster, owner: Owner) -> tuple[Scheduled, ...]:
    """This cluster's schedules; raises ActionError when another cluster of the same name has made them."""
    try:
        there = read_schedules(cluster.aws.calls(), owner)
    except FaultError as error:
        raise ActionError(Refusal.UNREACHED, error.fault.line()) from error
    for one in there:
        # Names come from the config's entry, which two people may have given to two clusters of one account.
        if one.action.startswith("dynamodb:") and one.target not in ("", owner.scope.fleet_table):
            what = owner.scope.fleet_table or "this cluster's instances"
            text = f"schedule {one.name} is about {one.target}, not {what}: it is of another cluster of that name"
            raise ActionError(Refusal.REFUSED, f"{text}; name this one otherwise in the config")
    return there


def _when(cluster: Cluster, text: str, every: str) -> When | None:
    if not text:
        return None
    try:
        return read_when(text, datetime.fromtimestamp(cluster.clock.now(), local_zone()), every)
    except ValueError as error:
        raise ActionError(Refusal.USAGE, str(error)) from error


def _jobs(cluster: Cluster, down: When | None) -> tuple[HurtJob, ...]:
    queue = cluster.view.queue
    if down is None or queue is None:
        return ()
    still = still_running(queue.jobs, down.first.timestamp())
    return blast.touched(cluster, still, "may still run then: is killed", loses=False)


def _warnings(down: When | None, jobs: tuple[HurtJob, ...], options: Options) -> tuple[str, ...]:
    told = []
    if down is not None:
        told.append("a schedule asks nobody: whatever runs at that time is killed")
        if jobs:
            told.append(f"{plural(len(jobs), 'job')} of now may still run then")
    if options.head:
        told.append("the head goes 30 min after the fleet, whether that is down by then or not")
    return tuple(told)


def _ids_may_go(cluster: Cluster, owner: Owner) -> Iterable[str]:
    """EC2 refuses a call of which one instance is gone: then none of them is stopped."""
    if not owner.instances:
        return
    yield f"it names the {plural(len(owner.instances), 'instance')} of today: later ones are not in it"
    names = {name for name, one in cluster.view.instance_of_node.items() if one.id in owner.instances}
    cloud = [node.name for node in cluster.view.nodes or () if node.name in names and node.state.has("cloud")]
    if cloud:
        yield f"{fold(cloud)} may get another instance before: while one of today's is terminated, none is stopped"


@dataclass(frozen=True, slots=True)
class Made:
    """Of this cluster's schedules the `wanted` ones are there as they were ordered, and the `deleted` ones are not."""

    names: tuple[str, ...]
    wanted: tuple[Scheduled, ...]
    deleted: tuple[str, ...]
    owner: Owner
    deadline_s: float = DEADLINE_S

    def look(self, cluster: Cluster, since: float) -> dict[str, Finding]:
        there = {one.name: one for one in read_schedules(cluster.aws.calls(), self.owner)}
        as_ordered = all(one.name in there and one.does_like(there[one.name]) for one in self.wanted)
        done = as_ordered and not there.keys() & set(self.deleted)
        words = "; ".join(f"{name} {one.expression} {one.zone}" for name, one in there.items()) or "no schedule"
        return dict.fromkeys(self.names, Finding(Look.DONE if done else Look.WAIT, words))


def why_not(ctx: Context) -> str | None:
    return None if ctx.cluster.aws.wanted else "the config names no region: AWS cannot be asked"
