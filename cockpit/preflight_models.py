"""What stands in the way of more instances, as facts fetched and as verdicts. Frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from cockpit.aws_models import UNREAD, Market, Part, Reservation


class Result(str, Enum):
    """What a check found."""

    PASS = "pass"  # noqa: S105 - a word of a check
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One check with its numbers; `next_step` where there is something to do."""

    check: str
    result: Result
    text: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """What is about to be launched: so many more instances of a type, and where they would go."""

    type: str
    count: int
    market: Market = Market.ON_DEMAND
    queue: str = ""
    resource: str = ""
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    placement_group: str = ""
    reservation: str = ""
    efa: bool = False
    addresses_each: int = 1  # private IPs of one instance; EFA-only interfaces have none
    known_from: str = ""  # the launch template, or an instance that runs already


@dataclass(frozen=True, slots=True)
class Quota:
    """One service quota; `limit` in vCPU, for HyperPod in instances."""

    code: str
    name: str
    limit: float


@dataclass(frozen=True, slots=True)
class Subnet:
    """Where instances get their addresses from."""

    id: str
    zone: str
    free: int | None


@dataclass(frozen=True, slots=True)
class GroupRules:
    """Whether a security group lets everything in from itself and out to itself; what EFA needs, both ways."""

    id: str
    inbound: bool
    outbound: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """A placement group."""

    name: str
    state: str
    strategy: str


@dataclass(frozen=True, slots=True)
class PreflightFacts:
    """Everything fetched for one Ask; a part that could not be read has its fault."""

    ask: Ask
    vcpus_each: int | None = None
    quotas: Part[tuple[Quota, ...]] = UNREAD
    vcpus_used: Part[int] = UNREAD  # of the same family and market, in the whole account and region
    subnets: Part[tuple[Subnet, ...]] = UNREAD
    groups: Part[tuple[GroupRules, ...]] = UNREAD
    placement: Part[Placement | None] = UNREAD  # data None with a time: there is no such group
    reservation: Part[Reservation | None] = UNREAD
    zones: Part[tuple[str, ...]] = UNREAD  # where the type is offered
    capacity_errors: Mapping[str, int] = field(default_factory=dict)  # code -> nodes, lately, of this resource
    capacity_error_s: float | None = None  # how long ago the last was
