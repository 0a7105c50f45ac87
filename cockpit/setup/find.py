"""What this machine knows of clusters: its own Slurm, hosts of the ssh config, ParallelCluster stacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cockpit.addresses import short_name
from cockpit.aws_models import Stack
from cockpit.formats.aws_ec2 import parse_instances
from cockpit.in_time import Late, in_time
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.setup.here import has_slurm, ssh_hosts
from cockpit.sources.aws import find_clusters
from cockpit.sources.aws_client import AwsAccess, AwsCalls
from cockpit.sources.base import unexpected

STACKS_S = 20.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster that may be set up; what is "" is asked of the head."""

    name: str
    head: str
    kind: str = ""
    region: str = ""
    profile: str = ""
    stack: str = ""
    told: str = ""  # where it was found, in words


@dataclass(frozen=True, slots=True)
class Found:
    """All candidates, the likeliest first, and why AWS told none."""

    candidates: tuple[Candidate, ...]
    fault: Fault | None = None


def find(
    profile: str = "", region: str = "", *, endpoint_url: str | None = None, ssh_config: Path | None = None
) -> Found:
    """Looks everywhere; AWS is asked once, in the profile and region given or usual, and may refuse."""
    here = (Candidate("local", "local", told="the Slurm of this machine"),) if has_slurm() else ()
    stacks, fault = _stacks(AwsAccess(region or None, profile or None, endpoint_url, attempts=1))
    hosts = tuple(Candidate(short_name(host), host, told="~/.ssh/config") for host in ssh_hosts(ssh_config))
    return Found((*here, *stacks, *hosts), fault)


def _stacks(access: AwsAccess) -> tuple[tuple[Candidate, ...], Fault | None]:
    """ParallelCluster's stacks with the heads' addresses, within a deadline: credentials may hang."""

    def ask() -> tuple[Candidate, ...]:
        calls = AwsCalls(access)
        stacks = find_clusters(calls)
        public = _public_addresses(calls, [stack.head_instance for stack in stacks if stack.head_instance])
        return tuple(_of_stack(stack, public, calls.region(), access.profile or "") for stack in stacks)

    try:
        return in_time(ask, STACKS_S, "stacks"), None
    except FaultError as error:
        return (), error.fault
    except Late:
        late = f"AWS did not answer within {STACKS_S:g} s"
        return (), Fault(FaultKind.TIMEOUT, "looking for clusters", late)
    except Exception as error:  # the other candidates are there all the same
        return (), unexpected("looking for clusters", error)


def _public_addresses(calls: AwsCalls, heads: list[str]) -> dict[str, str]:
    """The heads' public addresses where they have one; without the right to ask, none."""
    if not heads:
        return {}
    try:
        answer = calls.call("ec2", "describe_instances", "looking for the heads", InstanceIds=heads)
    except FaultError:
        return {}
    return {instance.id: instance.public_ip for instance in parse_instances([answer])}


def _of_stack(stack: Stack, public: dict[str, str], region: str, profile: str) -> Candidate:
    address = public.get(stack.head_instance) or stack.head_ip
    head = f"{stack.user}@{address}" if stack.user and address else address
    told = f"ParallelCluster {stack.version} in {region}, {stack.status}"
    return Candidate(stack.name, head, "parallelcluster", region, profile, stack.name, told)
