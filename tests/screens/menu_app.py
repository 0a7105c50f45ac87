"""A small app that opens palette and menus over the still cluster, and notes what they are dismissed with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

import themes
from cockpit.cluster import View
from screens.commands import Context
from tests.screens.helpers import screen_text
from tests.still import still_cluster


class MenuApp(App[None]):
    """Opens a screen at once; `results` are what the screens were dismissed with."""

    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, make: Callable[[], Screen[Any]]) -> None:
        super().__init__()
        for name in themes.THEMES:
            self.register_theme(themes.theme(name))
        self.theme = themes.DEFAULT
        self.make = make
        self.results: list[Any] = []

    def compose(self) -> ComposeResult:
        yield Static("below", id="below")

    async def on_mount(self) -> None:
        """Open it."""
        await self.open()

    async def open(self) -> None:
        """Open it (again)."""
        await self.push_screen(self.make(), self.results.append)

    def text(self) -> str:
        """The screen as it is now."""
        return screen_text(self)


@asynccontextmanager
async def opened(
    make: Callable[[], Screen[Any]], size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[MenuApp, Pilot[None]]]:
    """The app with that screen open."""
    app = MenuApp(make)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield app, pilot


def still_view(**simulation: Any) -> View:
    """What the still cluster shows after one read."""
    cluster, _, _ = still_cluster(**simulation)
    cluster.read_once()
    return cluster.view


def context(view: View | None = None, **changes: Any) -> Context:
    """A context over the still cluster."""
    return Context(view or still_view(), **changes)
