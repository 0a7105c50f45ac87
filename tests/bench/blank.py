"""An empty Textual app, the measure for the cockpit's first paint and key times: `python -m tests.bench.blank`."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

READY = "ready"


class Blank(App[None]):
    """One line of text; `q` leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "quit")]
    ENABLE_COMMAND_PALETTE = False

    def compose(self) -> ComposeResult:
        """The line."""
        yield Static(Content(READY))


if __name__ == "__main__":
    Blank().run()
