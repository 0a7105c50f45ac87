"""The screen of a running app as plain text, which is what most tests of screens look at."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console
from textual.app import App


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
