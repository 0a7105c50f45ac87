"""The first thing drawn: whose cockpit this is, while the rest is loaded. What is typed meanwhile is not lost."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from screens.key_line import QUIT, Key

STARTING = "starting"


def bound(key: Key) -> Binding:
    """A line of the key table as Textual wants it."""
    return Binding(
        key.keys, key.action, key.title, show=bool(key.footer), tooltip=key.help, id=key.id, priority=key.first
    )


class StartScreen(Screen[None]):
    """It lies below the clusters' screens for ever, and is in front only until the first of them is there."""

    DEFAULT_CSS = "StartScreen Static { height: 1; }"

    def __init__(self, cluster: str) -> None:
        super().__init__()
        self._cluster = cluster
        self.typed: list[events.Key] = []

    def compose(self) -> ComposeResult:
        yield Static(Content(f" {self._cluster} "), classes="bright")
        yield Static(Content(f" {STARTING}"))

    async def on_key(self, event: events.Key) -> None:
        """Keep it for the cluster's screen; what leaves does so now."""
        if event.key not in QUIT.keys.split(","):
            self.typed.append(event)
            event.stop()
