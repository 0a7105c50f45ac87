"""The Friday shutdown and the Monday start in the demo: P, the typed name, and what EC2 itself then says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from cockpit.config_file import load_config
from cockpit.demo import aws, clustermgtd, sim
from cockpit.demo.cluster import DemoCluster
from cockpit.demo.machines import Power
from cockpit.demo.sim import Simulation
from tests.screens.helpers import screen_text

DEADLINE_S = 60.0
GUARD_S = 0.35  # for so long a dialog hears nothing


async def until(app: CockpitApp, seen: Callable[[str], bool]) -> str:
    end = time.monotonic() + DEADLINE_S
    while not seen(text := screen_text(app)):
        assert time.monotonic() < end, text
        await asyncio.sleep(0.05)
    return text


async def test_p_stops_the_idle_demo_until_ec2_has_nothing_and_starts_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto.server")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sim, "BOOT_S", (0.2, 0.4))
    with DemoCluster(nodes=6, scenario="idle") as path:
        clusters = Clusters.of_config(load_config(path), "demo", read_only=False)
        app = CockpitApp(clusters)
        try:
            async with app.run_test(size=(120, 40), notifications=True) as pilot:

                async def power() -> None:
                    await pilot.press("P")
                    await until(app, lambda text: "type demo, the cluster's name" in text)
                    await asyncio.sleep(GUARD_S)
                    await pilot.press(*"demo", "enter")

                await until(app, lambda text: "demo RUNNING" in text)
                reading = app.cockpit.cluster.view.aws
                assert reading is not None
                assert len([one for one in reading.instances.data or () if one.role == "compute"]) > 3
                await power()
                await until(app, lambda text: "0 instances running, 0 $/h compute" in text)
                await pilot.press("escape")
                await until(app, lambda text: "demo STOPPED" in text)
                reading = app.cockpit.cluster.view.aws
                assert reading is not None
                assert [one.role for one in reading.instances.data or () if one.alive] == ["head"]
                await power()
                await until(app, lambda text: "4 of 4 static nodes up" in text)
                await pilot.press("escape")
                await until(app, lambda text: "demo RUNNING" in text)
        finally:
            clusters.stop()


def test_the_daemon_follows_the_item_step_by_step() -> None:
    clock = 1_764_500_000.0
    demo = Simulation(scenario="idle", clock=lambda: clock)
    before = set(clustermgtd.instances(demo))
    assert clustermgtd.follow(demo, "RUNNING") == "RUNNING"
    assert set(clustermgtd.instances(demo)) == before
    assert clustermgtd.follow(demo, "STOP_REQUESTED") == "STOPPING"
    assert clustermgtd.instances(demo) == {}
    assert set(demo.queue_states.values()) == {"INACTIVE"}
    assert [job.job_id for job in demo.jobs.values() if job.state == "RUNNING"] == []
    assert clustermgtd.follow(demo, "STOPPING") == "STOPPED"
    assert clustermgtd.follow(demo, "START_REQUESTED") == "STARTING"
    clock += sim.SUSPEND_TIMEOUT_S + sim.BOOT_S[1] + 1  # what powered down before must not take them away again
    assert clustermgtd.follow(demo, "STARTING") == "RUNNING"
    static = [node for node in demo.nodes.values() if node.static]
    assert all(node.power is Power.UP for node in static)
    assert demo.queue_states == {}


def test_without_moto_the_demo_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws, "is_installed", lambda: False)
    demo = DemoCluster(scenario="idle")
    assert "gpu-cockpit[demo]" in demo.lacks
    with demo as path:
        assert load_config(path).clusters["demo"].region is None
    assert DemoCluster(scenario="busy").lacks == ""
