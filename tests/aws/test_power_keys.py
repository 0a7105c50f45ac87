"""`P` on a running cockpit over a ParallelCluster in moto: what it means, the plan, and the way back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from screens.chrome import ClockLine
from tests.aws.moto_cluster import MotoCluster
from tests.screens.helpers import screen_text
from tests.still import still_cluster


class Seat:
    """The app in front of that cluster; `until` waits for words on the screen."""

    def __init__(self, app: CockpitApp, pilot: Any) -> None:
        self.app, self._pilot = app, pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause()

    async def until(self, wanted: str | Callable[[str], bool]) -> str:
        end = time.monotonic() + 20
        while True:
            text = screen_text(self.app)
            if wanted(text) if callable(wanted) else wanted in text:
                return text
            assert time.monotonic() < end, text
            await asyncio.sleep(0.02)


@asynccontextmanager
async def seated(moto: MotoCluster, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Seat]:
    cluster, _, _ = still_cluster(moto.config)
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    cluster.read_once()
    app = CockpitApp(Clusters.only(cluster))
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.press("2")
        await pilot.pause()
        yield Seat(app, pilot)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(ClockLine, "tick", lambda self: None)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_p_stops_a_running_fleet_and_the_plan_names_jobs_before_money_before_steps(
    moto: MotoCluster, size: tuple[int, int]
) -> None:
    async with seated(moto, size) as seat:
        assert "prod RUNNING" in screen_text(seat.app)
        await seat.press("P")
        text = await seat.until("type prod, the cluster's name")
        assert "stop the cluster prod" in text
        assert "saves $220.16/h" in text
        assert text.index("hurts ") < text.index("saves ")
        assert "[ ] once the running jobs have ended" in text
        assert "[ ] the head node, too" in text
        await seat.press("escape")
    assert moto.fleet_item()["Data"]["M"]["status"]["S"] == "RUNNING"


async def test_options_make_another_plan(moto: MotoCluster) -> None:
    async with seated(moto) as seat:
        await seat.press("P")
        await seat.until("type prod, the cluster's name")
        await asyncio.sleep(0.35)  # the dialog hears nothing before
        await seat.press("shift+tab", "shift+tab", "space")
        await seat.until(lambda text: "none of them loses work" in text and "[x] once the running jobs" in text)


async def test_p_starts_a_stopped_fleet_and_asks_nothing_about_groups(moto: MotoCluster) -> None:
    moto.set_fleet("STOPPED")
    async with seated(moto) as seat:
        assert "prod STOPPED" in screen_text(seat.app)
        await seat.press("P")
        text = await seat.until("type prod, the cluster's name")
        assert "start the cluster prod" in text
        assert "HyperPod" not in text


async def test_between_both_it_asks_which(moto: MotoCluster) -> None:
    moto.set_fleet("PROTECTED")
    async with seated(moto) as seat:
        assert "prod PROTECTED" in screen_text(seat.app)
        await seat.press("P")
        text = await seat.until("which of both")
        assert "stop the cluster" in text
        assert "start the cluster" in text
        await seat.press("2")
        assert "the fleet is PROTECTED" in await seat.until("type prod, the cluster's name")


async def test_without_aws_p_says_why_it_does_nothing(tmp_path: Path) -> None:
    cluster, _, _ = still_cluster()
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    cluster.read_once()
    app = CockpitApp(Clusters.only(cluster))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.press("P")
        await pilot.pause()
        assert "the config names no region" in screen_text(app)
