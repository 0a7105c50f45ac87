"""Stop and start a whole cluster: what its kind plans, with the jobs it hits and what it saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from actions import blast
from actions.ahead import ahead
from actions.aws_steps import AWS, WAIT
from actions.draft import Draft
from actions.errors import ActionError, Refusal
from actions.fleet_wishes import Started, Stopped
from actions.spec import NAMED, NO_AWS, Context, HurtJob, Options, Plan, Scope, Step, Targets, Wish
from cockpit.aws_models import Instance, Market
from cockpit.cost import compute_usd_h
from cockpit.cost_report import LIST_NOTE, cost_of, hour_if_up, usd
from cockpit.fleet_power import How, PowerPlan, PowerStep
from cockpit.formats.hostlist import fold
from cockpit.formats.job_states import HOLDING
from cockpit.output_ages import output_ages
from cockpit.power_looks import start_plan, stop_plan
from cockpit.sources.aws import AWS as AWS_SOURCE
from cockpit.sources.base import SourceKey
from cockpit.sources.slurm import NODES, QUEUE
from cockpit.words import plural, shows_utc, span

if TYPE_CHECKING:
    from cockpit.cluster import Cluster


NO_MACHINES = (
    "the config names nothing of AWS (region, stack, instances), so its machines cannot be stopped or started from "
    "here; `cockpit demo --scenario idle` has some to try it on"
)


def stop(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Everything down: now, or once the running jobs have ended."""
    if options.every:  # without a time it would be a stop now, which nobody asked for
        raise ActionError(Refusal.USAGE, f"every {options.every}: say at what time, such as `--at 'Fri 19:00'`")
    _asked(cluster)
    how = How.AFTER_JOBS if options.after_jobs else How.NOW
    power = _admitted(stop_plan(cluster, how, head=options.head))
    return _plan(
        cluster,
        "stop",
        targets,
        options,
        power,
        Stopped(targets.names),
        jobs=_jobs(cluster, how),
        effects=(*_saved(cluster, [name for name, _ in power.left_out]), *power.effects),
        needs=(AWS_SOURCE, NODES, QUEUE),
    )


def start(cluster: Cluster, targets: Targets, options: Options) -> Plan:
    """Everything up, the head first when it is off; so nothing of Slurm has to be live."""
    _asked(cluster)
    power = _admitted(start_plan(cluster, _sizes(options.groups)))
    static = [node.name for node in cluster.view.nodes or () if cluster.origin(node.name) == "static"]
    off = [name for name in static if name not in cluster.view.instance_of_node]
    plan = _plan(
        cluster,
        "start",
        targets,
        options,
        power,
        Started(targets.names),
        effects=(*power.effects, *_added(cluster, off)),
        needs=(AWS_SOURCE,),
    )
    return replace(plan, ahead=ahead(cluster, off))


def _asked(cluster: Cluster) -> None:
    """Whether there is anything to ask; raises ActionError."""
    if not cluster.aws.wanted:
        raise ActionError(Refusal.REFUSED, NO_MACHINES)


def _admitted(power: PowerPlan) -> PowerPlan:
    if power.refusal or not power.steps:
        raise ActionError(Refusal.REFUSED, power.refusal or power.done)
    return power


def _plan(
    cluster: Cluster,
    action_id: str,
    targets: Targets,
    options: Options,
    power: PowerPlan,
    wish: Wish,
    *,
    effects: tuple[str, ...],
    needs: tuple[SourceKey[Any], ...],
    jobs: tuple[HurtJob, ...] = (),
) -> Plan:
    steps, warnings = _steps(cluster, targets, options, power.steps, action_id)
    fleet_ordered = any(step.via == AWS and "dynamodb" in step.argv for step in steps)
    if fleet_ordered:  # the end is watched as a wish, which tells what it sees and has a deadline of its own
        while steps and steps[-1].via == WAIT and steps[-1].argv[1] in ("fleet", "gone"):
            steps.pop()
    return Plan(
        action_id=action_id,
        title=power.title,
        cluster=cluster.config.name,
        production=cluster.config.production,
        targets=targets,
        options=options,
        steps=tuple(steps),
        tier=NAMED,
        count=1,
        jobs=jobs,
        effects=(*effects, by_aws(cluster)),
        irreversible=power.irreversible,
        warnings=(*warnings, *power.warnings, *guessed(cluster)),
        left_out=power.left_out,
        wishes=(wish,) if fleet_ordered else (),
        needs=needs,
        strict=True,
    )


def by_aws(cluster: Cluster) -> str:
    """In which account this happens: two may have a cluster of the same name."""
    reading = cluster.view.aws
    caller = reading.caller.data if reading else None
    where = (reading.region if reading else "") or "its region"
    if caller is None or not caller.account:
        return f"in {where} of an AWS account that was not told (sts:GetCallerIdentity)"
    return f"in AWS account {caller.account}, {where}, as {caller.arn}"


def guessed(cluster: Cluster) -> tuple[str, ...]:
    """Said while only the entry's name tells which stack is meant: the head, which knows, may say another."""
    scope = cluster.aws.scope()
    if not scope.stack or cluster.config.stack or cluster.slurm.known_facts() is not None:
        return ()
    return (f"stack {scope.stack} is meant by the name of the config's entry alone: `stack: NAME` makes it certain",)


