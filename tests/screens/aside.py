"""A program for tests of ssh_shell in a real terminal: it draws all the time, and `s` steps aside for argv."""

from __future__ import annotations

import sys
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from screens.ssh_shell import run_aside


class AsideApp(App[None]):
    """Counts 50 times a second, so that a screen that cannot be written to is noticed soon."""

    BINDINGS: ClassVar[list[BindingType]] = [("s", "aside"), ("q", "quit")]
    ENABLE_COMMAND_PALETTE = False

    def compose(self) -> ComposeResult:
        yield Static("", id="ticks")
        yield Static("never left", id="told")

    def on_mount(self) -> None:
        """Begin to count."""
        self.ticks = 0
        self.set_interval(0.02, self.tick)

    def tick(self) -> None:
        """Draw something new."""
        self.ticks += 1
        self.query_one("#ticks", Static).update(f"ticks {self.ticks}")

    def action_aside(self) -> None:
        """Step aside, and say how it ended and how far the count has come meanwhile."""
        self.run_worker(self.aside())

    async def aside(self) -> None:
        """The same, awaited."""
        before = self.ticks
        rc = await run_aside(self, sys.argv[1:], "test")
        went_on = "went on" if self.ticks > before + 40 else "stood still"
        self.query_one("#told", Static).update(f"back with {rc}, the count {went_on}")


if __name__ == "__main__":
    AsideApp().run()
