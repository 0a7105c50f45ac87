"""What somebody sees first in the demo's scenarios: real SSH, real probes, the whole app."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from cockpit.config_file import load_config
from cockpit.demo.cluster import DemoCluster
from tests.screens.helpers import screen_lines

DEADLINE_S = 60.0
SOON_S = 16.0  # four samples; in place of a minute or more, which a test should not wait


@pytest.mark.parametrize(
    ("scenario", "first"),
    [
        ("hang", r"✖ job \d+ +looks hung: 31 of its 32 GPUs spin"),
        ("hot-gpu", r"▲ gpu-st-p5-\d+ GPU 3 +91 °C"),
        ("xid", r"[▲✖] gpu-st-p5-\d+ GPU \d +(Xid 63|GPU is lost|Xid 79)"),
        ("idle", r"▲ job \d+ +holds \d+ GPUs and uses none"),
    ],
)
async def test_the_first_line_of_the_overview_names_the_trouble(
    scenario: str, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with DemoCluster(scenario=scenario) as path:
        config = load_config(path)
        quick = replace(config, rules=replace(config.rules, gpu_hang_for_s=SOON_S, gpu_idle_for_s=SOON_S))
        clusters = Clusters.of_config(quick, "demo", read_only=False)
        app = CockpitApp(clusters)
        try:
            async with app.run_test(size=(120, 40), notifications=True):
                until = time.monotonic() + DEADLINE_S
                while not re.search(first, (lines := screen_lines(app))[4]):
                    assert time.monotonic() < until, "\n".join(lines)
                    await asyncio.sleep(0.2)
        finally:
            clusters.stop()
