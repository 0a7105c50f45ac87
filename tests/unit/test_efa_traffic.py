"""Whether EFA is really used: rates from two readings of the cards' byte counters, for nodes, jobs and the palette."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cockpit.cluster import Cluster
from cockpit.gpu_models import EfaDevice, NodeReading
from cockpit.sources.efa_traffic import EfaTraffics
from cockpit.words import byte_rate
from screens.commands import Context
from screens.detail_registry import details, explain
from screens.lines import Subject
from screens.palette_search import Catalog
from screens.subjects import title
from tests.unit.details_cluster import lead, leads_to, texts, watched, with_reading

NODE, OTHER = "gpu-st-p5-1", "gpu-st-p5-2"
GB = 10**9


def devices(*moved: int, back: int = 0) -> tuple[EfaDevice, ...]:
    """Devices that have sent so many bytes, and received so many less `back`."""
    return tuple(
        EfaDevice(f"rdmap{number}", counters={"tx_bytes": sent, "rx_bytes": sent - back})
        for number, sent in enumerate(moved)
    )


def reading(at: float, *moved: int) -> NodeReading:
    return NodeReading(at, 1, efa=devices(*moved), efa_at=at)


def with_traffic(*nodes: tuple[str, tuple[int, ...], tuple[int, ...]]) -> Cluster:
    """Nodes whose cards had sent so much, and 15 s later so much."""
    names = {name for name, _, _ in nodes}
    cluster, _, clock = watched({name: with_reading(efa=devices(0), efa_at=1.0) for name in names})
    for name, before, after in nodes:
        cluster.streams.traffic.add(name, reading(clock.now() - 15, *before))
        cluster.streams.traffic.add(name, reading(clock.now(), *after))
    return cluster


def test_a_rate_is_the_difference_of_two_readings_over_their_time() -> None:
    traffics = EfaTraffics()
    traffics.add(NODE, reading(100.0, 5 * GB, 7 * GB, 0))
    assert traffics.of(NODE) is None  # absolute values say nothing
    traffics.add(NODE, reading(110.0, 25 * GB, 17 * GB, 0))
    found = traffics.of(NODE)
    assert found is not None
    assert (found.seconds, found.devices, found.moving, found.quiet_since) == (10.0, 3, 2, None)
    assert (found.sent_b_s, found.received_b_s) == (3 * GB, 3 * GB)


def test_quiet_is_told_since_the_last_movement_that_was_seen() -> None:
    traffics = EfaTraffics()
    for at, sent in ((100.0, 1), (115.0, 5), (130.0, 5), (145.0, 5)):
        traffics.add(NODE, reading(at, sent))
    found = traffics.of(NODE)
    assert found is not None
    assert (found.moving, found.quiet_since) == (0, 115.0)


def test_a_card_that_was_reset_or_came_gives_no_rate_until_two_readings_agree() -> None:
    traffics = EfaTraffics()
    traffics.add(NODE, reading(100.0, 9 * GB))
    traffics.add(NODE, reading(115.0, 1))
    assert traffics.of(NODE) is None
    traffics.add(NODE, reading(130.0, 1, 1))
    assert traffics.of(NODE) is None
    traffics.add(NODE, reading(145.0, 2, 1))
    assert traffics.of(NODE) is not None
    traffics.forget(NODE)
    assert traffics.of(NODE) is None


def test_counters_that_cannot_be_read_are_no_zero() -> None:
    traffics = EfaTraffics()
    values: Mapping[str, int | None] = {"tx_bytes": None, "rx_bytes": 4}
    for at in (100.0, 115.0):
        traffics.add(NODE, NodeReading(at, 1, efa=(EfaDevice("rdmap0", counters=values),), efa_at=at))
    assert traffics.of(NODE) is None


@pytest.mark.parametrize(
    ("bytes_s", "words"),
    [(0, "0 B/s"), (999, "999 B/s"), (1500, "1.5 kB/s"), (12e6, "12.0 MB/s"), (9.2e9, "9.2 GB/s"), (294e9, "294 GB/s")],
)
def test_rates_are_decimal(bytes_s: float, words: str) -> None:
    assert byte_rate(bytes_s) == words


def test_the_details_of_a_node_begin_with_what_moves_over_efa() -> None:
    cluster = with_traffic((NODE, (0, 0), (30 * GB, 60 * GB)))
    lines = texts(details(cluster, Subject("node", NODE))).split("\n")
    at = next(place for place, line in enumerate(lines) if "EFA now" in line)
    assert at < 6
    assert "sends 6.0 GB/s, receives 6.0 GB/s over 2 of 2 devices, 3.0 GB/s a device, in the last 15s" in lines[at]


def test_where_nothing_moves_that_is_said_and_not_guessed() -> None:
    cluster = with_traffic((NODE, (7,), (7,)))
    assert "nothing moves over 1 device, for 15s at least" in texts(details(cluster, Subject("node", NODE)))
    assert "known after two readings" not in texts(details(cluster, Subject("node", OTHER)))  # it has no device


def test_an_old_rate_tells_its_age() -> None:
    cluster = with_traffic((NODE, (0,), (GB,)))
    fleet = cluster.view.fleet
    assert fleet is not None
    watch = fleet.nodes[NODE]
    assert watch.reading is not None
    later = replace(watch, reading=replace(watch.reading, taken_at=watch.reading.taken_at + 300))
    cluster.view = replace(cluster.view, fleet=replace(fleet, nodes={**fleet.nodes, NODE: later}))
    assert "in the last 15s, read 5m ago" in texts(details(cluster, Subject("node", NODE)))


def test_the_details_of_a_job_tell_on_how_many_of_its_nodes_efa_is_used() -> None:
    cluster, _, _ = watched()
    row = lead(cluster)
    names = [name for name in cluster.view.jobs_of_node if row.lead in cluster.view.jobs_of_node[name]]
    cluster = with_traffic(*((name, (0,), (GB * (name != names[0]),)) for name in names))
    told = texts(details(cluster, Subject("job", row.key)))
    assert f"{len(names) - 1} of its {len(names)} nodes send and receive" in told
    quiet = with_traffic(*((name, (7,), (7,)) for name in names))
    assert "does not use EFA" in texts(details(quiet, Subject("job", row.key)))


def test_all_nodes_are_told_with_the_busiest_first_and_lead_to_nodes_and_jobs() -> None:
    cluster = with_traffic((NODE, (0,), (1,)), (OTHER, (0,), (150 * GB,)))
    lines = explain(cluster, Subject("traffic", ""))
    told = texts(lines)
    assert "EFA is used on 2 of 2 nodes now" in told
    assert told.index(OTHER) < told.index(NODE)
    assert {("node", NODE), ("node", OTHER)} <= leads_to(lines)
    assert any(kind == "job" for kind, _ in leads_to(lines))
    assert title(Subject("traffic", "")) == "EFA traffic"


def test_without_any_device_the_page_says_who_can_be_asked() -> None:
    cluster, _, _ = watched()
    assert "no EFA device is known" in texts(details(cluster, Subject("traffic", "")))


@pytest.mark.parametrize("words", ["efa traffic", "traffic", "EFA used", "is efa really used"])
def test_the_palette_finds_it_by_what_one_asks(words: str) -> None:
    found = Catalog(Context(watched()[0].view)).find(words)
    assert "traffic" in [entry.command.id for entry in found.entries[:5]]
