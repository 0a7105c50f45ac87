"""A small app around one TextView."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.message import Message

import themes
from screens.filter_bar import FilterBar
from screens.lines import Line
from screens.text_view import TextView


class CountingText(TextView):
    """Notes which regions it had repainted; None stands for the whole widget."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.repainted: list[Region | None] = []

    def refresh(self, *regions: Region, **kwargs: Any) -> Any:
        """Note it and do it."""
        if hasattr(self, "repainted"):
            self.repainted += regions or [None]
        return super().refresh(*regions, **kwargs)


class TextApp(App[None]):
    """One text and the search line, in the cockpit's own look."""

    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, lines: Sequence[Line] = (), *, theme: str = themes.DEFAULT, ascii_only: bool = False) -> None:
        super().__init__(ansi_color=True if theme == "cockpit-ansi" else None)
        self.register_theme(themes.theme(theme))
        self.theme = theme
        self.ascii_only = ascii_only
        self.messages: list[Message] = []
        self.view = CountingText(title=[("a text", "bright")], id="text")
        self.view.show(lines)

    def compose(self) -> ComposeResult:
        """The text over the search line."""
        yield self.view
        yield FilterBar()

    def on_mount(self) -> None:
        """Keys go to the text."""
        self.view.focus()

    def on_copy_text(self, event: Message) -> None:
        """Note it."""
        self.messages.append(event)

    def on_follow_link(self, event: Message) -> None:
        """Note it."""
        self.messages.append(event)
