"""Fetches what a preflight judges; each question may fail alone. Only on request, never on a timer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from cockpit.aws_models import AwsScope, Instance, Market, Part, Reservation
from cockpit.catalog.instances import instance_type
from cockpit.catalog.quotas import family_of
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.event_models import ClusterEvents
from cockpit.formats import aws_ec2, aws_preflight
from cockpit.formats.pcluster_events import LAUNCH_FAILURE
from cockpit.models import FaultError, FaultKind
from cockpit.preflight_models import Ask, Placement, PreflightFacts, Quota
from cockpit.sources.aws import read_reservations
from cockpit.sources.aws_client import AwsCalls

T = TypeVar("T")

RECENT_S = 900.0


def ask_for(
    calls: AwsCalls, scope: AwsScope, queue: str, resource: str, count: int, peers: Iterable[Instance]
) -> Ask | None:
    """What `count` more nodes of a compute resource would be: by the launch template, else by a peer that runs."""
    if scope.stack:
        name = f"{scope.stack}-{queue}-{resource}"
        try:
            answer = calls.call(
                "ec2",
                "describe_launch_template_versions",
                f"reading launch template {name}",
                LaunchTemplateName=name,
                Versions=["$Latest"],
            )
            versions = answer.get("LaunchTemplateVersions") or ()
            if versions and versions[0].get("LaunchTemplateData"):
                data = versions[0]["LaunchTemplateData"]
                return _completed(aws_preflight.ask_of_template(data, count, queue, resource), peers)
        except FaultError:
            pass  # a peer tells nearly as much, and what nobody tells is a verdict of its own
    peer = _peer(peers, queue, resource)
    return aws_preflight.ask_of_peer(peer, count) if peer else None


def _peer(peers: Iterable[Instance], queue: str, resource: str) -> Instance | None:
    like = [one for one in peers if one.queue == queue and one.alive]
    return next((one for one in like if one.resource == resource), like[0] if like and not resource else None)


def _completed(ask: Ask, peers: Iterable[Instance]) -> Ask:
    """A template of several types or subnets leaves them to the launch; a peer shows what that comes to."""
    peer = _peer(peers, ask.queue, ask.resource)
    if peer is None:
        return ask
    return replace(ask, type=ask.type or peer.type, subnets=ask.subnets or ((peer.subnet,) if peer.subnet else ()))


class Preflight:
    """Reads the facts for one ask."""

    def __init__(self, calls: AwsCalls, clock: Clock = SYSTEM_CLOCK) -> None:
        self._calls, self._clock = calls, clock

    def facts(self, ask: Ask, events: ClusterEvents | None = None, head_now: float | None = None) -> PreflightFacts:
        """Everything that matters for it; never raises, what could not be read carries its fault."""
        errors, ago_s = _capacity_errors(ask, events, self._clock.now() if head_now is None else head_now)
        hyperpod = ask.type.startswith("ml.")
        counts = ask.market is not Market.CAPACITY_BLOCK
        return PreflightFacts(
            ask=ask,
            vcpus_each=None if hyperpod else self._part(lambda: self._vcpus(ask.type)).data,
            quotas=self._part(lambda: self._quotas(ask)) if counts else Part(),
            vcpus_used=self._part(lambda: self._used(ask)) if counts and not hyperpod else Part(),
            subnets=self._part(lambda: self._subnets(ask)) if ask.subnets else Part(),
            groups=self._part(lambda: self._groups(ask)) if ask.efa else Part(),
            placement=self._part(lambda: self._placement(ask)) if ask.placement_group else Part(),
            reservation=self._part(lambda: self._reservation(ask)) if ask.reservation else Part(),
            zones=self._part(lambda: self._zones(ask)) if not hyperpod else Part(),
            capacity_errors=errors,
            capacity_error_s=ago_s,
        )

    def _part(self, read: Callable[[], T]) -> Part[T]:
        try:
            return Part(read(), self._clock.now())
        except FaultError as error:
            return Part(fault=error.fault)

    def _vcpus(self, name: str) -> int | None:
        known = instance_type(name)
        if known is not None and known.vcpus:
            return known.vcpus
        answer = self._calls.call("ec2", "describe_instance_types", f"asking what a {name} is", InstanceTypes=[name])
        found = [one.get("VCpuInfo", {}).get("DefaultVCpus") for one in answer.get("InstanceTypes") or ()]
        return found[0] if found else None

    def _quotas(self, ask: Ask) -> tuple[Quota, ...]:
        if ask.type.startswith("ml."):
            pages = self._calls.pages(
                "service-quotas", "list_service_quotas", "reading SageMaker's quotas", ServiceCode="sagemaker"
            )
            return aws_preflight.parse_cluster_quotas(pages, ask.type)
        codes = family_of(ask.type).codes(ask.type, spot=ask.market is Market.SPOT)
        found = [self._quota(code) for code in codes]
        return tuple(quota for quota in found if quota is not None)

    def _quota(self, code: str) -> Quota | None:
        """The applied value, or the default where the account never had one; None where there is no such quota."""
        return self._ask_quota("get_service_quota", code) or self._ask_quota("get_aws_default_service_quota", code)

    def _ask_quota(self, method: str, code: str) -> Quota | None:
        names: dict[str, Any] = {"ServiceCode": "ec2", "QuotaCode": code}
        try:
            return aws_preflight.parse_quota(
                self._calls.call("service-quotas", method, f"reading quota {code}", **names)
            )
        except FaultError as error:
            if error.fault.kind is FaultKind.MISSING:
                return None
            raise

    def _used(self, ask: Ask) -> int:
        """Every instance of the account in the region counts, not only this cluster's."""
        states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        pages = self._calls.pages("ec2", "describe_instances", "counting what the account runs", Filters=states)
        return aws_preflight.vcpus_in_use(aws_ec2.parse_instances(pages), ask)

    def _subnets(self, ask: Ask) -> Any:
        pages = self._calls.pages("ec2", "describe_subnets", "reading the subnets", SubnetIds=list(ask.subnets))
        return aws_preflight.parse_subnets(pages)

    def _groups(self, ask: Ask) -> Any:
        what, ids = "reading the security groups", list(ask.security_groups)
        if not ids:
            return ()
        return aws_preflight.parse_groups(self._calls.pages("ec2", "describe_security_groups", what, GroupIds=ids))

    def _placement(self, ask: Ask) -> Placement | None:
        filters = [{"Name": "group-name", "Values": [ask.placement_group]}]
        what = "reading the placement group"
        return aws_preflight.parse_placement(
            self._calls.call("ec2", "describe_placement_groups", what, Filters=filters)
        )

    def _reservation(self, ask: Ask) -> Reservation | None:
        try:
            return read_reservations(self._calls, [ask.reservation]).get(ask.reservation)
        except FaultError as error:
            if error.fault.kind is FaultKind.MISSING:
                return None
            raise

    def _zones(self, ask: Ask) -> tuple[str, ...]:
        pages = self._calls.pages(
            "ec2",
            "describe_instance_type_offerings",
            "asking where the type is offered",
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": [ask.type]}],
        )
        return tuple(
            aws_ec2.text(one.get("Location")) for page in pages for one in page.get("InstanceTypeOfferings") or ()
        )


def _capacity_errors(ask: Ask, events: ClusterEvents | None, now: float) -> tuple[dict[str, int], float | None]:
    """The last refusal of launches for this compute resource within a quarter of an hour."""
    prefixes = tuple(f"{ask.queue}-{origin}-{ask.resource}-" for origin in ("st", "dy"))
    for event in reversed(events.events if events else ()):
        ours = not event.nodes or any(name.startswith(prefixes) for name in event.nodes)
        if event.type == LAUNCH_FAILURE and event.at and now - event.at <= RECENT_S and ours:
            return dict(event.codes), max(0.0, now - event.at)
    return {}, None
