"""Which instance is behind which node. Pure.

The order is that of AWS ParallelCluster's own daemons and the most certain first: what Slurm itself holds as
InstanceId (slurmd tells it since 23.11), then the node's address against the primary private IP of this cluster's
instances, then names made of that IP, and last the DynamoDB table, whose items outlive their instances.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cockpit.aws_models import AwsReading, Instance, Joined
from cockpit.models import Node

_IP = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_IP_NAME = re.compile(r"ip-(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})")
_NO_MACHINE = ("powered_down", "powering_down", "powering_up")


def join(nodes: Iterable[Node], reading: AwsReading | None) -> Joined:
    """Every node's instance as far as it can be known; nothing while the instances were never read."""
    if reading is None or reading.instances.data is None:
        return Joined()
    index = _Index(reading.instances.data, reading)
    of_node: dict[str, Instance] = {}
    how: dict[str, str] = {}
    vanished: dict[str, str] = {}
    for node in nodes:
        found, word = index.find(node)
        if found is not None:
            of_node[node.name], how[node.name] = found, word
        elif word and not node.state.has(*_NO_MACHINE):
            vanished[node.name] = word
    owned = {instance.id for instance in of_node.values()}
    orphans = tuple(i for i in reading.instances.data if i.billed and i.id not in owned and i.role in ("compute", ""))
    return Joined(of_node, how, orphans, vanished)


def unclaimed(nodes: Iterable[Node], reading: AwsReading) -> tuple[str, ...]:
    """Ids of compute instances that live and that neither Slurm nor an address gives to a node."""
    return tuple(instance.id for instance in join(nodes, reading).orphans if instance.role == "compute")


class _Index:
    def __init__(self, instances: Iterable[Instance], reading: AwsReading) -> None:
        alive = [instance for instance in instances if instance.alive]
        self._by_id = {instance.id: instance for instance in alive}
        self._by_ip = {ip: instance for instance in alive for ip in instance.other_ips}
        self._by_ip |= {instance.private_ip: instance for instance in alive if instance.private_ip}
        self._by_name = {_label(instance.private_dns): instance for instance in alive if instance.private_dns}
        self._slurm: Mapping[str, str] = reading.slurm_ids.data or {}
        self._table = {node: instance for instance, node in (reading.table_ids.data or {}).items()}

    def find(self, node: Node) -> tuple[Instance | None, str]:
        """The instance and how it was found; without one, what the node points at in vain, "" for nothing."""
        told = self._slurm.get(node.name, "")
        if told and (found := self._by_id.get(told)):
            return found, "slurm"
        # An address equal to the node's name is what ParallelCluster writes for "no instance behind it".
        address = node.address if node.address != node.name else ""
        if address and (found := self._by_ip.get(address)):
            return found, "address"
        for name in dict.fromkeys((_label(address), _label(node.hostname), node.name)):
            if name and (found := self._by_name.get(name) or self._by_ip.get(_as_ip(name))):
                return found, "name"
        if found := self._by_id.get(self._table.get(node.name, "")):
            return found, "table"
        return None, told or (address if _IP.fullmatch(address) else "")


def _label(name: str) -> str:
    """The first label of a DNS name; an address stays whole."""
    return name if _IP.fullmatch(name) else name.split(".", 1)[0]


def _as_ip(name: str) -> str:
    match = _IP_NAME.fullmatch(name)
    return ".".join(match.groups()) if match else ""
