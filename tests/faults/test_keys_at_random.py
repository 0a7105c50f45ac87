"""Keys, pastes, resizes, answers and outages in any order: nothing that somebody may press ends the cockpit."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config import ClusterConfig
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.gpus import GPUS
from cockpit.text import printable
from screens.key_table import KEYS
from tests.screens.helpers import screen_text
from tests.screens.test_app import HOSTILE
from tests.still import StillHost, still_cluster
from tests.still_gpus import busy_fleet, tell

STEPS = 60
SIZES = [(80, 24), (40, 12), (20, 5), (1, 1), (120, 40), (200, 60)]
# What leaves the cockpit, or hands the terminal to another program.
LEFT_OUT = ("app.quit", "subject.ssh", "output.pager")
LEAVING = ("q", "ctrl+q", "s", "b")
TYPED = ("node p5", "job 482", "clusters", "theme light", "user maria", "[[/]]", "state:down")
NAMES = {" ": "space", "/": "slash", ":": "colon", "[": "left_square_bracket", "]": "right_square_bracket"}
CLUSTERS = ("prod", "[/]other")


class Monkey:
    """One app over two clusters that stand still, and somebody who presses anything."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.heads: dict[str, StillHost] = {}
        self.app = CockpitApp(Clusters(CLUSTERS, CLUSTERS[0], self._make))
        keys = [key for line in KEYS if line.id not in LEFT_OUT for key in line.keys.split(",")]
        usual = ["enter", "escape"] * 8 + [
            "tab",
            "colon",
            "slash",
            "pageup",
            "1",
            "2",
            "3",
            "4",
            "e",
            "o",
            "Y",
            "a",
        ] * 2
        self.keys = [key for key in (*keys, *usual) if key not in LEAVING]
        self.log: list[object] = []

    def _make(self, name: str) -> Cluster:
        cluster, self.heads[name], _ = still_cluster(config=ClusterConfig(name))
        cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
        cluster.store.declare(GPUS, 1.0)
        return cluster

    async def step(self, pilot: Pilot[int]) -> None:
        what = self.chance.choices(["keys", "burst", "read", "resize", "paste", "type"], [70, 10, 5, 3, 3, 5])[0]
        words: object = what
        if what == "read":
            await self._read()
        elif what == "resize":
            words = size = self.chance.choice(SIZES)
            await pilot.resize_terminal(*size)
        elif what == "burst":  # faster than screens open and close
            words = pressed = [self.chance.choice(self.keys) for _ in range(2)] * 2
            for key in pressed:
                self.app.post_message(events.Key(key, key if len(key) == 1 else None))
        elif what == "paste":
            words = text = self.chance.choice(HOSTILE)
            (self.app.focused or self.app.screen).post_message(events.Paste(text))
        else:
            text = self.chance.choice(TYPED) if what == "type" else ""
            keys = [self.chance.choice(self.keys) for _ in range(self.chance.choice([1, 1, 2, 4]))]
            words = pressed = ["colon", *(NAMES.get(char, char) for char in text)] if text else keys
            await pilot.press(*pressed)
        self.log.append(words)
        await pilot.pause()

    async def _read(self) -> None:
        cluster = self.app.cockpit.cluster
        why = printable(self.chance.choice(HOSTILE))
        fault = FaultError(Fault(FaultKind.UNREACHABLE, why, why, why)) if self.chance.random() < 0.3 else None
        self.heads[cluster.config.name].fault = fault
        await asyncio.to_thread(cluster.read_once)
        if cluster.view.nodes:
            tell(cluster, busy_fleet(cluster))
        self.app.cockpit.on_changed()


@pytest.mark.parametrize("seed", [2, 3, 4])
async def test_nothing_that_is_pressed_ends_the_cockpit(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkey = Monkey(seed)
    async with monkey.app.run_test(size=(120, 40), notifications=True) as pilot:
        await monkey._read()
        for _ in range(STEPS):
            await monkey.step(pilot)
            assert monkey.app.is_running, monkey.log[-12:]
            assert not {"\x1b", "\x07", "\x1f", "\u202e"} & set(screen_text(monkey.app)), monkey.log[-12:]
