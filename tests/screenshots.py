"""Makes the pictures of README and docs: the app itself over the demo cluster, `python -m tests.screenshots FOLDER`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from cockpit.config_file import load_config
from cockpit.demo.cluster import DemoCluster
from screens.screenshot import take
from tests.screens.helpers import screen_text

SIZE = (120, 36)
DEADLINE_S = 120.0
MOST_BYTES = 300_000


@dataclass(frozen=True)
class Shot:
    """A picture: the keys from where the one before left off, and what must stand on the screen."""

    name: str
    keys: Sequence[str]
    shows: str


SHOTS = {
    "hang": (
        Shot("overview", (), r"✖ job \d+ +looks hung"),
        Shot("job", ("g", "enter"), r"rank \d+  pid \d+"),
        Shot("diagnosis", ("H",), r"(?s)\A(?!.*more answers come).*HUNG"),
        Shot("output", ("escape", "o", "f"), r"a collective operation timed out"),
    ),
    "busy": (
        Shot("gpus", ("3",), r"8 no value"),
        Shot("explain", ("4", "slash", *"48229", "enter", "e"), r"asks for \d+ GPUs on \d+ nodes"),
        Shot("palette", ("1", "colon", *"node p5-6"), r"◆ node gpu-st-p5-6"),
    ),
}


async def wait_for(app: CockpitApp, pilot: Pilot[int], shows: str) -> None:
    """Until it stands there, and a moment longer."""
    until = time.monotonic() + DEADLINE_S
    while not re.search(shows, screen_text(app)):
        if time.monotonic() > until:
            raise SystemExit(f"{shows!r} never came:\n{screen_text(app)}")
        await asyncio.sleep(0.2)
    await asyncio.sleep(1.5)
    await pilot.pause()


async def take_all(scenario: str, shots: Sequence[Shot], folder: Path) -> None:
    """Every picture of one scenario."""
    with DemoCluster(scenario=scenario) as path:
        clusters = Clusters.of_config(load_config(path), "demo", read_only=False)
        app = CockpitApp(clusters)
        try:
            async with app.run_test(size=SIZE) as pilot:
                for shot in shots:
                    await pilot.press(*shot.keys)
                    await wait_for(app, pilot, shot.shows)
                    svg = take(app).svg.encode()
                    if len(svg) > MOST_BYTES:
                        raise SystemExit(f"{shot.name} is {len(svg)} bytes")
                    (folder / f"{shot.name}.svg").write_bytes(svg)
                    sys.stdout.write(f"{folder / shot.name}.svg {len(svg)} bytes\n")
        finally:
            clusters.stop()


def main() -> None:
    """All pictures, into the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        for scenario, shots in SHOTS.items():
            asyncio.run(take_all(scenario, shots, folder))


if __name__ == "__main__":
    main()
