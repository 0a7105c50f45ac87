"""What every key does, from the key table."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from screens.content import styled
from screens.keys import KEYS, SCOPES, bindings, shown_keys


class HelpScreen(ModalScreen[None]):
    """Every key by scope; any of esc, q and ? closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "close"),
        *bindings("text"),
    ]

    def compose(self) -> ComposeResult:
        box = VerticalScroll(Static(help_text()), id="help")
        box.border_title = styled([(" keys · esc closes ", "bright")])
        yield box

    def on_mount(self) -> None:
        self.query_one("#help").focus()


def help_text() -> Content:
    """One line a key, headed by where it works."""
    lines = []
    for scope, title in SCOPES.items():
        lines += [styled([]), styled([(title, "bright")])]
        for key in KEYS:
            if key.scope == scope:
                lines.append(styled([(f"  {shown_keys(key.keys):<18}", "accent"), key.help]))
    return Content("\n").join(lines[1:])
