"""The source `aws`: what EC2, DynamoDB, CloudFormation and SageMaker tell of one cluster.

A reading is made of parts that fail alone: what could be read stays, and what could not names its permission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cockpit.aws_models import (
    AwsReading,
    AwsScope,
    Caller,
    Checks,
    FleetItem,
    HyperPodCluster,
    Instance,
    Part,
    Reservation,
    Stack,
)
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.formats import aws_ec2, aws_fleet
from cockpit.instance_join import unclaimed
from cockpit.models import Fault, FaultError, FaultKind, Node
from cockpit.sources.aws_client import AwsCalls
from cockpit.sources.base import SourceKey

AWS: SourceKey[AwsReading] = SourceKey("aws")

STATES = ("pending", "running", "shutting-down", "stopping", "stopped")
STATUS_BATCH = 100  # the most ids DescribeInstanceStatus takes
STACK_EVERY_S = 60.0
RESERVATIONS_EVERY_S = 300.0
CALLER_EVERY_S = 3600.0
LOOKUPS_A_READ = 20  # single-item calls, so that a big fleet is looked up over several reads
_OWN = ("instances", "fleet", "stack", "hyperpod", "caller")  # parts that always ask AWS; the others build on them
_UNREACHED = (FaultKind.UNREACHABLE, FaultKind.TIMEOUT)


class AwsReads:
    """Reads one cluster's parts, each at its own pace; remembers what does not change."""

    def __init__(
        self,
        calls: AwsCalls,
        scope: Callable[[], AwsScope],
        *,
        nodes: Callable[[], Sequence[Node]] = tuple,
        slurm_ids: Callable[[], Mapping[str, str]] = dict,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._calls, self._scope, self._nodes, self._slurm_ids = calls, scope, nodes, slurm_ids
        self._clock = clock
        self._reading = AwsReading(AwsScope())
        self._looked_up: dict[str, str] = {}  # instance -> node, by the table; "" for none
        self._described: dict[str, Instance] = {}  # HyperPod nodes that had to be asked for one by one

    def read(self) -> AwsReading:
        """Every part that is due; raises FaultError when nothing at all could ever be read."""
        scope = self._scope()
        if scope != self._reading.scope:
            self._reading = AwsReading(scope)
        faults: list[Fault] = []
        answered = 0
        for name, every_s, read in self._due(scope):
            outcome = self._take(name, every_s, read)
            answered += outcome is True and name in _OWN
            if isinstance(outcome, Fault) and name in _OWN:
                faults.append(outcome)
            if not answered and _hopeless(faults):
                raise FaultError(faults[0])
        if faults and not answered:
            raise FaultError(faults[0])
        self._reading = replace(self._reading, region=self._calls.region())
        return self._reading

    def _due(self, scope: AwsScope) -> Iterator[tuple[str, float, Callable[[], Any]]]:
        """The parts to be read, in order: later ones build on earlier ones."""
        if scope.filters:
            yield "instances", 0.0, self._instances
        if scope.fleet_table:
            yield "fleet", 0.0, lambda: read_fleet(self._calls, scope.fleet_table)
        if scope.stack:
            yield "stack", STACK_EVERY_S, lambda: read_stack(self._calls, scope.stack)
        if scope.hyperpod:
            yield "hyperpod", 0.0, self._hyperpod
            yield "instances", 0.0, self._hyperpod_nodes
        if scope.filters:
            yield "checks", 0.0, self._checks
            yield "reservations", RESERVATIONS_EVERY_S, self._reservations
        yield "slurm_ids", 0.0, self._slurm_ids
        if scope.nodes_table:
            yield "table_ids", 0.0, self._table_ids
        yield "caller", CALLER_EVERY_S, self._caller

    def _take(self, name: str, every_s: float, read: Callable[[], Any]) -> Fault | bool:
        """Read one part when it is due (False: it is not); its last good data outlive a failure."""
        old: Part[Any] = getattr(self._reading, name)
        now = self._clock.now()
        if old.fault is None and old.read_at is not None and now - old.read_at < every_s:
            return False
        try:
            part = Part(read(), now)
        except FaultError as error:
            part = replace(old, fault=error.fault)
        changed: dict[str, Any] = {name: part}
        self._reading = replace(self._reading, **changed)
        return part.fault or True

    def _instances(self) -> tuple[Instance, ...]:
        scope = self._reading.scope
        return read_instances(self._calls, scope, self._reading.checks.data or {})

    def _checks(self) -> Mapping[str, Checks]:
        """Status checks of what runs; also put into the instances read just before."""
        instances = self._reading.instances.data or ()
        running = [instance.id for instance in instances if instance.state == "running"]
        checks = read_checks(self._calls, running)
        with_checks = tuple(replace(instance, checks=checks.get(instance.id)) for instance in instances)
        self._reading = replace(self._reading, instances=replace(self._reading.instances, data=with_checks))
        return checks

    def _reservations(self) -> Mapping[str, Reservation]:
        ids = sorted({i.reservation for i in self._reading.instances.data or () if i.reservation})
        return read_reservations(self._calls, ids) if ids else {}

    def _caller(self) -> Caller:
        return aws_fleet.parse_caller(self._calls.call("sts", "get_caller_identity", "asking AWS who we are"))

    def _table_ids(self) -> Mapping[str, str]:
        """What the table tells of instances that neither Slurm nor an address gives to a node."""
        asked = 0
        for instance in unclaimed(self._nodes(), self._reading):
            if instance not in self._looked_up and asked < LOOKUPS_A_READ:
                asked += 1
                self._looked_up[instance] = read_owner(self._calls, self._reading.scope.nodes_table, instance)
        return {instance: node for instance, node in self._looked_up.items() if node}

    def _hyperpod(self) -> HyperPodCluster:
        return read_hyperpod(self._calls, self._reading.scope.hyperpod)

    def _hyperpod_nodes(self) -> tuple[Instance, ...]:
        """Every node; those that the list gives no host name are described one by one and remembered."""
        name, cluster = self._reading.scope.hyperpod, self._reading.hyperpod.data
        types = {group.name: group.node_type for group in cluster.groups} if cluster else {}
        pages = self._calls.pages("sagemaker", "list_cluster_nodes", "reading HyperPod's nodes", ClusterName=name)
        nodes = aws_fleet.parse_hyperpod_nodes(pages, types)
        asked = 0
        for node in nodes:
            if not node.private_dns and node.id not in self._described and asked < LOOKUPS_A_READ:
                asked += 1
                self._described[node.id] = self._describe(name, node)
        known = self._described
        return tuple(
            replace(n, private_dns=d.private_dns, private_ip=d.private_ip, zone=d.zone)
            if (d := known.get(n.id)) and not n.private_dns
            else n
            for n in nodes
        )

    def _describe(self, name: str, node: Instance) -> Instance:
        what = f"reading HyperPod's node {node.id}"
        answer = self._calls.call("sagemaker", "describe_cluster_node", what, ClusterName=name, NodeId=node.id)
        details = answer.get("NodeDetails") or {}
        return aws_fleet.parse_hyperpod_nodes([{"ClusterNodeSummaries": [details]}], {})[0]


def _hopeless(faults: Sequence[Fault]) -> bool:
    """Bad credentials are so for every service; two services that do not answer are the network's fault."""
    return any(f.kind is FaultKind.AUTH for f in faults) or len([f for f in faults if f.kind in _UNREACHED]) > 1


def read_instances(
    calls: AwsCalls, scope: AwsScope, checks: Mapping[str, Checks] | None = None
) -> tuple[Instance, ...]:
    """Every instance of the cluster that is not terminated yet, its head among them by name or address."""
    filters = [{"Name": name, "Values": list(values)} for name, values in scope.filters]
    filters.append({"Name": "instance-state-name", "Values": list(STATES)})
    pages = calls.pages("ec2", "describe_instances", "reading the instances", Filters=filters)
    found = aws_ec2.parse_instances(pages)
    return tuple(replace(_with_role(i, scope), checks=(checks or {}).get(i.id)) for i in found)


def _with_role(instance: Instance, scope: AwsScope) -> Instance:
    names = (instance.private_ip, instance.public_ip, instance.private_dns, instance.private_dns.split(".")[0])
    is_head = not instance.role and any(name in scope.head_names for name in names if name)
    return replace(instance, role="head") if is_head else instance


def read_checks(calls: AwsCalls, running: Sequence[str]) -> dict[str, Checks]:
    """Status checks and scheduled events of running instances, in batches."""
    checks: dict[str, Checks] = {}
    for at in range(0, len(running), STATUS_BATCH):
        ids = list(running[at : at + STATUS_BATCH])
        pages = calls.pages("ec2", "describe_instance_status", "reading the status checks", InstanceIds=ids)
        checks |= aws_ec2.parse_statuses(pages)
    return checks


def read_fleet(calls: AwsCalls, table: str) -> FleetItem:
    """ParallelCluster's fleet status, read consistently; raises FormatError when the item is not there."""
    key = {"Id": {"S": "COMPUTE_FLEET"}}
    what = "reading the fleet status"
    answer = calls.call("dynamodb", "get_item", what, TableName=table, Key=key, ConsistentRead=True)
    return aws_fleet.parse_fleet_item(answer.get("Item"))


def read_stack(calls: AwsCalls, name: str) -> Stack:
    """The cluster's root stack."""
    answer = calls.call("cloudformation", "describe_stacks", f"reading stack {name}", StackName=name)
    return aws_fleet.parse_stack(answer["Stacks"][0])


def find_clusters(calls: AwsCalls) -> tuple[Stack, ...]:
    """Every ParallelCluster cluster of the region."""
    pages: Iterable[Mapping[str, Any]] = calls.pages("cloudformation", "describe_stacks", "looking for clusters")
    stacks = [stack for page in pages for stack in page.get("Stacks") or ()]
    return tuple(aws_fleet.parse_stack(stack) for stack in stacks if aws_fleet.is_cluster(stack))


def read_hyperpod(calls: AwsCalls, name: str) -> HyperPodCluster:
    """The HyperPod cluster and its instance groups."""
    answer = calls.call("sagemaker", "describe_cluster", f"reading HyperPod cluster {name}", ClusterName=name)
    return aws_fleet.parse_hyperpod(answer)


def read_reservations(calls: AwsCalls, ids: Sequence[str]) -> dict[str, Reservation]:
    """Capacity reservations and blocks by id."""
    what = "reading the capacity reservations"
    pages = calls.pages("ec2", "describe_capacity_reservations", what, CapacityReservationIds=list(ids))
    return aws_ec2.parse_reservations(pages)


def read_owner(calls: AwsCalls, table: str, instance: str) -> str:
    """The node whose item in the table names this instance; "" for none."""
    answer = calls.call(
        "dynamodb",
        "query",
        f"looking up instance {instance}",
        TableName=table,
        IndexName="InstanceId",
        KeyConditionExpression="InstanceId = :id",
        ExpressionAttributeValues={":id": {"S": instance}},
    )
    return aws_fleet.parse_mapping(answer.get("Items") or ()).get(instance, "")
