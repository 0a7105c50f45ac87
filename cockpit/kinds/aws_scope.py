"""What of AWS belongs to a cluster, kind by kind."""

from __future__ import annotations

from cockpit.addresses import take_apart
from cockpit.aws_models import AwsScope
from cockpit.config import ClusterConfig
from cockpit.hosts.survey import HeadFacts

NAME_INSTANCES = "name the cluster's instances in the config: `instances: {tag:KEY: VALUE}`"


def of_parallelcluster(config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
    """The stack's name is also that of both tables and of the tag on every instance."""
    stack = config.stack or (facts.stack if facts else "") or config.name
    return AwsScope(
        region=_region(config, facts),
        stack=stack,
        fleet_table=f"parallelcluster-{stack}",
        nodes_table=f"parallelcluster-slurm-{stack}",
        filters=(("tag:parallelcluster:cluster-name", (stack,)),),
    )


def of_hyperpod(config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
    """SageMaker takes the cluster's name or its ARN; the instances are not in this account's EC2."""
    name = config.stack or (facts.hyperpod_arn if facts else "") or config.name
    return AwsScope(region=_region(config, facts), hyperpod=name)


def of_plain_slurm(config: ClusterConfig, facts: HeadFacts | None) -> AwsScope:
    """Only what the config names: a private address alone may belong to another VPC's instance."""
    filters = tuple((name, (value,)) for name, value in config.instances.items())
    return AwsScope(
        region=_region(config, facts),
        filters=filters,
        head_names=_head_names(config, facts),
        hint="" if filters else NAME_INSTANCES,
    )


def _region(config: ClusterConfig, facts: HeadFacts | None) -> str | None:
    # With a profile, its own region goes before what the head says of itself.
    return config.region or (facts.region if facts and not config.profile else "") or None


def _head_names(config: ClusterConfig, facts: HeadFacts | None) -> tuple[str, ...]:
    names = [facts.hostname, facts.hostname.split(".")[0]] if facts and facts.hostname else []
    if config.head != "local":
        names.append(take_apart(config.head).host)
    return tuple(dict.fromkeys(names))
