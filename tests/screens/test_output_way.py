"""The way to a job's output and back, on the screen of a cluster."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from cockpit.demo.jobs import SimJob
from cockpit.hosts.base import Completed
from screens.lines import Subject
from screens.output_view import OutputView
from tests.screens.helpers import screen_lines, screen_text
from tests.screens.output_app import until
from tests.unit.test_print_output import Demo


@asynccontextmanager
async def cockpit(folder: Path, scenario: str = "busy") -> AsyncIterator[tuple[CockpitApp, Pilot[int], Demo]]:
    """The app over the demo's Slurm with real files, with the queue read and in front."""
    demo = Demo(folder, scenario)
    demo.cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    app = CockpitApp(Clusters.only(demo.cluster))
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        demo.cluster.read_once()
        await pilot.press("4")
        await pilot.pause()
        yield app, pilot, demo


def subject_of(job: SimJob) -> Subject:
    return Subject("job", str(job.job_id))


def cursor_to(app: CockpitApp, job: SimJob) -> None:
    grid = app.cockpit.pane
    grid.state.move_to([grid.spec.key(row) for row in grid.visible_rows].index(str(job.job_id)))
    grid.sync()


def reading() -> bool:
    return any(thread.name == "output" for thread in threading.enumerate())


async def test_o_on_a_job_and_back(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as (app, pilot, demo):
        job = demo.head.sim.jobs[demo.job("safety-eval")]
        cursor_to(app, job)
        await pilot.press("o")
        await until(pilot, lambda: "| accuracy " in screen_text(app))
        assert f"{job.job_id} stdout" in screen_text(app)
        footer = screen_lines(app)[-1]
        assert "f first error" in footer
        assert "esc back" in footer
        await pilot.press("o")
        await until(pilot, lambda: "running: " in screen_text(app))
        assert f"{job.job_id} stderr" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: not reading())
        assert app.cockpit.pane.has_focus
        assert app.cockpit.pane.cursor_key == str(job.job_id)


async def test_from_the_details_and_back_to_them(tmp_path: Path) -> None:
    async with cockpit(tmp_path, "hang") as (app, pilot, demo):
        job = demo.head.sim.jobs[demo.job("llama3-405b-pretrain")]
        cursor_to(app, job)
        await pilot.press("enter", "o")
        await until(pilot, lambda: "Watchdog caught" in screen_text(app) or "watchdog" in screen_text(app))
        await pilot.press("f")
        await until(pilot, lambda: "a collective operation timed out" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: not reading())
        assert app.cockpit.in_detail
        assert app.cockpit.subject() == subject_of(job)


async def test_search_and_help_and_copy_work_there(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as (app, pilot, demo):
        cursor_to(app, demo.head.sim.jobs[demo.job("llama3-405b-pretrain")])
        await pilot.press("o")
        await until(pilot, lambda: "| loss " in screen_text(app))
        await pilot.press("slash", *"grad norm", "enter")
        await until(pilot, lambda: '"grad norm"' in screen_text(app))
        await pilot.press("escape")
        assert app.cockpit.query_one(OutputView).has_focus
        await pilot.press("y")
        assert "| loss " in app.clipboard
        await pilot.press("question_mark")
        assert "The first error in all of the file" in screen_text(app)
        await pilot.press("escape", "4")
        await until(pilot, lambda: not reading())


async def test_a_job_that_left_the_queue_keeps_its_output_on_the_way_back(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as (app, pilot, demo):
        job = demo.head.sim.jobs[demo.job("safety-eval")]
        cursor_to(app, job)
        await pilot.press("o")
        await until(pilot, lambda: "| accuracy " in screen_text(app))
        await app.cockpit.go(Subject("node", job.hosts[0]))
        await until(pilot, lambda: not reading())
        demo.head.answers["squeue"] = lambda argv: Completed(0, b"", b"", 0.01)
        demo.cluster.read_once()
        await pilot.press("escape")
        await until(pilot, lambda: "| accuracy " in screen_text(app))


async def test_why_there_is_none(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as (app, pilot, demo):
        cursor_to(app, demo.head.sim.jobs[demo.job("lr-search")])
        await pilot.press("o")
        await until(pilot, lambda: "has not started" in screen_text(app))
        assert app.cockpit.pane.has_focus
        await pilot.press("b", "2", "o")
        await until(pilot, lambda: "no job is behind this node" in screen_text(app))
