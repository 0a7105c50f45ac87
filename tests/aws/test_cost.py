"""Cost: sums over what has a price, idle money with a name, and never an invented number."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from cockpit import cost_report
from cockpit.aws_models import Instance, Joined, Market
from cockpit.catalog.instances import known_instance_types
from cockpit.catalog.prices import list_price, priced_types
from cockpit.cost import (
    CostReport,
    IdleMeter,
    cost,
    drained_by,
    idle_job_ids,
    machines_of_ec2,
    machines_of_slurm,
    until_monday_s,
)
from cockpit.models import FaultKind, Job, Node
from cockpit.price_models import Price, Prices, Wanted
from cockpit.sources.prices import PriceReads, bundled
from tests.aws.answers import Answers
from tests.aws.moto_cluster import MotoCluster
from tests.aws.test_problems import NOW, a_node, machine
from tests.still import StillClock, still_cluster

P5 = 55.04


def gpu_node(number: int, used: int, state: str = "idle+cloud", **more: Any) -> Node:
    return replace(a_node(number, state), gpus_total=8, gpus_used=used, **more)


def report(
    instances: list[Instance], nodes: list[Node], jobs: dict[str, list[Job]] | None = None, idle: set[int] | None = None
) -> CostReport:
    joined = Joined({node.name: i for node, i in zip(nodes, instances, strict=False)})
    machines = machines_of_ec2(instances, joined, nodes)
    return cost("ec2", machines, bundled(instances), jobs or {}, None if idle is None else frozenset(idle), NOW)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("by", "reason", "who"),
    [
        ("maria", "INC-1", "maria"),
        ("root", "maria: INC-1 NCCL slow", "maria"),  # as the cockpit writes it, also through sudo
        ("root", "INC-4821 NCCL slow (maria)", ""),
        ("root", "Not responding", ""),
        ("slurm", "Prolog error: x", ""),
        ("root", "", ""),
    ],
)
def test_root_is_nobody_to_ask_about_a_drain(by: str, reason: str, who: str) -> None:
    assert drained_by(gpu_node(1, 0, "idle+cloud+drain", reason=reason, reason_by=by)) == who


def test_what_has_a_price_is_added_up_and_the_rest_is_counted() -> None:
    head = machine(9, role="head", type="m6i.4xlarge", queue="")
    block = machine(3, market=Market.CAPACITY_BLOCK)
    told = report([machine(1), machine(2), block, head], [gpu_node(n, 8) for n in (1, 2, 3)])
    assert told.usd_h == pytest.approx(2 * P5)
    assert (told.unpriced, told.paid_ahead) == ({"m6i.4xlarge": 1}, 1)
    assert told.since_launch_usd == pytest.approx(2 * P5 * 2)
    first = told.lines[0]
    assert (first.queue, first.type, first.count, first.priced, first.usd_h) == ("gpu", "p5.48xlarge", 2, 2, 2 * P5)
    assert {(line.queue, line.usd_h) for line in told.lines[1:]} == {("gpu", None), ("head", None)}
    assert [(p.where, p.as_of) for p in told.prices] == [("us-east-1", "2026-09-24")]


def test_nothing_with_a_price_is_unknown_and_no_machine_is_nothing() -> None:
    unknown = report([machine(1, type="x9.large")], [gpu_node(1, 8)])
    assert (unknown.usd_h, unknown.until_monday_usd) == (None, None)
    nothing = report([machine(1, state="stopped"), machine(2, state="shutting-down")], [])
    assert (nothing.usd_h, nothing.lines, nothing.until_monday_usd, nothing.idle_usd_h) == (0.0, (), 0.0, 0.0)


def test_hyperpods_types_and_spot_have_no_bundled_price() -> None:
    told = report([machine(1, type="ml.p5.48xlarge", market=None), machine(2, market=Market.SPOT)], [])
    assert told.usd_h is None
    assert told.unpriced == {"ml.p5.48xlarge": 1, "p5.48xlarge": 1}


def test_idle_money_has_a_name() -> None:
    nodes = [
        gpu_node(1, 0),
        gpu_node(2, 4, "mixed+cloud"),
        gpu_node(3, 8, "allocated+cloud"),
        gpu_node(4, 0, "idle+cloud+drain", reason="bad", reason_by="maria"),
        gpu_node(5, 0, "idle+cloud+powering_up"),
        gpu_node(6, 8, "allocated+cloud"),
    ]
    asleep, awake = Job(7, "R", user="bob"), Job(8, "R", user="eve")
    jobs = {nodes[1].name: [awake], nodes[2].name: [asleep], nodes[5].name: [asleep, awake]}
    told = report([machine(n) for n in range(1, 7)], nodes, jobs, {7})
    assert [(line.why, line.who, line.job, line.gpus, line.nodes) for line in told.idle] == [
        ("free", "", "", 12, (nodes[0].name, nodes[1].name)),
        ("allocated", "bob", "7", 8, (nodes[2].name,)),
        ("drained", "maria", "", 8, (nodes[3].name,)),
    ]
    assert told.idle[0].usd_h == pytest.approx(1.5 * P5)
    assert told.idle_gpus == 28
    assert told.idle_usd_h == pytest.approx(3.5 * P5)
    assert told.sees_idle_jobs
    assert not report([machine(1)], [gpu_node(1, 8)]).sees_idle_jobs


def test_gpu_hours_are_counted_while_somebody_looks_and_gaps_are_not() -> None:
    told, meter = report([machine(1)], [gpu_node(1, 0)]), IdleMeter()
    for at in (0.0, 90.0, 180.0, 9000.0, 9090.0):
        meter.add(told, at)
    assert meter.gpu_hours() == {("free", ""): pytest.approx(8 * 270 / 3600)}
    assert meter.watched_s == 270


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("now", "hours"),
    [
        (datetime(2026, 11, 27, 17, 0, tzinfo=timezone.utc), 63.0),  # Friday 18:00 in Berlin
        (datetime(2026, 11, 30, 7, 0, tzinfo=timezone.utc), 1.0),  # Monday 08:00
        (datetime(2026, 11, 30, 8, 0, tzinfo=timezone.utc), 168.0),  # Monday 09:00
        (datetime(2026, 10, 23, 16, 0, tzinfo=timezone.utc), 64.0),  # the clocks go back that Sunday
    ],
)
def test_monday_morning_is_local_and_knows_summer_time(now: datetime, hours: float) -> None:
    assert until_monday_s(now.timestamp()) / 3600 == pytest.approx(hours)


def test_without_ec2_the_types_come_from_slurms_features() -> None:
    up = gpu_node(1, 0, features=("static", "p5.48xlarge", "p5"))
    off, odd = gpu_node(2, 0, "idle+cloud+powered_down", features=("p5.48xlarge",)), gpu_node(3, 0)
    machines = machines_of_slurm([up, off, odd], known_instance_types())
    assert [(m.instance.type, m.queue) for m in machines] == [("p5.48xlarge", "gpu"), ("", "gpu")]
    told = cost("slurm", machines, bundled(m.instance for m in machines), {}, None, NOW)
    assert told.usd_h == pytest.approx(P5)
    assert (told.unpriced, told.since_launch_usd) == ({"unknown type": 1}, None)


def test_idle_jobs_are_those_the_rules_found() -> None:
    assert idle_job_ids(["job:idle:12", "job:low:13", "aws:gone"]) == {12}


def test_the_bundled_list_says_where_it_holds_and_what_it_does_not_know() -> None:
    assert all(price.usd_h > 0 for name in priced_types() if (price := list_price(name)))
    assert list_price("p5e.48xlarge") is None  # no on-demand entry: unknown
    b300 = list_price("p6-b300.48xlarge")
    assert b300 is not None
    assert b300.region == "us-west-2"


def product(usd: str) -> str:
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}}
    return json.dumps({"terms": {"OnDemand": {"a.b": {"priceDimensions": {"a.b.c": dimension}}}}})


def test_the_pricing_api_is_asked_once_a_day_and_kept_on_disk(tmp_path: Path) -> None:
    answers, clock = Answers(), StillClock()
    answers.add("pricing", "get_products", {"PriceList": [product("0.0000000000"), product("71.5")]})
    here = [machine(1, market=Market.ON_DEMAND)]
    reads = PriceReads(answers.calls, clock, tmp_path)
    price = reads.find(here, "eu-west-1").of(here[0])
    assert price == Price(71.5, "list price", "eu-west-1", "2025-11-30")
    assert reads.find(here, "eu-west-1").of(here[0]) == price  # the stub has no second answer
    assert PriceReads(Answers().calls, clock, tmp_path).find(here, "eu-west-1").of(here[0]) == price
    assert (tmp_path / "prices.json").stat().st_mode & 0o777 == 0o600
    clock.time += 90_000
    answers.add("pricing", "get_products", {"PriceList": [product("70")]})
    again = reads.find(here, "eu-west-1").of(here[0])
    assert again is not None
    assert again.usd_h == 70.0
    (tmp_path / "prices.json").write_text("[half")
    assert PriceReads(Answers().calls, clock, tmp_path).find([], "eu-west-1").found == {}


def test_without_the_right_the_bundled_list_is_used_and_says_so(tmp_path: Path) -> None:
    answers = Answers()
    answers.refuse("pricing", "get_products", "AccessDeniedException", "no")
    here = [machine(1, market=Market.ON_DEMAND), machine(2, market=Market.ON_DEMAND, type="g5.xlarge")]
    found = PriceReads(answers.calls, StillClock(), tmp_path).find(here, "eu-west-1")  # and the second is not asked for
    assert found.of(here[0]) == Price(P5, "bundled list price", "us-east-1", "2026-09-24")
    assert found.faults[0].kind is FaultKind.DENIED
    assert "pricing:GetProducts" in found.faults[0].why


def test_spot_prices_are_those_of_the_zone_and_the_newest(tmp_path: Path) -> None:
    answers = Answers()
    history = [
        {"InstanceType": "g5.xlarge", "AvailabilityZone": zone, "SpotPrice": price, "Timestamp": stamp}
        for zone, price, stamp in (
            ("us-east-1a", "0.50", datetime(2026, 11, 1, tzinfo=timezone.utc)),
            ("us-east-1a", "0.40", datetime(2026, 11, 2, tzinfo=timezone.utc)),
            ("us-east-1b", "0.30", datetime(2026, 11, 2, tzinfo=timezone.utc)),
        )
    ]
    answers.add("ec2", "describe_spot_price_history", {"SpotPriceHistory": history})
    here, there = (machine(1, type="g5.xlarge", market=Market.SPOT, zone=zone) for zone in ("us-east-1a", "us-east-1c"))
    found = PriceReads(answers.calls, StillClock(), tmp_path).find([here, there], "us-east-1")
    price = found.of(here)
    assert price is not None
    assert (price.usd_h, price.source) == (0.40, "spot")
    assert found.of(there) is None  # no price there: unknown, and not another zone's


def test_a_price_belongs_to_a_market() -> None:
    one = machine(1, market=Market.ON_DEMAND)
    prices = Prices({Wanted.of(one): Price(1.0, "list price", "x", "y")})
    assert prices.of(replace(one, market=Market.SPOT)) is None


def test_cost_of_a_cluster_in_moto_and_of_one_without_aws(moto: MotoCluster, monkeypatch: pytest.MonkeyPatch,
                                                          tmp_path: Path) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    cluster, _, _ = still_cluster(moto.config)
    cluster.read_once()
    told = cost_report.record(cluster)["cost"]
    json.dumps(told)
    assert told["basis"] == "ec2"
    assert told["usd_h"] == pytest.approx(4 * P5)
    assert told["unpriced"] == {"m5.xlarge": 1}
    assert "HTTP status 500" in told["prices_not_asked"][0]  # moto has no Pricing API
    text = "\n".join(cost_report.lines(cluster))
    assert "$220.16/h; not counted, price unknown: 1 × m5.xlarge" in text
    assert "bundled list price of 2026-09-24, us-east-1" in text
    alone, _, _ = still_cluster(scenario="idle")
    assert cost_report.record(alone)["cost"] is None
    alone.read_once()
    slurm = cost_report.record(alone)["cost"]
    assert slurm["basis"] == "slurm"
    assert slurm["idle_gpus"] > 0
