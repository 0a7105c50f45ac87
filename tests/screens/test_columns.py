"""`W`: which columns a table shows, and in which order; at once, kept, and as the config has it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from cockpit.app import CockpitApp
from cockpit.clusters import Clusters
from screens.column_choice import Choice
from screens.column_chooser import ColumnsScreen
from screens.lineup import LineupScreen
from screens.pane import TablePane
from tests.screens.golden import assert_golden
from tests.screens.helpers import screen_text
from tests.screens.test_app import HOSTILE, SIZES, Pilot, cockpit
from tests.screens.test_hostile_walk import BAD, poison
from tests.screens.test_lineup import three
from tests.screens.test_remembered import app, kept, until
from tests.still import still_cluster


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("screens.remembered.EVERY_S", 0.05)


def shown(pilot: Pilot, name: str = "pane-nodes") -> list[str]:
    """The columns on the screen from left to right."""
    table = pilot.app.cockpit.query_one(f"#{name}", TablePane)
    return [slot.column.id for slot in table.canvas.layout.slots]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_golden_of_the_chooser(size: tuple[int, int]) -> None:
    async with cockpit(size) as pilot:
        await pilot.read()
        await pilot.tick(0)  # the last line is that of a node
        await pilot.press("W", "j", "j", "space")
        await pilot.tick(0)  # the last line is as of now, however long the keys took
        assert_golden(f"columns-{size[0]}x{size[1]}", pilot.text())


async def test_hiding_showing_and_moving_take_effect_at_once() -> None:
    async with cockpit((160, 40)) as pilot:
        await pilot.read()
        before = shown(pilot)
        assert before[:4] == ["node", "state", "queue", "gpus"]
        await pilot.press("W", "space")
        assert shown(pilot) == [name for name in before if name != "state"]
        await pilot.press("space", "J", "J")
        assert shown(pilot)[:4] == ["node", "queue", "gpus", "state"]
        await pilot.press("shift+up", "K", "K")
        assert shown(pilot)[:3] == ["node", "state", "queue"]
        await pilot.press("G", "space", "escape")
        assert shown(pilot)[-1] == "comment"
        assert not isinstance(pilot.app.screen, ColumnsScreen)


@pytest.mark.parametrize("key", ["0", "backspace"])
async def test_the_usual_columns_come_back(key: str) -> None:
    async with cockpit((160, 40)) as pilot:
        await pilot.read()
        before = shown(pilot)
        await pilot.press("W", "space", "j", "J")
        assert shown(pilot) != before
        await pilot.press(key, "enter")
        assert shown(pilot) == before
        assert pilot.app.cockpit.pane.choice is None


async def test_the_name_of_the_row_stays() -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.read()
        before = shown(pilot)
        await pilot.press("W", "g", "space", "J")
        assert shown(pilot) == before
        assert "always" in pilot.text()


async def test_a_hidden_column_can_be_sorted_by_and_the_title_says_so() -> None:
    async with cockpit((160, 40)) as pilot:
        await pilot.read()
        assert pilot.app.cockpit.pane.sort[0] == "state"
        await pilot.press("W", "space", "escape")
        assert pilot.app.cockpit.pane.sort[0] == "state"
        assert "sort state (hidden) ↑" in pilot.text()
        await pilot.press("I")
        assert "sort state (hidden) ↓" in pilot.text()
        await pilot.press("greater_than_sign")
        assert "(hidden)" not in pilot.text()


async def test_w_shows_the_hidden_ones_for_once_and_choosing_leaves_it() -> None:
    async with cockpit((200, 40)) as pilot:
        await pilot.read()
        await pilot.press("W", "space", "escape")
        assert "state" not in shown(pilot)
        await pilot.press("w")
        assert "state" in shown(pilot)
        await pilot.press("W", "j", "space")
        assert not pilot.app.cockpit.pane.canvas.wide
        assert "queue" not in shown(pilot)


async def test_what_is_chosen_and_has_no_room_is_said() -> None:
    async with cockpit((80, 24)) as pilot:
        await pilot.read()
        await pilot.press("W", "G", "space")
        assert "no room" in pilot.text()
        assert shown(pilot)[:2] == ["node", "state"]


async def test_every_table_has_a_chooser_and_keeps_its_own_choice() -> None:
    async with cockpit((160, 40)) as pilot:
        await pilot.read()
        for pane in "123456789":
            await pilot.press(pane, "W")
            assert isinstance(pilot.app.screen, ColumnsScreen), pane
            await pilot.press("space", "J", "escape")
            assert pilot.app.cockpit.pane.choice is not None
        choices = {pane.id: pane.choice for pane in pilot.app.cockpit.query(TablePane) if pane.choice}
        assert len(choices) == 9


async def test_the_palette_finds_it() -> None:
    async with cockpit((120, 40)) as pilot:
        await pilot.read()
        await pilot.press("colon", *"columns", "enter")
        assert isinstance(pilot.app.screen, ColumnsScreen)


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_hostile_rows_and_small_terminals(size: tuple[int, int]) -> None:
    async with cockpit(size, pane="4") as pilot:
        poison(pilot)
        await pilot.read()
        for key in ("W", "G", *["space", "K"] * 8, "g", "J", "0", "pagedown", "space", "escape"):
            await pilot.press(key)
            assert pilot.app.is_running
            assert not BAD & set(pilot.text()), f"after {key}"
        assert not isinstance(pilot.app.screen, ColumnsScreen)


async def test_the_choice_comes_back_with_remember_and_only_with_it() -> None:
    first = app()
    name = first.clusters.first
    async with first.run_test(size=(120, 30)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.screen.query("#pane-nodes.-restored"))
        await pilot.press("W", "space", "j", "J", "escape")
        await until(pilot, lambda: "columns" in kept(name).tables.get("pane-nodes", {}))
        chosen = first.cockpit.pane.choice
        await pilot.press("W", "pagedown")
        await pilot.pause()
        assert "kept for the next start" in screen_text(first)
    second = app()
    async with second.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: pilot.app.screen.query("#pane-nodes.-restored"))
        assert second.cockpit.pane.choice == chosen
        await pilot.press("W", "0", "escape")
        await until(pilot, lambda: "columns" not in kept(name).tables["pane-nodes"])
    third = app(remember=False)
    async with third.run_test(size=(120, 30)) as pilot:
        await pilot.press("2", "W")
        await pilot.pause()
        assert "until you quit" in screen_text(third)


async def test_the_config_s_columns_are_the_usual_ones_but_not_of_the_overview_s_panel() -> None:
    cluster, _, _ = still_cluster()
    cluster.start = lambda *, gpus=True: None  # type: ignore[method-assign]
    app = CockpitApp(Clusters.only(cluster))
    app.columns_of_user = {"nodes": Choice(("node", "by", "reason"), only=True)}
    async with app.run_test(size=(160, 40)) as pilot:
        table = app.cockpit.query_one("#overview-nodes", TablePane)
        assert "state" in {column.id for column in table.columns if not column.wide}
        await pilot.press("2")
        cluster.read_once()
        await pilot.pause()
        pane = app.cockpit.pane
        assert [slot.column.id for slot in pane.canvas.layout.slots] == ["node", "by", "reason"]
        await pilot.press("W", "j", "space", "escape")
        await pilot.pause()
        assert [slot.column.id for slot in pane.canvas.layout.slots] == ["node", "by"]
        await pilot.press("W", "0", "escape")
        await pilot.pause()
        assert [slot.column.id for slot in pane.canvas.layout.slots] == ["node", "by", "reason"]


async def test_exports_hold_every_column_in_the_order_of_the_screen(tmp_path: Path) -> None:
    async with cockpit((160, 40)) as pilot:
        await pilot.read()
        await pilot.press("W", "space", "j", "J", "escape")
        await pilot.press("x")
        await until(pilot._pilot, lambda: "exported" in pilot.text())  # type: ignore[arg-type]
        path = next((tmp_path / "cockpit" / "exports").glob("*.csv"))
        with path.open(newline="", encoding="utf-8") as file:
            titles = next(csv.reader(file))
        assert titles[:4] == ["node", "state", "gpus", "queue"]
        assert "comment" in titles


async def test_hostile_checks_of_a_site_are_offered_as_text() -> None:
    """A site's own check is the one column whose name somebody else writes."""
    from screens.grid_model import Column

    async with cockpit((80, 24)) as pilot:
        await pilot.read()
        table = pilot.app.cockpit.pane
        more = [Column[Any](f"own.{number}", text, lambda row: "") for number, text in enumerate(HOSTILE)]
        table.set_columns([*table.columns, *more])
        await pilot.press("W", "G", *["K", "space"] * len(HOSTILE))
        assert not BAD & set(pilot.text())


async def test_the_line_up_of_clusters_keeps_its_columns_from_one_opening_to_the_next() -> None:
    async with three() as (setup, pilot):
        setup.app.show_lineup()
        await pilot.pause()
        await pilot.press("W", "space", "escape")
        await pilot.pause()
        lineup = setup.app.screen
        assert isinstance(lineup, LineupScreen)
        assert lineup.choice == Choice(hidden=frozenset({"worst"}))
        assert "worst problem" not in screen_text(setup.app).split("\n")[1]  # the title says that it sorts by it
        await pilot.press("escape")
        await pilot.pause()
        setup.app.show_lineup()
        await pilot.pause()
        assert "worst problem" not in screen_text(setup.app).split("\n")[1]  # the title says that it sorts by it
