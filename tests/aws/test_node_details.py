"""What the details of a node tell of its instance and of what the head's daemons said about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.app import CockpitApp
from cockpit.aws_models import AwsReading, AwsScope, Checks, Instance, Joined, Market, Part, Reservation, ScheduledEvent
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.event_models import ClusterEvent, ClusterEvents
from cockpit.models import Fault, FaultKind, Health
from cockpit.price_models import Price, Prices, Wanted
from screens.detail_registry import details
from screens.details.node_instance import event_lines, instance_lines
from screens.lines import Line, Subject
from tests.screens.helpers import screen_text
from tests.screens.test_app import HOSTILE
from tests.still import NOON, still_cluster

NODE = "gpu-st-p5-1"
ONE = Instance(
    "i-0123456789abcdef0", "p5.48xlarge", "running", role="compute", market=Market.ON_DEMAND, zone="us-east-1a",
    placement_group="prod-gpu", launched_at=NOON - 7200, template="lt-1:3", private_ip="10.0.0.7", efa=32,
    checks=Checks("ok", "impaired", impaired_since=NOON - 600,
                  events=(ScheduledEvent("instance-retirement", "degraded hardware", NOON + 86400),)),
)  # fmt: skip


def cluster_with(one: Instance | None, **more: object) -> Cluster:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    reading = AwsReading(AwsScope(), instances=Part((one,) if one else (), NOON))
    joined = Joined({NODE: one}, {NODE: "address"}) if one else Joined()
    prices = Prices({Wanted.of(one): Price(55.04, "list price", "us-east-1", "2026-09-24")}) if one else Prices()
    cluster.view = replace(cluster.view, aws=reading, joined=joined, prices=prices, **more)  # type: ignore[arg-type]
    return cluster


def words(lines: list[Line]) -> str:
    return "\n".join("".join(piece if isinstance(piece, str) else piece[0] for piece in line) for line in lines)


def test_an_instance_is_told_with_its_checks_events_and_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    cluster = cluster_with(ONE)
    text = words(instance_lines(cluster, NODE))
    assert "i-0123456789abcdef0  by the node's address" in text
    assert "p5.48xlarge, on-demand" in text
    assert "us-east-1a" in text
    assert "2h00m ago" in text
    assert "instance impaired for 10m" in text
    assert "instance-retirement not before" in text
    assert "$55.04/h, $110.08 since launch at today's price" in text
    assert "list price of 2026-09-24, us-east-1" in text
    assert "32 interfaces attached" in text
    assert "i-0123456789abcdef0" in words(details(cluster, Subject("node", NODE)))


def test_without_an_instance_it_says_why() -> None:
    assert "EC2 has no instance for it" in words(instance_lines(cluster_with(None), NODE))
    gone = cluster_with(None)
    gone.view = replace(gone.view, joined=Joined(vanished={NODE: "i-0dead"}))
    assert "Slurm points at i-0dead" in words(instance_lines(gone, NODE))
    fault = Fault(FaultKind.DENIED, "reading instances", "ec2:DescribeInstances is not allowed", "docs/AWS.md")
    blind = cluster_with(None)
    blind.view = replace(blind.view, aws=AwsReading(AwsScope(), instances=Part(None, None, fault)))
    assert "ec2:DescribeInstances is not allowed — docs/AWS.md" in words(instance_lines(blind, NODE))
    cluster, _, _ = still_cluster()
    assert instance_lines(cluster, NODE) == []


def test_a_capacity_block_tells_its_end_and_no_price() -> None:
    one = replace(ONE, market=Market.CAPACITY_BLOCK, reservation="cr-1")
    cluster = cluster_with(one)
    assert cluster.view.aws is not None
    block = Reservation("cr-1", ends_at=NOON + 3600, block=True)
    cluster.view = replace(cluster.view, aws=replace(cluster.view.aws, reservations=Part({"cr-1": block}, NOON)))
    text = words(instance_lines(cluster, NODE))
    assert "1h00m left" in text
    assert "paid in advance" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_events_are_told_newest_first_and_harm_nothing(text: str) -> None:
    events = [
        ClusterEvent(NOON - 60 * at, Health.WARN, "clustermgtd", "node-launch-failure-count", f"{text} {at}",
                     codes={"InsufficientInstanceCapacity": at}, nodes=(NODE,))
        for at in (30, 2)
    ]  # fmt: skip
    cluster = cluster_with(ONE, events=ClusterEvents(tuple(events)))
    told = words(event_lines(cluster, NODE))
    assert "\x1b" not in told
    assert told.index("InsufficientInstanceCapacity 2") < told.index("InsufficientInstanceCapacity 30")
    assert event_lines(cluster, "gpu-st-p5-2") == []


async def test_the_overview_tells_the_newest_failure_of_the_last_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    events = [ClusterEvent(NOON - 60 * at, Health.WARN, "clustermgtd", "x", f"boot failure {at}") for at in (90, 30, 2)]
    cluster = cluster_with(ONE, events=ClusterEvents(tuple(events)))
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    app = CockpitApp(Clusters.only(cluster))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.pause()
        text = screen_text(app)
        assert "boot failure 2  +1 more in the last hour" in text
        cluster.view = replace(cluster.view, events=None)
        app.cockpit.on_changed()
        await pilot.pause()
        assert "boot failure" not in screen_text(app)
