"""A change that runs: left alone, stopped, with hostile words in it; what quitting asks then."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from screens.ask_dialog import AskDialog
from screens.plan_dialog import PlanDialog
from screens.run_view import RunView
from tests.screens.change_app import changing, without_pauses
from tests.screens.test_app import HOSTILE


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_pauses(monkeypatch, tmp_path)


async def test_a_run_can_be_left_its_end_is_told_and_quitting_asks() -> None:
    goes_on = threading.Event()
    async with changing((120, 40)) as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        await at.planned()
        real = at.head.run

        def run(argv: object, **options: object) -> object:
            if "state=drain" in argv:  # type: ignore[operator]
                goes_on.wait(20)
            return real(argv, **options)  # type: ignore[arg-type]

        at.head.run = run  # type: ignore[method-assign, assignment]
        await at.press(*"hot", "enter", "1", "enter")
        await at.until(lambda: "sent, no answer yet" in at.text())
        await at.press("escape")
        assert "drain running 0/1, u shows it" in at.lines()[0]
        await at.press("q")
        await at.until(lambda: isinstance(at.app.screen, AskDialog))
        assert "0 of 1 command sent; the others will not be sent" in at.text()
        await at.press("n")
        await at.until(lambda: at.app.screen is at.app.cockpit)
        await at.press("u")
        await at.until(lambda: isinstance(at.app.screen, RunView))
        await at.press("escape")
        goes_on.set()
        await at.until(lambda: "done, seen in Slurm; u shows it" in at.told)
        assert "running" not in at.lines()[0].split("·")[0]
        await at.press("q")
        await at.until(lambda: not at.app.is_running)


async def test_stopping_says_what_was_done() -> None:
    goes_on = threading.Event()
    async with changing((120, 40)) as at:
        await at.press("asterisk", "D")
        await at.planned()
        real = at.head.run

        def run(argv: object, **options: object) -> object:
            if "state=drain" in argv:  # type: ignore[operator]
                goes_on.wait(20)
            return real(argv, **options)  # type: ignore[arg-type]

        at.head.run = run  # type: ignore[method-assign, assignment]
        dialog = at.app.screen
        assert isinstance(dialog, PlanDialog)
        count = str(dialog._plan.count if dialog._plan else 0)
        await at.press(*"hot", "enter", *count, "enter")
        await at.until(lambda: "sent, no answer yet" in at.text())
        await at.press("x")
        assert "stopping: what was sent still ends" in at.text()
        goes_on.set()
        view = await at.ended()
        assert view.run.result is not None
        assert view.run.result.outcome in ("ok", "cancelled")
        assert len(at.writes) == 1


@pytest.mark.parametrize("words", HOSTILE)
async def test_hostile_reasons_stay_text(words: str) -> None:
    async with changing((120, 40)) as at:
        at.cursor_to("gpu-st-p5-3")
        await at.press("D")
        dialog = await at.planned()
        dialog.query_one("#reason").value = words.encode("utf-8", "replace").decode()  # type: ignore[attr-defined]
        await at.pilot.pause()
        await at.press("enter", "1", "enter")
        await at.ended()
        text = at.text()
        await at.press("escape", "9")
        await at.until(lambda: "drain" in at.text())
        await at.press("enter")
        text += at.text()
        assert not [c for c in text if ord(c) < 32 and c != "\n"]
        assert "\x9b" not in text
        assert at.app.is_running


async def test_hostile_names_of_jobs_stay_text_in_a_plan() -> None:
    async with changing((160, 48), pane="4") as at:
        for job, name in zip(at.head.sim.jobs.values(), HOSTILE, strict=False):
            job.ask = replace(job.ask, name=name, comment=name)
        await at.read()
        await at.press("asterisk", "K")
        await at.planned()
        text = at.text()
        assert not [c for c in text if ord(c) < 32 and c != "\n"]
        assert "the cluster's name, to do it:" in text
        await at.press("pagedown", "down", "pageup", "escape")
        assert at.writes == []