def _steps(
    cluster: Cluster, targets: Targets, options: Options, steps: Sequence[PowerStep], action_id: str
) -> tuple[list[Step], tuple[str, ...]]:
    """The kind's steps as the runner takes them; those of Slurm as the login that has the right."""
    if not any(step.via == "head" for step in steps):  # then the head need not answer
        return [_step(step, targets) for step in steps], ()
    draft = Draft(cluster, action_id, targets, options)
    for step in steps:
        if step.via == "head":
            draft.admin(step.title, step.argv[1:], step.subjects)
        else:
            draft.steps.append(_step(step, targets))
    return draft.steps, tuple(draft.warnings)


def _step(step: PowerStep, targets: Targets) -> Step:
    """Only an order to AWS is about the cluster itself, so that nothing is looked for before it was given."""
    return Step(step.title, step.argv, targets.names if step.via == AWS else (), step.writes, step.via)


def _jobs(cluster: Cluster, how: How) -> tuple[HurtJob, ...]:
    """Running jobs first; waiting ones stay in the queue, which Slurm keeps."""
    queue = cluster.view.queue
    jobs = queue.jobs if queue else ()
    running = [job for job in jobs if job.state in HOLDING]
    waiting = [job for job in jobs if job.state == "PD"]
    if how is How.NOW:
        hit = blast.killed(cluster, running)
    else:
        hit = blast.touched(cluster, running, "runs to its end", loses=False)
    ends = {job.job_id: job.ends_at for job in running}
    now, ages = cluster.head_now(), output_ages(cluster, running)
    hit = tuple(
        replace(
            job,
            left_s=None if (end := ends.get(job.job_id)) is None else max(0.0, end - now),
            silent_s=ages.get(job.job_id),
        )
        for job in hit
    )
    return (*hit, *blast.touched(cluster, waiting, "waits until the next start", loses=False))


def _saved(cluster: Cluster, left_out: Sequence[str]) -> tuple[str, ...]:
    """What is no longer paid by the hour: not what goes on running, nor what is paid for whether it runs or not."""
    reserved = [one.id for one in _compute(cluster) if one.reservation and one.market is Market.ON_DEMAND]
    report = cost_of(cluster, without={*left_out, *reserved})
    if report is None:
        return ()
    usd_h = compute_usd_h(report)
    unknown = sum(report.unpriced.values())
    more = f"; {plural(unknown, 'machine')} without a known price not counted" if unknown else ""
    if reserved:
        more += f"; {len(reserved)} in capacity reservations not counted: those cost the same while unused"
    if report.paid_ahead:
        more += f"; {report.paid_ahead} in capacity blocks not counted: they are paid in advance"
    if not usd_h and not unknown and more:
        return (f"saves nothing by the hour{more}",)
    if usd_h is None:
        return (f"what it saves is not known: no price is known{more}",)
    monday, money = f"Monday 09:00{' local' * shows_utc()}", usd(usd_h * report.until_monday_s / 3600)
    until = f"{money} until {monday}, in {span(report.until_monday_s)}"
    return (f"saves {usd(usd_h)}/h, {until} ({LIST_NOTE}){more}",)


def _compute(cluster: Cluster) -> tuple[Instance, ...]:
    """What bills as compute; by role, since not every kind tells who is who."""
    reading = cluster.view.aws
    found = (reading.instances.data if reading else None) or ()
    return tuple(one for one in found if one.billed and one.role not in ("head", "login"))


def _added(cluster: Cluster, names: Sequence[str]) -> tuple[str, ...]:
    usd_h = hour_if_up(cluster, names) if names else None
    return () if usd_h is None else (f"adds {usd(usd_h)}/h for {fold(names)} ({LIST_NOTE})",)


def _sizes(text: str) -> Mapping[str, int]:
    """`workers=4,gpus=8` as sizes by group; raises ActionError."""
    sizes: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, count = part.partition("=")
        if not name or not count.isdigit():
            raise ActionError(Refusal.USAGE, f"{part!r}: groups are written as NAME=COUNT,NAME=COUNT")
        sizes[name] = int(count)
    return sizes


def by_state(cluster: Cluster) -> str:
    """Which of both fits the fleet as it was last read: stop, start, or "" when only a person can say."""
    reading = cluster.view.aws
    if reading is None or not cluster.trusts(AWS_SOURCE):
        return ""
    if reading.fleet.data is not None:
        return {"RUNNING": "stop", "STOPPED": "start"}.get(reading.fleet.data.status, "")
    if reading.scope.fleet_table:
        return ""
    if reading.hyperpod.data is not None:
        counts = [group.current or 0 for group in reading.hyperpod.data.groups if group.node_type != "Controller"]
        return "stop" if any(counts) else "start"
    states = {one.state for one in reading.instances.data or () if one.role == "compute" and one.alive}
    return {frozenset({"running"}): "stop", frozenset({"stopped"}): "start"}.get(frozenset(states), "")


def cluster_target(cluster: Cluster) -> Targets:
    """The cluster itself as a target."""
    return Targets(Scope.CLUSTER, (cluster.config.name,))


def why_not(ctx: Context) -> str | None:
    return None if ctx.cluster.aws.wanted else NO_AWS
