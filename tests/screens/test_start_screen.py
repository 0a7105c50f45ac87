"""The first frame: it comes before everything is loaded, loses no key, and never holds anybody up."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from screens.start_screen import StartScreen
from tests.screens.helpers import screen_text
from tests.still import still_cluster

WAIT_S = 20.0
# What takes most of the loading; a start screen that needs one of them comes no sooner than everything else.
HEAVY = ("cockpit.cluster", "screens.cockpit_screen", "actions.table", "paramiko", "botocore")


class Slow:
    """The app over one cluster that is not loaded before `go`; `fault` is what the loading then fails with."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.go, self.started, self.fault = threading.Event(), threading.Event(), fault
        self.app = CockpitApp(Clusters(("[/]prod",), "[/]prod", self._make), staged=True)

    def _make(self, name: str) -> Cluster:
        assert self.go.wait(WAIT_S)
        if self.fault is not None:
            raise self.fault
        cluster, _, _ = still_cluster()
        cluster.start = lambda *, gpus=True: self.started.set()  # type: ignore[method-assign]
        return cluster

    async def run(self) -> None:
        async with self.app.run_test(size=(80, 24)) as pilot:
            await self.opened()
            await pilot.pause()

    async def opened(self) -> None:
        for _ in range(int(WAIT_S / 0.01)):
            if self.app.front is not None and self.app.screen is self.app.front:
                return
            await asyncio.sleep(0.01)
        raise TimeoutError


async def test_what_is_typed_while_it_loads_is_done_when_it_is_there() -> None:
    slow = Slow()
    async with slow.app.run_test(size=(80, 24)) as pilot:
        assert isinstance(slow.app.screen, StartScreen)
        assert screen_text(slow.app).startswith(" [/]prod\n starting\n")
        await pilot.press("4", "slash", "x", "p", "z")
        await pilot.pause()
        assert isinstance(slow.app.screen, StartScreen)
        slow.go.set()
        await slow.opened()
        await pilot.pause()
        assert slow.started.is_set()
        while not slow.app.cockpit.query("#pane-queue") or slow.app.cockpit.pane.filter_text != "xpz":
            await pilot.pause(0.01)  # a pane is built on its first visit
        assert slow.app.cockpit.front.id == "pane-queue"


async def test_it_can_be_left_while_it_loads() -> None:
    slow = Slow()
    async with slow.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
        await pilot.pause()
        assert not slow.app.is_running
    slow.go.set()


async def test_a_click_meanwhile_does_nothing() -> None:
    slow = Slow()
    async with slow.app.run_test(size=(80, 24)) as pilot:
        await pilot.click(offset=(3, 1))
        slow.go.set()
        await slow.opened()


async def test_what_fails_while_it_loads_is_not_hidden() -> None:
    slow = Slow(ModuleNotFoundError("no cockpit here"))
    slow.go.set()
    with pytest.raises(ModuleNotFoundError, match="no cockpit here"):
        await slow.run()


def test_the_first_frame_waits_for_nothing_heavy() -> None:
    program = f"import sys, cockpit.app, cockpit.cli; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout.strip() == "[]"
