"""What was never heard is not empty, and what went silent is not live: GPUs, strip, and the line with the trouble."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config import ClusterConfig
from cockpit.models import Fault, FaultError, FaultKind, Health, Problem
from cockpit.sources.gpus import GPUS, FleetReading, FleetStreams
from cockpit.sources.slurm import NODES
from cockpit.text import printable
from screens.chrome import trouble_pieces
from tests.screens.helpers import screen_lines, screen_text
from tests.screens.test_app import HOSTILE
from tests.still import StillClock, still_cluster
from tests.still_gpus import busy_fleet, tell

SHUT = Fault(FaultKind.UNREACHABLE, "SSH to head", "connection refused", "look whether sshd runs there")


async def shown(pilot: Pilot[int], *keys: str) -> str:
    """The screen after these keys."""
    await pilot.press(*keys)
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, CockpitApp)
    app.cockpit.refresh_chrome()
    await pilot.pause()
    return screen_text(app)


async def test_gpus_of_a_cluster_whose_nodes_were_never_read_are_unknown_and_not_none() -> None:
    """The overview said that no node has a GPU, and the strip that this was read just now."""
    clock, head = StillClock(), still_cluster()[1]
    cluster = Cluster(ClusterConfig("still"), clock=clock, head=head)
    head.fault = FaultError(SHUT)
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    async with CockpitApp(Clusters.only(cluster)).run_test(size=(120, 40), notifications=True) as pilot:
        cluster.read_once()
        for pane in ("1", "3"):
            text = await shown(pilot, pane)
            assert "no node that is up has a GPU" not in text
            assert "gpus never" in text
            assert "● gpus" not in text
        assert "look whether sshd runs there" in text


def test_no_node_is_dialled_before_it_is_known_which_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def collect(streams: FleetStreams) -> FleetReading:
        asked.set()
        return FleetReading()

    monkeypatch.setattr(FleetStreams, "collect", collect)
    clock, head = StillClock(), still_cluster()[1]
    cluster = Cluster(ClusterConfig("still"), clock=clock, head=head)
    head.fault = FaultError(SHUT)
    cluster.start()
    until_failed(cluster)
    assert not asked.is_set()
    head.fault = None
    cluster.refresh()
    assert asked.wait(20)
    cluster.stop()


def until_failed(cluster: Cluster) -> None:
    """Wait until the nodes were asked for in vain."""
    failed = threading.Event()
    forget = cluster.store.listen(lambda name: failed.set() if cluster.store.state(NODES).error else None)
    assert cluster.store.state(NODES).error or failed.wait(20)
    forget()


async def test_when_every_probe_is_silent_the_strip_says_so_though_we_go_on_asking() -> None:
    cluster, clock = watched()
    async with CockpitApp(Clusters.only(cluster)).run_test(size=(120, 40), notifications=True) as pilot:
        assert "● gpus" in await shown(pilot, "2")
        clock.time += 30
        again = cluster.view.fleet
        assert again is not None
        tell(cluster, FleetReading(dict(again.nodes)))  # asked just now, and nothing new was heard
        assert "▲ gpus stale" in await shown(pilot, "2")
        clock.time += 120
        tell(cluster, FleetReading(dict(again.nodes)))
        assert "✖ gpus lost" in await shown(pilot, "2")


def watched() -> tuple[Cluster, StillClock]:
    """The still cluster with GPUs that were read just now."""
    cluster, _, clock = still_cluster()
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    cluster.store.declare(GPUS, 1.0)
    cluster.read_once()
    tell(cluster, busy_fleet(cluster))
    return cluster, clock


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("title", ["down", "x" * 300, *HOSTILE[4:8]])
def test_the_line_with_the_trouble_fits_and_always_tells_how_many_more(width: int, title: str) -> None:
    app = type("App", (), {})()
    one = Problem("a", Health.CRITICAL, "gpu-st-p5-8", printable(title), "look at it " * 9)
    problems = [replace(one, key=str(number), since=100.0) for number in range(12)]
    pieces = trouble_pieces(problems, 3700.0, app, width)
    line = "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)
    assert "+11 more" in line
    assert "gpu-st-p5-8" in line
    assert cell_len(line) <= width


@pytest.mark.usefixtures("ticking_clock")
async def test_a_cluster_that_is_opened_later_has_its_clock_at_once() -> None:
    cluster, _ = watched()
    async with CockpitApp(Clusters.only(cluster)).run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.pause()
        assert re.search(r"\d\d:\d\d:\d\d", screen_lines(pilot.app)[0])
