"""What a plan to stop or start a whole cluster is made of, read just now; and what carries its waits out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit import joins
from cockpit.cluster import Cluster
from cockpit.fleet_power import How, Outcome, PowerLook, PowerPlan, cannot_stop, started_outcome, stopped_outcome
from cockpit.instance_join import join
from cockpit.kinds import Kind
from cockpit.models import Fault, FaultError, FaultKind, Node
from cockpit.schedules import Owner
from cockpit.sources.aws import read_fleet, read_instances
from cockpit.sources.aws_power import Waits
from cockpit.sources.slurm import NODES, SlurmReads

SSH_DEADLINE_S = 10.0


def power_look(cluster: Cluster) -> PowerLook:
    """AWS read anew, with Slurm's last answers; raises FaultError when AWS does not answer."""
    reading = cluster.aws.fresh()
    nodes = cluster.view.nodes or ()
    answer = cluster.store.state(NODES).data
    queues = {queue.name: queue.available for queue in answer.partitions} if answer else {}
    return PowerLook(
        reading=reading,
        joined=join(nodes, reading),
        nodes=nodes,
        jobs=cluster.view.queue.jobs if cluster.view.queue else (),
        queues=queues,
        described=_described(cluster) if reading.scope.hyperpod else {},
    )


def _described(cluster: Cluster) -> Mapping[str, Any]:
    name = cluster.aws.scope().hyperpod
    answer: dict[str, Any] = cluster.aws.calls().call("sagemaker", "describe_cluster", ClusterName=name)
    return answer


def stop_plan(cluster: Cluster, how: How = How.NOW, *, head: bool = False) -> PowerPlan:
    """The plan to stop this cluster; waits for AWS, raises FaultError."""
    if how is How.AFTER_JOBS and cluster.view.nodes is None:  # then nothing would be closed before the wait
        fault = cluster.store.state(NODES).error
        why = fault.why if fault is not None else "Slurm was not read"
        raise FaultError(Fault(FaultKind.MISSING, "the queues to close", why, "stop now, or once Slurm answers"))
    return _kind(cluster).stop_plan(power_look(cluster), how, head=head)


def start_plan(cluster: Cluster, counts: Mapping[str, int] | None = None) -> PowerPlan:
    """The plan to start it; waits for AWS, raises FaultError."""
    return _kind(cluster).start_plan(power_look(cluster), counts or {})


def stopped(cluster: Cluster) -> Outcome:
    """Whether the whole cluster is down, by DynamoDB and by EC2, asked just now; raises FaultError."""
    calls, scope = cluster.aws.calls(), cluster.aws.scope()
    status = read_fleet(calls, scope.fleet_table).status if scope.fleet_table else None
    return stopped_outcome(status, read_instances(calls, scope) if scope.filters else None)


def started(cluster: Cluster) -> Outcome:
    """Whether it is up: the fleet RUNNING and every static node answering Slurm; raises FaultError."""
    calls, scope, kind = cluster.aws.calls(), cluster.aws.scope(), _kind(cluster)
    status = read_fleet(calls, scope.fleet_table).status if scope.fleet_table else None
    instances = read_instances(calls, scope) if scope.filters else None
    nodes = _nodes_now(cluster)
    if nodes is None:
        return Outcome(False, f"fleet {status}; Slurm does not answer yet" if status else "Slurm does not answer yet")
    static = [node for node in nodes if kind.origin(node.name) in ("static", "")]
    return started_outcome(status, instances, len(static), sum(map(_is_up, static)))


def _is_up(node: Node) -> bool:
    """It takes work, and has a machine to do it: Slurm also gives work to what is powered down."""
    off = node.state.has("powered_down", "power_up", "powering_up", "powering_down", "not_responding")
    return joins.takes_work(node) and not off


def _nodes_now(cluster: Cluster) -> tuple[Node, ...] | None:
    """The nodes as Slurm tells them now; None while it does not answer."""
    try:
        return SlurmReads(cluster.slurm).nodes().nodes
    except FaultError:
        return None


def schedule_owner(cluster: Cluster, *, role: str, who: str, head: bool) -> Owner:
    """For whom schedules are made, with the head's instance when that shall go as well; waits for AWS."""
    look = power_look(cluster)
    scope, machine = look.reading.scope, look.head
    owned = {} if scope.fleet_table else {i.id: i for i in look.joined.of_node.values() if i.role != "head"}
    left = [(name, why) for name, one in owned.items() if (why := cannot_stop(one))]
    able = [name for name, one in owned.items() if not cannot_stop(one)]
    return Owner(
        cluster.config.name,
        scope,
        look.region,
        role,
        who,
        machine.id if head and machine else "",
        tuple(able) if scope.filters else (),
        old_form=bool(look.reading.fleet.data and look.reading.fleet.data.old_form),
        left_out=tuple(left),
    )


def waits(cluster: Cluster) -> Waits:
    """What the `wait` steps of such a plan look at."""
    reads = SlurmReads(cluster.slurm)

    def running_jobs() -> int:
        return sum(1 for job in reads.queue().jobs if job.state in ("R", "CG", "CF", "S"))

    def head_answers() -> bool:
        try:
            return cluster.head.run(["true"], deadline_s=SSH_DEADLINE_S).rc == 0
        except FaultError:
            return False

    return Waits(cluster.aws.calls(), cluster.aws.scope(), running_jobs, head_answers, cluster.clock)


def _kind(cluster: Cluster) -> Kind:
    kind = cluster.aws.kind()
    if kind is None:
        raise FaultError(
            Fault(FaultKind.MISSING, "planning", "what kind of cluster it is, is not known", "set `kind` in the config")
        )
    return kind
