"""The screen of a running app as plain text, which is what most tests of screens look at."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

from rich.console import Console
from textual.app import App
from textual.pilot import Pilot

PATIENCE_S = 20.0


def screen_text(app: App[Any]) -> str:
    """What stands on the screen now, line by line without trailing blanks; toasts and modals included.

    Only here a private attribute of Textual is touched: the compositor, which is what reaches the terminal.
    """
    width, height = app.size
    console = Console(file=StringIO(), record=True, width=width, height=height, legacy_windows=False, color_system=None)
    console.print(app.screen._compositor)
    text = console.export_text(styles=False)
    return "\n".join(line.rstrip() for line in text.split("\n")[:height])


def screen_lines(app: App[Any]) -> list[str]:
    """The same, as a list of lines."""
    return screen_text(app).split("\n")


class Driven:
    """A running app under a test's hands."""

    app: App[Any]
    pilot: Pilot[Any]

    async def press(self, *keys: str) -> None:
        """Keys, and everything that follows from them at once."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, true: Callable[[], object]) -> None:
        """Let the app go on until it is true."""
        waited_s = 0.0
        while not true():
            assert waited_s < PATIENCE_S, self.text()
            await self.pilot.pause(0.01)
            waited_s += 0.01

    def text(self) -> str:
        """The screen as it is now."""
        return screen_text(self.app)

    def lines(self) -> list[str]:
        """The same, line by line."""
        return screen_lines(self.app)

    @property
    def told(self) -> str:
        """Every toast so far."""
        return "\n".join(str(note.message) for note in self.app._notifications)
