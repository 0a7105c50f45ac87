"""What every key does, from the key table."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from cockpit.models import Health
from screens.filter_bar import FilterBar
from screens.keys import KEYS, SCOPES, shown_keys
from screens.lines import Line
from screens.text_view import TextView
from themes import STATE_TOKENS
from themes.glyphs import signs

_LEGEND = (
    ("filter", "words that must all occur · field:value · field:a,b any of them · !word or !field:value not"),
    ("queue", "one line is a job, or a whole array: `R 4  PD 20` are its tasks by state"),
    ("–", "not known; empty: there is none"),
)


class HelpScreen(ModalScreen[None]):
    """Every key by scope, and what the signs mean; any of esc, q and ? closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        yield TextView(title=[("keys", "bright"), (" · esc closes", "dim")], id="help")
        yield FilterBar()

    def on_mount(self) -> None:
        """Fill in."""
        text = self.query_one(TextView)
        text.show(help_lines(self.app))
        text.focus()


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
