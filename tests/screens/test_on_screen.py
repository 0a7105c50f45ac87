"""What is on the screen is what is dialled and watched first."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from screens.cockpit_screen import CockpitScreen
from screens.on_screen import nodes_on_screen
from tests.screens.test_app import Pilot, cockpit
from tests.still_gpus import busy_fleet, tell


def seen(pilot: Pilot) -> frozenset[str]:
    return nodes_on_screen(cast(CockpitScreen, pilot.app.screen))


async def test_nodes_scrolled_away_are_not_meant() -> None:
    async with cockpit((80, 12)) as pilot:
        await pilot.read()
        names = {node.name for node in pilot.cluster.view.nodes or ()}
        await pilot.press("2")
        top = seen(pilot)
        assert 0 < len(top) < len(names)
        assert all(name in pilot.text() for name in top)
        await pilot.press("G")
        assert seen(pilot) != top
        assert seen(pilot) <= names
        await pilot.press("enter")
        assert len(seen(pilot)) == 1
        await pilot.press("escape", "4")
        assert seen(pilot) == frozenset()


async def test_gpus_stand_for_their_nodes() -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.read()
        fleet = busy_fleet(pilot.cluster)
        tell(pilot.cluster, fleet)
        for key in ("3", "1"):
            await pilot.press(key)
            assert set(fleet.nodes) & seen(pilot)
            assert not any("/" in name for name in seen(pilot))


async def test_the_cluster_is_told_what_somebody_looks_at() -> None:
    async with cockpit((80, 12)) as pilot:
        await pilot.read()
        await pilot.press("2")
        looked: list[frozenset[str]] = []
        pilot.cluster.look_at = lambda nodes: looked.append(frozenset(nodes))  # type: ignore[method-assign]
        screen = cast(CockpitScreen, pilot.app.screen)
        screen.refresh_chrome()
        assert looked == [seen(pilot)]


async def test_a_node_with_something_wrong_is_never_let_go_for_another() -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.read()
        tell(pilot.cluster, busy_fleet(pilot.cluster))
        config = pilot.cluster.config
        pilot.cluster.config = replace(config, nodes=replace(config.nodes, max=2))
        pilot.cluster.look_at(["gpu-st-p5-1"])
        seen, held = pilot.cluster.streams._wishes
        assert seen == {"gpu-st-p5-1"}
        assert "gpu-st-p5-4" in held  # its GPU 2 has told an Xid
