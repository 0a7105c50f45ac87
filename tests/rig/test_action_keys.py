"""Changes through the keys of the cockpit on a real Slurm; what is true afterwards is asked of scontrol and squeue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.cluster import Cluster
from cockpit.clusters import Clusters
from cockpit.config_file import load_config
from cockpit.formats.hostlist import expand
from screens.choice import ChoiceMenu
from screens.plan_dialog import PlanDialog
from screens.run_view import RunView
from tests.rig import Rig
from tests.screens.change_app import without_pauses
from tests.screens.helpers import screen_text

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_pauses(monkeypatch, tmp_path)
    monkeypatch.setattr("screens.undoing.NEWS_S", 10.0)  # here the pollers poll


def slurm(rig: Rig, *words: str) -> str:
    return rig.slurm(*words).stdout.decode(errors="replace")


def state(rig: Rig, node: str) -> str:
    return slurm(rig, "sinfo", "-h", "-N", "-n", node, "-O", "StateComplete:0").split("\n")[0].strip()


def job_state(rig: Rig, job: int) -> str:
    return slurm(rig, "squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T|%r").strip()


def until(true: Callable[[], object], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, "did not come true in time"
        time.sleep(0.1)


class Hands:
    """Somebody at the keyboard of a cockpit that polls the rig every second."""

    def __init__(self, app: CockpitApp, pilot: Pilot[int], cluster: Cluster) -> None:
        self.app, self.pilot, self.cluster = app, pilot, cluster

    async def until(self, true: Callable[[], object], timeout_s: float = 60.0) -> None:
        end = time.monotonic() + timeout_s
        while not true():
            assert time.monotonic() < end, screen_text(self.app)
            await self.pilot.pause(0.02)
            await asyncio.sleep(0.02)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def go(self, pane: str, *rows: str) -> None:
        """To a pane, with those rows marked, or the cursor on the only one."""
        await self.press(pane)
        grid = self.app.cockpit.pane
        await self.until(lambda: set(rows) <= {grid.spec.key(row) for row in grid.visible_rows})
        grid.state.unmark()
        for row in rows:
            grid.state.move_to([grid.spec.key(one) for one in grid.visible_rows].index(row))
            if len(rows) > 1:
                grid.state.toggle_mark()
        grid.sync()

    async def planned(self) -> None:
        await self.until(lambda: isinstance(self.app.screen, PlanDialog) and "planning …" not in screen_text(self.app))
        await self.until(lambda: self.app.screen.focused is not None)

    async def done(self) -> str:
        """What came of it, once the cockpit has seen it, and back to the pane."""
        await self.until(lambda: isinstance(self.app.screen, RunView) and self.app.screen.run.result is not None)
        view = self.app.screen
        assert isinstance(view, RunView)
        result = view.run.result
        assert result is not None
        await self.press("escape")
        return f"{result.outcome}: {result.text} {' '.join(result.notes)}"


@asynccontextmanager
async def hands(rig: Rig, *, read_only: bool = False, **config: Any) -> AsyncIterator[Hands]:
    loaded = load_config(rig.config("keys.yaml", refresh={"slurm": 1}, **config))
    cluster = Cluster(next(iter(loaded.clusters.values())), read_only=read_only, watch_gpus=False)
    app = CockpitApp(Clusters.only(cluster))
    try:
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            there = Hands(app, pilot, cluster)
            await there.until(lambda: cluster.view.nodes and cluster.view.queue and cluster.view.site)
            yield there
    finally:
        cluster.stop()


async def test_drain_and_resume_and_undo(rig: Rig) -> None:
    async with hands(rig) as at:
        await at.go("2", "gpu-st-p5-1", "gpu-st-p5-2")
        await at.press("D")
        await at.planned()
        await at.press(*"rail 5 $(id)", "enter", "2", "enter")
        assert (await at.done()).startswith("ok")
        for node in ("gpu-st-p5-1", "gpu-st-p5-2"):
            assert state(rig, node) == "idle+cloud+drain"
            assert "maria: rail 5 $(id)" in slurm(rig, "scontrol", "show", "node", node)
        await at.press("u", "u")  # the run, then the way back
        await at.planned()
        await at.press("2", "enter")
        assert (await at.done()).startswith("ok")
        assert state(rig, "gpu-st-p5-1") == state(rig, "gpu-st-p5-2") == "idle+cloud"
        rig.slurm("scontrol", "update", "nodename=gpu-st-p5-3", "state=drain", "reason=by hand")
        await at.until(
            lambda: any(n.name == "gpu-st-p5-3" and n.state.has("drain") for n in at.cluster.view.nodes or ())
        )
        await at.go("2", "gpu-st-p5-3")
        await at.press("R")
        await at.planned()
        assert "by hand" in screen_text(at.app)
        await at.press("y")
        assert (await at.done()).startswith("ok")
        assert state(rig, "gpu-st-p5-3") == "idle+cloud"


async def test_scale_up_by_two_and_down_again(rig: Rig) -> None:
    until(lambda: all(state(rig, f"gpu-dy-p5-{n}").endswith("powered_down") for n in (1, 2)))
    async with hands(rig) as at:
        for count, wanted in (("6", "idle+cloud"), ("4", "idle+cloud+powered_down")):
            await at.go("2", "gpu-st-p5-1")
            await at.press("S")
            await at.until(lambda: isinstance(at.app.screen, ChoiceMenu | PlanDialog))
            if isinstance(at.app.screen, ChoiceMenu):
                names = [entry.command.id for entry in at.app.screen.entries]
                await at.press(str(names.index("gpu") + 1))
            await at.planned()
            await at.press(count, "enter")
            await at.until(lambda: "scale gpu to" in screen_text(at.app))
            await at.planned()
            await at.press("2", "enter")
            assert (await at.done()).startswith("ok")
            assert {state(rig, f"gpu-dy-p5-{n}") for n in (1, 2)} == {wanted}
            at.cluster.refresh()
            await at.until(partial(_is_up, at.cluster, int(count)))


def _is_up(cluster: Cluster, count: int) -> bool:
    nodes = [node for node in cluster.view.nodes or () if "gpu" in node.partitions]
    return count == sum(1 for node in nodes if not node.state.has("powered_down", "powering_down", "powering_up"))


async def test_hold_release_requeue_and_cancel(rig: Rig) -> None:
    job, other = (rig.submit("sleep 300", gpus=1) for _ in range(2))
    wait = rig.submit("sleep 300", gpus=1, begin="now+1hour")
    until(lambda: all(job_state(rig, each).startswith("RUNNING") for each in (job, other)))
    async with hands(rig) as at:
        queue: Callable[[], Sequence[Any]] = lambda: at.cluster.view.queue.jobs if at.cluster.view.queue else ()  # noqa: E731
        await at.until(lambda: len(queue()) == 3)
        await at.go("4", str(wait))
        await at.press("L")
        await at.planned()
        await at.press("y")
        assert (await at.done()).startswith("ok")
        assert "JobHeld" in job_state(rig, wait)
        await at.until(lambda: any("JobHeld" in each.reason for each in queue()))
        await at.press("L")
        await at.planned()
        await at.press("y")
        assert (await at.done()).startswith("ok")
        assert "Held" not in job_state(rig, wait)
        await at.go("4", str(job))
        await at.press("Q")
        await at.planned()
        assert "hurts 1 job" in screen_text(at.app)
        await at.press("1", "enter")
        assert (await at.done()).startswith("ok")
        assert "Restarts=1 " in slurm(rig, "scontrol", "show", "job", str(job))
        await at.go("4", str(other), str(wait))
        await at.press("K")
        await at.planned()
        await at.press("1", "enter")  # not what is asked for
        assert job_state(rig, other).startswith("RUNNING")
        await at.press("2", "enter")
        assert (await at.done()).startswith("ok")
        assert {job_state(rig, each).split("|")[0] for each in (other, wait)} <= {"CANCELLED", "COMPLETING"}


async def test_read_only_sends_nothing_by_any_key(rig: Rig) -> None:
    job = rig.submit("sleep 300", gpus=1)
    until(lambda: job_state(rig, job).startswith("RUNNING"))
    async with hands(rig, read_only=True) as at:
        sent: list[Sequence[str]] = []
        real = at.cluster.head.run

        def run(argv: Sequence[str], **options: Any) -> Any:
            sent.append(argv)
            return real(argv, **options)

        at.cluster.head.run = run  # type: ignore[method-assign]
        for pane in ("2", "4", "1"):
            await at.press(pane)
            for key in "DRBTSKQL":
                await at.press(key)
                assert at.app.screen is at.app.cockpit
        changing = ("update", "hold", "release", "requeue", "reboot", "create", "delete")
        assert not [argv for argv in sent if "scancel" in argv[0] or set(changing) & set(argv) or argv[0] == "sudo"]
    assert job_state(rig, job).startswith("RUNNING")
    assert {state(rig, node) for node in expand("gpu-st-p5-[1-4]")} <= {"idle+cloud", "mixed+cloud"}
