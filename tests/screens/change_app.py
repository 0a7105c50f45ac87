"""The app over a still cluster that may be changed: dialogs without their pauses, and what went over the wire."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config import ClusterConfig
from screens import ask_dialog, confirm, guard, plan_dialog, undoing
from screens.plan_dialog import PlanDialog
from screens.run_view import RunView
from tests.screens.helpers import Driven
from tests.still import StillClock, StillHost, still_cluster
from tests.unit.action_kit import is_write


def without_pauses(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    """Dialogs hear at once, and every key is a hand's; the record goes to a folder of the test's own."""
    for module in (guard, plan_dialog, ask_dialog):
        monkeypatch.setattr(module, "SETTLE_S", 0.01)
    monkeypatch.setattr(guard, "BURST_S", 0.0)
    monkeypatch.setattr(undoing, "NEWS_S", 0.0)  # the pollers stand still
    monkeypatch.setattr(confirm, "BURST_S", 0.005)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("SUDO_USER", "maria")
    monkeypatch.setenv("TZ", "UTC")


class Changed(Driven):
    """The running app, and what it did."""

    app: CockpitApp
    pilot: Pilot[int]

    def __init__(
        self, app: CockpitApp, pilot: Pilot[int], cluster: Cluster, head: StillHost, clock: StillClock
    ) -> None:
        self.app, self.pilot, self.cluster, self.head, self.clock = app, pilot, cluster, head, clock

    async def planned(self) -> PlanDialog:
        """The dialog with a plan, or with the words for why there is none, that hears keys."""
        await self.until(lambda: isinstance(self.app.screen, PlanDialog) and "planning …" not in self.text())
        dialog = self.app.screen
        assert isinstance(dialog, PlanDialog)
        await self.until(lambda: dialog.focused is not None or "cannot be done" in self.text())
        return dialog

    async def ended(self) -> RunView:
        """The view of a run that has ended; what needs time in Slurm gets it."""
        for _ in range(100):
            if isinstance(self.app.screen, RunView) and self.app.screen.run.watch_at is not None:
                await self.pilot.pause(0.05)
                if self.app.screen.run.result is None:
                    self.clock.time += 5
        await self.until(lambda: isinstance(self.app.screen, RunView) and self.app.screen.run.result is not None)
        view = self.app.screen
        assert isinstance(view, RunView)
        view.show_run()
        await self.pilot.pause()
        return view

    async def read(self) -> None:
        """Poll everything once."""
        self.cluster.read_once()
        await self.pilot.pause()

    def said(self) -> str:
        """The words on the screen in one line, whatever they are framed by and wherever they break."""
        return " ".join(re.sub(r"[─│┌┐└┘┃━┏┓┗┛▌▐▊▎]", " ", self.text()).split())

    @property
    def writes(self) -> list[Sequence[str]]:
        """Every command that changes something and went over the wire."""
        return [argv for argv in self.head.calls if is_write(argv)]

    def cursor_to(self, key: str) -> None:
        """Put the cursor of the table in front on a row."""
        pane = self.app.cockpit.pane
        pane.state.move_to([pane.spec.key(row) for row in pane.visible_rows].index(key))
        pane.sync()


@asynccontextmanager
async def changing(
    size: tuple[int, int] = (80, 24),
    *,
    pane: str = "2",
    read_only: bool = False,
    forced: bool = False,
    **config: Any,
) -> AsyncIterator[Changed]:
    """The app on a cluster that was read once; `read_only` by its config, `forced` by --read-only."""
    cluster, head, clock = still_cluster(ClusterConfig("still", read_only=read_only, **config))
    cluster.lock.forced = forced
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    cluster.read_once()
    app = CockpitApp(Clusters.only(cluster))
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.press(pane)
        await pilot.pause()
        yield Changed(app, pilot, cluster, head, clock)
