"""The GPU pane and a GPU's details over a fleet that stands still: goldens, and hostile names all over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from rich.cells import cell_len

from cockpit.gpu_models import Driver, DriverState, Lack, Missing
from cockpit.sources.gpus import FleetReading, NodeWatch
from screens.heatmap import Heatmap
from tests.screens.golden import assert_golden
from tests.screens.test_app import SIZES, Pilot, cockpit
from tests.screens.test_grid_hostile import CONTROL, HOSTILE
from tests.still_gpus import busy_fleet, remember, tell


@pytest.fixture(autouse=True)
def _one_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


@asynccontextmanager
async def gpus(size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[Pilot, FleetReading]]:
    """The app at its GPU pane, with a fleet in some trouble."""
    async with cockpit(size) as pilot:
        await pilot.read()
        fleet = busy_fleet(pilot.cluster)
        remember(pilot.cluster, fleet)
        tell(pilot.cluster, fleet)
        await pilot.press("3")
        yield pilot, fleet


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(("name", "keys"), [("value", []), ("job", ["c"]), ("problems", ["m"] * 4)])
async def test_golden_of_the_gpu_pane(name: str, keys: list[str], size: tuple[int, int]) -> None:
    async with gpus(size) as (pilot, _):
        await pilot.press(*keys) if keys else None
        assert_golden(f"gpus-{name}-{size[0]}x{size[1]}", pilot.text())


async def test_each_trouble_is_said_on_the_gpu_it_is_of() -> None:
    async with gpus((200, 60)) as (pilot, _):
        await pilot.press("t", "z")
        told = {word: line for line in pilot.lines() for word in line.split()[:2] if "/" in word}
        assert "lost" in told["gpu-st-p5-2/5"].lower()
        assert "91 °C" in told["gpu-st-p5-3/1"]
        assert "Xid 31" in told["gpu-st-p5-4/2"]
        assert "driver silent 3s" in told["gpu-st-p5-7/0"]
        assert "no route to host" in told["gpu-st-p5-8/0"]


def hostile(watch: NodeWatch, text: str) -> NodeWatch:
    """The node with this text wherever somebody else chooses it."""
    reading, fault = watch.reading, watch.fault
    if reading is None:
        return replace(watch, fault=replace(fault, why=text, next_step=text) if fault else None)
    samples = [
        replace(one, gpu=replace(one.gpu, name=text, serial=text), throttle=(text,), recovery=text)
        for one in reading.gpus
    ]
    samples[3] = replace(samples[3], lost=Missing(Lack.FAILED, text))
    processes = tuple(replace(one, user=text, command=text) for one in reading.processes)
    driver = reading.driver
    if watch.node == "gpu-st-p5-7":
        driver = Driver(DriverState.HUNG, since=reading.taken_at, why=text)
    return replace(watch, reading=replace(reading, gpus=tuple(samples), processes=processes, driver=driver))


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_names_are_shown_and_never_obeyed(text: str) -> None:
    async with gpus() as (pilot, fleet):
        view = pilot.cluster.view
        assert view.queue is not None
        jobs = tuple(replace(job, name=text, user=text) for job in view.queue.jobs)
        held = {node: tuple(replace(j, name=text, user=text) for j in of) for node, of in view.jobs_of_node.items()}
        pilot.cluster.view = replace(view, queue=replace(view.queue, jobs=jobs), jobs_of_node=held)
        tell(pilot.cluster, FleetReading({name: hostile(watch, text) for name, watch in fleet.nodes.items()}))
        await pilot.settle()
        for keys in (["w"], ["c"], ["z"], ["t", "G"], ["z", "enter"], ["G"], ["escape", "e"]):
            await pilot.press(*keys)
            shown = pilot.text()
            assert not CONTROL & set(shown), keys
            assert max(map(cell_len, pilot.lines())) <= 120
        assert pilot.app.is_running


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_details_of_a_gpu(size: tuple[int, int]) -> None:
    async with gpus(size) as (pilot, _):
        await pilot.press("t", "enter")
        assert_golden(f"detail-gpu-{size[0]}x{size[1]}", pilot.text())


async def test_the_worst_gpu_is_under_the_cursor_whichever_node_answers_first_until_somebody_moves_it() -> None:
    async with cockpit((80, 24)) as pilot:
        await pilot.read()
        fleet = busy_fleet(pilot.cluster)
        first = {name: watch for name, watch in fleet.nodes.items() if name in ("gpu-st-p5-5", "gpu-dy-p5-3")}
        tell(pilot.cluster, replace(fleet, nodes=first))
        await pilot.press("3")
        tell(pilot.cluster, fleet)
        await pilot.settle()
        table = pilot.app.cockpit.pane
        assert table.cursor_key == "gpu-st-p5-2/5"
        assert table.state.top == 0
        await pilot.press("j")
        assert table.cursor_key == "gpu-st-p5-3/1"
        well = {name: watch for name, watch in fleet.nodes.items() if name != "gpu-st-p5-2"}
        tell(pilot.cluster, replace(fleet, nodes=well))
        await pilot.settle()
        assert table.cursor_key == "gpu-st-p5-3/1"


async def test_the_heatmap_follows_the_size_and_tells_silence_also_when_nothing_new_comes() -> None:
    async with gpus((120, 40)) as (pilot, _):
        heat = pilot.app.cockpit.query_one("#heat", Heatmap)
        high = heat.size.height
        await pilot.resize(120, 20)
        low = heat.size.height
        await pilot.resize(120, 40)
        assert (low < high, heat.size.height) == (True, high)
        assert not all(row.stale for row in heat.state.rows)
        await pilot.tick(60)
        pilot.app.cockpit.on_changed()  # some other source has news
        assert all(row.stale for row in heat.state.rows)
