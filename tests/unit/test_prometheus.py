"""The fleet by Prometheus: a stand-in for its answers here, a real one with a real exporter's format at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config import ClusterConfig, NodeAccess, PrometheusSettings
from cockpit.fleet import gpu_freshness, watch_freshness
from cockpit.formats.prometheus import Machine, Series
from cockpit.gpu_models import Missing, known
from cockpit.gpu_wiring import PROMETHEUS
from cockpit.models import FaultError, FaultKind, Freshness, Snapshot
from cockpit.sources.base import Beat
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.gpus import GPUS
from cockpit.sources.prometheus import PrometheusReads, match_nodes
from cockpit.sources.prometheus_client import PrometheusClient
from tests.screens.helpers import screen_text
from tests.still import StillClock, StillHost, still_cluster
from tests.unit.prometheus_kit import NODE, Exporter, real_prometheus

SETTINGS = PrometheusSettings("http://127.0.0.1:1")


def gpu(name: str, index: int, value: float, at: float, node: str = NODE) -> Series:
    labels = {
        "__name__": f"DCGM_FI_DEV_{name}" if name else "", "Hostname": node, "gpu": str(index), "UUID": f"GPU-{index}",
        "pci_bus_id": f"00000000:{0x53 + index:02X}:00.0",
    }  # fmt: skip
    return Series(labels, ((at, value),))


class Answers(PrometheusClient):
    """What a Prometheus would say, as the test sets it."""

    def __init__(self, clock: StillClock) -> None:
        super().__init__(SETTINGS)
        self.clock = clock
        self.scraped: dict[int, float] = {}
        self.util: dict[int, float] = {}
        self.xid: dict[int, float] = {}
        self.past: tuple[Series, ...] = ()
        self.asked: list[str] = []

    def query(self, expression: str) -> tuple[Series, ...]:
        self.asked.append(expression)
        now = self.clock.now()
        if "timestamp(" in expression:
            return tuple(gpu("", index, at, now) for index, at in self.scraped.items())
        if "GPU_UTIL" in expression:
            return tuple(gpu("GPU_UTIL", index, value, now) for index, value in self.util.items())
        if "XID_ERRORS" in expression:
            return tuple(gpu("XID_ERRORS", index, code, now) for index, code in self.xid.items())
        return ()

    def query_range(self, expression: str, start: float, end: float, step_s: float) -> tuple[Series, ...]:
        self.asked.append(expression)
        return self.past


@pytest.fixture
def fleet() -> tuple[PrometheusReads, Answers, StillClock, GpuHistory]:
    cluster, _, clock = still_cluster()
    cluster.read_once()
    answers, history = Answers(clock), GpuHistory()
    for index in (0, 1):
        answers.scraped[index], answers.util[index] = clock.now() - 20, 90.0
    reads = PrometheusReads(SETTINGS, lambda: cluster.view.nodes or (), history, client=answers, clock=clock)
    return reads, answers, clock, history


Fleet = tuple[PrometheusReads, Answers, StillClock, GpuHistory]


def test_a_node_is_as_old_as_its_last_scrape(fleet: Fleet) -> None:
    reads, _, clock, history = fleet
    watch = reads.read().nodes[NODE]
    assert watch.seen_at == clock.steady() - 20
    assert watch_freshness(watch, clock.steady()) is Freshness.LIVE  # the usual pace of Prometheus is a minute
    assert watch.reading is not None
    assert [known(sample.util_pct) for sample in watch.reading.gpus] == [90, 90]
    clock.time += 300  # the exporter hangs; Prometheus goes on to answer
    watch = reads.read().nodes[NODE]
    assert watch_freshness(watch, clock.steady()) is Freshness.LOST
    assert watch.reading is not None
    assert known(watch.reading.gpus[0].util_pct) == 90
    assert len(history.series(NODE, "GPU-0", "util_pct")) == 1


def test_a_node_that_is_told_of_no_more_keeps_its_reading(fleet: Fleet) -> None:
    reads, answers, clock, _ = fleet
    reads.read()
    answers.util, answers.scraped = {}, {}
    clock.time += 30
    watch = reads.read().nodes[NODE]
    assert watch.reading is not None
    assert len(watch.reading.gpus) == 2


def test_a_gpu_that_is_told_of_no_more_keeps_its_row_and_grows_old(fleet: Fleet) -> None:
    reads, answers, clock, _ = fleet
    reads.read()
    for _ in range(8):
        clock.time += 30
        answers.util, answers.scraped = {1: 50.0}, {1: clock.now() - 5}
        watch = reads.read().nodes[NODE]
    assert watch.reading is not None
    first, second = watch.reading.gpus
    assert (known(first.util_pct), known(second.util_pct)) == (90, 50)
    assert watch.reading.taken_at - (first.taken_at or 0) > 200


def test_a_new_code_is_an_xid_once_and_an_old_one_is_none(fleet: Fleet) -> None:
    reads, answers, clock, _ = fleet
    answers.xid = {0: 31, 1: 0}  # nobody knows of when that 31 is
    assert reads.read().nodes[NODE].events.events == ()
    for _ in range(2):
        clock.time += 30
        answers.xid = {0: 31, 1: 79}
        answers.scraped = {0: clock.now() - 5, 1: clock.now() - 5}
        events = reads.read().nodes[NODE].events
    assert [(event.code, event.bus) for event in events.events] == [(79, "0000:54:00")]


def test_a_code_of_a_scrape_that_is_not_taken_yet_is_not_lost(fleet: Fleet) -> None:
    """Fields are asked for one by one: the gauge may be of a newer scrape than the times, which are asked for first."""
    reads, answers, clock, _ = fleet
    answers.xid = {0: 0, 1: 0}
    reads.read()
    answers.xid = {0: 0, 1: 79}
    assert reads.read().nodes[NODE].events.events == ()
    clock.time += 30
    answers.scraped = {0: clock.now() - 5, 1: clock.now() - 5}
    events = reads.read().nodes[NODE].events
    assert [(event.code, event.bus) for event in events.events] == [(79, "0000:54:00")]


def test_what_the_gauge_showed_before_is_looked_up_once(fleet: Fleet) -> None:
    reads, answers, clock, _ = fleet
    at = clock.now() - 1800
    labels = gpu("XID_ERRORS", 1, 0, 0).labels
    answers.past = (Series(labels, ((at - 300, 0.0), (at, 94.0), (at + 300, 94.0))),)
    answers.xid = {1: 94}
    events = reads.read().nodes[NODE].events
    assert [(event.code, event.at) for event in events.events] == [(94, at)]


def test_the_past_of_a_node_that_somebody_looks_at(fleet: Fleet) -> None:
    reads, answers, clock, history = fleet
    reads.read()
    end = clock.now() - 20
    points = tuple((end - 600 + 15 * step, float(step)) for step in range(40))
    answers.past = (Series(gpu("GPU_UTIL", 0, 0, 0).labels, points),)
    reads.history(NODE)
    told = history.series(NODE, "GPU-0", "util_pct")
    assert len(told) == 41
    assert told[0] == (end - 600, 0.0)
    assert told[-1] == (end, 90.0)


@pytest.mark.parametrize(
    "label", [NODE, f"{NODE}:9400", f"{NODE}.cluster.local:9400", NODE.upper(), "ADDRESS", "ADDRESS:9400", "EC2"]
)
def test_labels_of_all_spellings_find_their_node(label: str) -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    node = next(one for one in cluster.view.nodes or () if one.name == NODE)
    label = label.replace("ADDRESS", node.address).replace(
        "EC2", "ip-" + node.address.replace(".", "-") + ".ec2.internal"
    )
    named, strangers = match_nodes([Machine(label), Machine("other:9400")], cluster.view.nodes or ())
    assert set(named) == {NODE}
    assert strangers == ("other:9400",)


def test_a_prometheus_that_is_not_there_is_told() -> None:
    with pytest.raises(FaultError) as error:
        PrometheusClient(SETTINGS).query("up")
    assert error.value.fault.kind is FaultKind.UNREACHABLE
    assert "127.0.0.1" in error.value.fault.line()


def test_beyond_nodes_max_only_nodes_that_somebody_looks_at_are_dialled() -> None:
    config = ClusterConfig("big", prometheus=SETTINGS, nodes=NodeAccess(max=2))
    cluster, clock = watching(config)
    assert list(cluster._gpu_targets()) == []
    cluster.look_closely(NODE)
    assert [target.node for target in cluster._gpu_targets()] == [NODE]
    clock.time += 3600
    assert list(cluster._gpu_targets()) == []
    cluster.stop()


def test_up_to_nodes_max_all_are_dialled_and_prometheus_fills_up() -> None:
    cluster, _ = watching(ClusterConfig("small", prometheus=SETTINGS))
    assert len(list(cluster._gpu_targets())) > 2
    states = {state.name for state in cluster.store.states()}
    assert PROMETHEUS.name in states
    cluster.stop()


async def test_gpus_beyond_nodes_max_are_rows_like_any_other() -> None:
    cluster, clock = watching(ClusterConfig("big", prometheus=SETTINGS, nodes=NodeAccess(max=2)))
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    answers = Answers(clock)
    for index in range(8):
        answers.scraped[index], answers.util[index] = clock.now() - 5, 80.0 + index
    nodes = cluster.view.nodes or ()
    cluster.gpus._reads = PrometheusReads(SETTINGS, lambda: nodes, cluster.streams.history, client=answers, clock=clock)
    cluster.gpus.read_prometheus()
    beat = Beat(Snapshot(clock.now(), 0.01, cluster.gpus.read()), 2.0, clock.steady() + 2.0)
    cluster.store.put(GPUS.name, beat)
    rows = [row for row in cluster.view.gpu_rows if row.node == NODE]
    assert [known(row.sample.util_pct) for row in rows if row.sample] == [80.0 + index for index in range(8)]
    assert {gpu_freshness(row, clock.steady()) for row in rows} == {Freshness.LIVE}
    others = [row for row in cluster.view.gpu_rows if row.node != NODE]
    assert others
    assert not any(row.sample for row in others)  # nobody told of them, and they keep their rows
    assert not [
        problem for problem in cluster.problems() if NODE in problem.subject and problem.key.startswith("driver")
    ]
    async with CockpitApp(Clusters.only(cluster)).run_test(size=(160, 48), notifications=True) as pilot:
        await pilot.press("3", "slash", *"node:gpu", "minus", *"st", "minus", *"p5", "minus", "1", "enter")
        await pilot.pause()
        text = screen_text(pilot.app)
        assert re.search(rf"{NODE}/7 .* 87%", text), text
        assert list(cluster._gpu_targets()) == []
        await pilot.press("enter")  # who opens a GPU has its node asked directly
        for _ in range(100):
            await pilot.pause(0.02)
            if asked := [target.node for target in cluster._gpu_targets()]:
                break
        assert asked == [NODE]
        assert "reading …" not in screen_text(pilot.app)
    cluster.stop()


def watching(config: ClusterConfig) -> tuple[Cluster, StillClock]:
    """A still cluster that would watch GPUs, after one look at Slurm."""
    from cockpit.demo.sim import Simulation

    clock = StillClock()
    cluster = Cluster(config, clock=clock, head=StillHost(Simulation(clock=clock.now)))
    cluster.read_once()
    return cluster, clock


# -- with a real Prometheus


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[str, Exporter]]:
    with real_prometheus(tmp_path) as url_and_exporter:
        yield url_and_exporter


def test_a_real_prometheus_from_the_exporter_to_the_rows(prometheus: tuple[str, Exporter]) -> None:
    url, exporter = prometheus
    cluster, _, _ = still_cluster()
    cluster.read_once()
    history = GpuHistory()
    reads = PrometheusReads(PrometheusSettings(url), lambda: cluster.view.nodes or (), history)

    def until(util: float) -> None:
        end = time.monotonic() + 30
        while True:
            try:
                watch = reads.read().nodes.get(NODE)
            except FaultError:  # it starts
                watch = None
            if watch and watch.reading and known(watch.reading.gpus[0].util_pct) == util:
                return
            assert time.monotonic() < end
            time.sleep(0.3)

    until(91)
    exporter.util, exporter.xid = 12.0, 79
    until(12)
    watch = reads.read().nodes[NODE]
    assert watch.reading is not None
    first, second = watch.reading.gpus
    assert (known(first.temp_c), known(second.temp_c), known(second.util_pct)) == (60, 61, 13)
    assert isinstance(first.power_w, Missing)
    assert first.gpu.name == "NVIDIA H100 80GB HBM3"
    assert [(event.code, event.bus) for event in watch.events.events] == [(79, "0000:54:00")]
    assert watch.seen_at is not None
    exporter.broken = True  # the exporter hangs, and Prometheus answers without its series
    time.sleep(3)
    kept = reads.read().nodes[NODE]
    assert kept.reading is not None
    assert kept.reading.taken_at == reads.read().nodes[NODE].reading.taken_at  # type: ignore[union-attr]
    assert known(kept.reading.gpus[0].util_pct) == 12
    reads.history(NODE)
    assert {value for _, value in history.series(NODE, "GPU-0", "util_pct") if value is not None} <= {91, 12}
