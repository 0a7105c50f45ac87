"""Hostile text through every place that shows it: each pane, details, explanation, output, menus, palette, help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.screens.test_app import HOSTILE, Pilot, cockpit
from tests.still_gpus import busy_fleet, tell

BAD = {"\x1b", "\x07", "\x1e", "\x1f", "\x9b", "\u202e", "\u202c", "\udce9"}
# From a line: its details, its explanation, its output, what can be done with it, what can be copied of it; and back.
EACH_LINE = ("enter", "escape", "e", "escape", "o", "escape", "a", "escape", "Y", "escape")
IN_TEXTS = ("enter", "tab", "enter", "e", "Y", "escape", "a", "escape", "slash", *"[/]", "enter", "n", "w")


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


async def press(pilot: Pilot, *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        assert pilot.app.is_running
        assert not BAD & set(pilot.text()), f"after {key}"


def poison(pilot: Pilot) -> None:
    """Names, comments, users' words and reasons of the simulated Slurm."""
    sim = pilot.head.sim
    for number, job in enumerate(sim.jobs.values()):
        text = HOSTILE[number % len(HOSTILE)]
        job.ask = replace(job.ask, name=text, comment=text)
    for number, node in enumerate(sim.nodes.values()):
        node.reason = HOSTILE[number % len(HOSTILE)]


@pytest.mark.parametrize(
    ("pane", "size"),
    [("1", (160, 48)), ("2", (80, 24)), ("3", (120, 40)), ("4", (80, 24))],
    ids=lambda value: str(value),
)
async def test_hostile_names_and_reasons_stay_text_everywhere(pane: str, size: tuple[int, int]) -> None:
    async with cockpit(size, pane=pane) as pilot:
        poison(pilot)
        await pilot.read()
        tell(pilot.cluster, busy_fleet(pilot.cluster))
        await pilot.settle()
        await press(pilot, *EACH_LINE, "j", *EACH_LINE)
        await press(pilot, *IN_TEXTS, "question_mark", "escape", "escape", "escape", pane)
        await press(pilot, "y", "x", "colon", *"[/]", "escape")


async def test_hostile_problems_stay_text_in_the_overview_and_in_the_note() -> None:
    async with cockpit((120, 40), pane="1") as pilot:
        poison(pilot)
        await pilot.read()
        found = pilot.cluster.view.problems[0]
        bad = [
            replace(found, key=f"node:{number}", subject=text, title=text, next_step=text, evidence=text)
            for number, text in enumerate(HOSTILE)
        ]
        pilot.cluster.view = replace(pilot.cluster.view, problems=tuple(bad))
        pilot.app.cockpit.on_changed()
        await pilot.settle()
        await press(pilot, "g", "e", "escape", "2", "1", "g")
        for _ in bad:
            await press(pilot, "enter", "escape", "i", "escape", "j")
