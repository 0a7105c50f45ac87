"""The user's keys in a running app: Textual does what the table and the config say."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.widgets import Input

from screens.filter_bar import FilterBar, FilterInput
from screens.keymap import Keymap
from screens.keys import bindings
from tests.screens.grid_app import GridApp, node_rows


class KeyedApp(GridApp):
    """A grid under the keys of everywhere; it notes what was asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app"), *bindings("subject")]

    def __init__(self, keymap: Keymap) -> None:
        super().__init__(node_rows(30))
        self.set_keymap(keymap.textual())
        self.asked: list[str] = []

    def action_refresh_now(self) -> None:
        """Note it."""
        self.asked.append("refresh")

    def action_pause(self) -> None:
        """Note it."""
        self.asked.append("pause")

    def action_palette(self) -> None:
        """Note it."""
        self.asked.append("palette")

    def action_ssh(self) -> None:
        """Note it."""
        self.asked.append("ssh")


async def test_remapped_keys_work_and_the_old_ones_do_not() -> None:
    app = KeyedApp(Keymap({"app.refresh": "f,ctrl+r", "grid.down": "n", "subject.ssh": "backslash"}))
    async with app.run_test() as pilot:
        await pilot.press("f", "ctrl+r", "r", "backslash", "s")
        assert app.asked == ["refresh", "refresh", "ssh"]
        await pilot.press("n", "n", "j", "down")
        assert app.grid.cursor_key == "n002"


async def test_swapped_keys_do_each_others_work() -> None:
    app = KeyedApp(Keymap({"app.refresh": "p", "app.pause": "r", "grid.mark": "v", "grid.range": "space"}))
    async with app.run_test() as pilot:
        await pilot.press("p", "r")
        assert app.asked == ["refresh", "pause"]
        await pilot.press("v")
        assert app.grid.marked_keys == ("n000",)


async def test_letters_stay_text_in_a_filter_whatever_they_are_mapped_to() -> None:
    app = KeyedApp(Keymap({"app.command": "semicolon,ctrl+g", "app.refresh": "f,ctrl+r", "app.quit": "X,ctrl+q"}))
    async with app.run_test() as pilot:
        app.query_one(FilterBar).open(app.grid)
        await pilot.press(*"f;X:r")
        assert app.query_one(FilterInput).value == "f;X:r"
        assert app.is_running
        await pilot.press("ctrl+p")
        assert app.asked == ["palette"]
        assert isinstance(app.focused, Input)
