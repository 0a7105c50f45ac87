"""Several clusters: the line-up, switching, and that each keeps its place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config import ClusterConfig
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable
from screens.lineup import LineupScreen
from tests.screens.golden import assert_golden
from tests.screens.helpers import screen_lines, screen_text
from tests.screens.test_app import HOSTILE
from tests.still import StillHost, still_cluster

NAMES = ("prod-train", "dev", "[/]evil")


class Three:
    """The app over three clusters that stand still; `started` says which were asked to poll, and whether for GPUs."""

    def __init__(self) -> None:
        self.made: dict[str, Cluster] = {}
        self.heads: dict[str, StillHost] = {}
        self.started: dict[str, list[bool]] = {}
        self.app = CockpitApp(Clusters(NAMES, NAMES[0], self._make))

    def _make(self, name: str) -> Cluster:
        config = ClusterConfig(name, region="us-east-1", production=name == NAMES[0])
        cluster, self.heads[name], _ = still_cluster(config=config)
        started = self.started.setdefault(name, [])
        cluster.start = lambda *, gpus=True: started.append(gpus)  # type: ignore[method-assign]
        self.made[name] = cluster
        return cluster


@asynccontextmanager
async def three(size: tuple[int, int] = (160, 40)) -> AsyncIterator[tuple[Three, Pilot[int]]]:
    setup = Three()
    async with setup.app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield setup, pilot


async def test_opening_the_cockpit_opens_one_cluster_only() -> None:
    async with three() as (setup, _):
        assert list(setup.made) == [NAMES[0]]
        assert setup.started == {NAMES[0]: [True]}


async def test_the_line_up_reads_every_cluster_without_dialling_nodes() -> None:
    async with three() as (setup, pilot):
        setup.app.show_lineup()
        await pilot.pause()
        assert setup.started["dev"] == [False]
        text = screen_text(setup.app)
        assert all(name in text for name in NAMES)
        assert "never" in text
        setup.made["dev"].read_once()
        setup.heads["[/]evil"].fault = FaultError(Fault(FaultKind.UNREACHABLE, "reaching evil", "[/]no route"))
        setup.made["[/]evil"].read_once()
        assert isinstance(setup.app.screen, LineupScreen)
        setup.app.screen.show_lines()
        await pilot.pause()
        await pilot.pause()
        lines = screen_lines(setup.app)
        assert any("dev" in line and "12" in line and "72/96" in line for line in lines)
        assert any("[/]evil" in line and "[/]no route" in line for line in lines)


async def test_switching_keeps_each_clusters_place_and_only_the_front_draws() -> None:
    async with three() as (setup, pilot):
        setup.made[NAMES[0]].read_once()
        await pilot.press("4")
        setup.app.show_cluster("dev")
        await pilot.pause()
        setup.made["dev"].read_once()
        await pilot.pause()
        assert "dev" in screen_lines(setup.app)[0]
        assert "nodes 12" in screen_text(setup.app)
        setup.app.show_cluster(NAMES[0])
        await pilot.pause()
        assert NAMES[0] in screen_lines(setup.app)[0]
        assert "queue" in screen_lines(setup.app)[3]
        assert setup.app.cockpit.trail.here.view == "pane-queue"


async def test_enter_in_the_line_up_opens_that_cluster() -> None:
    async with three() as (setup, pilot):
        setup.app.show_lineup()
        await pilot.pause()
        await pilot.press("slash", *"dev", "enter", "enter")
        await pilot.pause()
        assert setup.app.cockpit.cluster.config.name == "dev"
        assert setup.started["dev"] == [False, True]


async def test_esc_leaves_the_line_up_where_one_was() -> None:
    async with three() as (setup, pilot):
        setup.app.show_lineup()
        await pilot.pause()
        await pilot.press("escape")
        assert setup.app.screen is setup.app.cockpit


@pytest.mark.parametrize("typed", ["cluster", "clusters", "clu"])
async def test_the_palette_opens_the_line_up(typed: str) -> None:
    async with three() as (setup, pilot):
        await pilot.press("colon", *typed, "enter")
        await pilot.pause()
        await pilot.pause()
        assert isinstance(setup.app.screen, LineupScreen)
        await pilot.press("y")
        assert setup.app.clipboard in NAMES


async def test_with_one_cluster_there_is_no_line_up_and_the_palette_says_why() -> None:
    cluster, _, _ = still_cluster()
    async with CockpitApp(Clusters.only(cluster)).run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.press("colon", *"clusters", "enter")
        await pilot.pause()
        assert "the config names one cluster only" in screen_text(pilot.app)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_line_up(size: tuple[int, int]) -> None:
    async with three(size) as (setup, pilot):
        setup.app.show_lineup()
        await pilot.pause()
        setup.made[NAMES[0]].read_once()
        setup.heads["dev"].fault = FaultError(
            Fault(FaultKind.UNREACHABLE, "SSH to dev", "connection refused", "look whether sshd runs there")
        )
        setup.made["dev"].read_once()
        assert isinstance(setup.app.screen, LineupScreen)
        setup.app.screen.show_lines()
        await pilot.pause()
        assert_golden(f"lineup-{size[0]}x{size[1]}", screen_text(setup.app))


async def test_hostile_faults_and_problems_stay_text_in_the_line_up() -> None:
    async with three((200, 60)) as (setup, pilot):
        setup.app.show_lineup()
        await pilot.pause()
        for why in HOSTILE:
            setup.heads["dev"].fault = FaultError(Fault(FaultKind.UNREACHABLE, printable(why), printable(why)))
            setup.made["dev"].read_once()
            assert isinstance(setup.app.screen, LineupScreen)
            setup.app.screen.show_lines()
            await pilot.pause()
            [line] = [line for line in screen_lines(setup.app) if line[3:].startswith("dev ")]
            assert not any(character in line for character in "\x1b\x07\x1f\u202e")
        await pilot.press("slash", *"[/]", "enter", "y", "x")
        assert setup.app.is_running


def test_an_unknown_cluster_is_an_error() -> None:
    with pytest.raises(KeyError):
        Three().app.clusters.open("nowhere")
