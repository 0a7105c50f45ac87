"""EC2's answers, as boto3 gives them, to models. Pure; texts from outside are made harmless here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from cockpit.aws_models import Checks, Instance, Market, Reservation, ScheduledEvent
from cockpit.text import printable

Answer = Mapping[str, Any]

_ROLES = {"HeadNode": "head", "Compute": "compute", "LoginNode": "login"}
_OVER = ("[Completed]", "[Canceled]")  # events that are over stay listed for a while
_EFA = ("efa", "efa-only")
_NO_END = "unlimited"


def text(value: object) -> str:
    """A text of AWS's as one that may be shown; "" for what is not there."""
    return "" if value is None else printable(str(value))


def epoch(value: object) -> float | None:
    """Seconds since the epoch of a datetime, or of a text that is one; None for anything else."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()


def parse_instances(pages: Iterable[Answer]) -> tuple[Instance, ...]:
    """Every instance of DescribeInstances' pages, without status checks."""
    return tuple(
        _instance(entry)
        for page in pages
        for reservation in page.get("Reservations") or ()
        for entry in reservation.get("Instances") or ()
    )


def _instance(entry: Answer) -> Instance:
    tags = {text(tag.get("Key")): text(tag.get("Value")) for tag in entry.get("Tags") or ()}
    interfaces = tuple(entry.get("NetworkInterfaces") or ())
    placement = entry.get("Placement") or {}
    return Instance(
        id=text(entry.get("InstanceId")),
        type=text(entry.get("InstanceType")),
        state=text((entry.get("State") or {}).get("Name")),
        state_reason=text((entry.get("StateReason") or {}).get("Code")),
        role=_ROLES.get(tags.get("parallelcluster:node-type", ""), ""),
        queue=tags.get("parallelcluster:queue-name", ""),
        resource=tags.get("parallelcluster:compute-resource-name", ""),
        market=_market(entry),
        private_ip=text(entry.get("PrivateIpAddress")),
        other_ips=tuple(_other_ips(interfaces, text(entry.get("PrivateIpAddress")))),
        private_dns=text(entry.get("PrivateDnsName")),
        public_ip=text(entry.get("PublicIpAddress")),
        zone=text(placement.get("AvailabilityZone")),
        placement_group=text(placement.get("GroupName") or placement.get("GroupId")),
        subnet=text(entry.get("SubnetId")),
        vpc=text(entry.get("VpcId")),
        security_groups=_groups(entry, interfaces),
        launched_at=epoch(entry.get("LaunchTime")),
        template=" ".join(t for key in ("id", "version") if (t := tags.get(f"aws:ec2launchtemplate:{key}"))),
        reservation=text(entry.get("CapacityReservationId")),
        efa=_efa(interfaces),
        vcpus=_vcpus(entry.get("CpuOptions") or {}),
        root_on_ebs=entry["RootDeviceType"] == "ebs" if entry.get("RootDeviceType") else None,
    )


def _market(entry: Answer) -> Market:
    """On demand is what EC2 says nothing about."""
    lifecycle = entry.get("InstanceLifecycle")
    return {"spot": Market.SPOT, "capacity-block": Market.CAPACITY_BLOCK}.get(str(lifecycle), Market.ON_DEMAND)


def _other_ips(interfaces: Iterable[Answer], primary: str) -> Iterator[str]:
    """ParallelCluster up to 3.12 may take the address of any interface for the node's."""
    for interface in interfaces:
        if (address := text(interface.get("PrivateIpAddress"))) and address != primary:
            yield address


def _groups(entry: Answer, interfaces: Iterable[Answer]) -> tuple[str, ...]:
    found = [group for interface in interfaces for group in interface.get("Groups") or ()]
    return tuple(dict.fromkeys(text(group.get("GroupId")) for group in found or entry.get("SecurityGroups") or ()))


def _efa(interfaces: tuple[Answer, ...]) -> int | None:
    """How many EFA interfaces are attached; None when EC2 tells no interface's type."""
    kinds = [interface["InterfaceType"] for interface in interfaces if interface.get("InterfaceType")]
    return sum(kind in _EFA for kind in kinds) if kinds else None


def _vcpus(options: Answer) -> int | None:
    cores, threads = options.get("CoreCount"), options.get("ThreadsPerCore")
    return cores * threads if isinstance(cores, int) and isinstance(threads, int) else None


def parse_statuses(pages: Iterable[Answer]) -> dict[str, Checks]:
    """Status checks and coming events by instance id, from DescribeInstanceStatus' pages."""
    return {
        text(entry.get("InstanceId")): Checks(
            system=_word(entry, "SystemStatus"),
            instance=_word(entry, "InstanceStatus"),
            storage=_word(entry, "AttachedEbsStatus"),
            impaired_since=_impaired_since(entry),
            events=tuple(_events(entry.get("Events") or ())),
        )
        for page in pages
        for entry in page.get("InstanceStatuses") or ()
    }


def _word(entry: Answer, name: str) -> str:
    return text((entry.get(name) or {}).get("Status"))


def _impaired_since(entry: Answer) -> float | None:
    details = [
        detail
        for name in ("SystemStatus", "InstanceStatus", "AttachedEbsStatus")
        for detail in (entry.get(name) or {}).get("Details") or ()
    ]
    return min((at for detail in details if (at := epoch(detail.get("ImpairedSince")))), default=None)


def _events(entries: Iterable[Answer]) -> Iterator[ScheduledEvent]:
    for entry in entries:
        words = text(entry.get("Description"))
        if not words.startswith(_OVER):
            yield ScheduledEvent(
                text(entry.get("Code")), words, epoch(entry.get("NotBefore")), epoch(entry.get("NotAfter"))
            )


def parse_reservations(pages: Iterable[Answer]) -> dict[str, Reservation]:
    """Capacity reservations by id, from DescribeCapacityReservations' pages."""
    return {
        text(entry.get("CapacityReservationId")): Reservation(
            id=text(entry.get("CapacityReservationId")),
            type=text(entry.get("InstanceType")),
            zone=text(entry.get("AvailabilityZone")),
            state=text(entry.get("State")),
            total=_whole(entry.get("TotalInstanceCount")),
            available=_whole(entry.get("AvailableInstanceCount")),
            starts_at=epoch(entry.get("StartDate")),
            ends_at=None if entry.get("EndDateType") == _NO_END else epoch(entry.get("EndDate")),
            block=entry.get("ReservationType") == "capacity-block",
        )
        for page in pages
        for entry in page.get("CapacityReservations") or ()
    }


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
