"""What every key does, from the key table."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from cockpit.models import Health
from screens.content import styled
from screens.keys import KEYS, SCOPES, bindings, shown_keys
from screens.lines import Line
from screens.wrap import wrap
from themes import STATE_TOKENS
from themes.glyphs import signs

_LEGEND = (
    ("filter", "words that must all occur · field:value · field:a,b any of them · !word or !field:value not"),
    ("queue", "one line is a job, or a whole array: `R 4  PD 20` are its tasks by state"),
    ("–", "not known; empty: there is none"),
)


class HelpScreen(ModalScreen[None]):
    """Every key by scope, and what the signs mean; any of esc, q and ? closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "close"),
        *bindings("text"),
    ]

    def compose(self) -> ComposeResult:
        box = VerticalScroll(Static(id="help-text"), id="help")
        box.border_title = styled([(" keys · esc closes ", "bright")])
        yield box

    def on_mount(self) -> None:
        """Fill in; the width is known by now."""
        width = min(self.app.size.width, 84) - 5
        text = Content("\n").join(styled(line) for line in wrap(help_lines(self.app), width))
        self.query_one("#help-text", Static).update(text)
        self.query_one("#help").focus()


def help_lines(app: object) -> list[Line]:
    """One line a key, headed by where it works; then the legend."""
    lines: list[Line] = []
    for scope, title in SCOPES.items():
        lines += [[(title, "bright")]]
        lines += [[(f"  {shown_keys(key.keys, 3):<16} ", "accent"), key.help] for key in KEYS if key.scope == scope]
        lines.append([])
    lines.append([("Signs and words", "bright")])
    states = signs(app).states
    lines += [[(f"  {states[health]:<16} ", STATE_TOKENS[health]), _STATES[health]] for health in reversed(Health)]
    return lines + [[(f"  {name:<16} ", "accent"), text] for name, text in _LEGEND]


_STATES = {
    Health.OK: "live, well",
    Health.UNKNOWN: "not known, or never read",
    Health.DRAINED: "taken out by a person",
    Health.WARN: "look at it",
    Health.CRITICAL: "broken: something is harmed now",
}
