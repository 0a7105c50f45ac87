"""Keys come faster than screens close: the second of two must neither end the cockpit nor close what lies beneath."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from tests.still import still_cluster

# What opens it, on pane 2, and what closes it.
DIALOGS = {
    "actions menu": ("a", "escape"),
    "actions menu, chosen": ("a", "enter"),
    "actions menu, by an entry's key": ("a", "e"),
    "copy menu": ("Y", "escape"),
    "copy menu, chosen": ("Y", "enter"),
    "help, by its own key": ("question_mark", "question_mark"),
    "help": ("question_mark", "escape"),
    "palette": ("colon", "escape"),
    "plan": ("D", "escape"),
}


@pytest.mark.parametrize("name", DIALOGS)
async def test_a_key_that_comes_twice_closes_once(name: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    cluster, _, _ = still_cluster()
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    app = CockpitApp(Clusters.only(cluster))
    opens, closes = DIALOGS[name]
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        cluster.read_once()
        app.cockpit.on_changed()
        await pilot.press("2")
        before = list(app.screen_stack)
        await pilot.press(opens)
        await pilot.pause(0.5)  # a plan takes no key in its first moment
        assert len(app.screen_stack) == len(before) + 1
        top = app.screen
        for _ in range(3):
            app.post_message(events.Key(closes, None))
        await pilot.pause()
        await pilot.pause()
        assert app.is_running
        assert app.screen_stack[: len(before)] == before
        assert top not in app.screen_stack


def test_every_screen_that_is_dismissed_closes_once() -> None:
    for path in (Path(__file__).parents[2] / "screens").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.name == "modal.py" or "ModalScreen" not in text, f"{path.name}: use screens.modal.Modal"
