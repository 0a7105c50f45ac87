"""One line of the operator's own words, asked for with what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from screens.content import styled
from screens.filter_bar import FilterInput
from screens.lines import Line
from screens.modal import Modal


class NoteInput(FilterInput):
    """The line; what is pasted into it becomes one line."""

    def action_clear_filter(self) -> None:
        """Escape closes the dialog."""
        self.screen.dismiss(None)


class NoteDialog(Modal[str | None]):
    """Dismissed with the words, None when it was closed. Without any words enter does nothing."""

    AUTO_FOCUS = "NoteInput"
    BINDINGS: ClassVar[list[BindingType]] = []
    DEFAULT_CSS = """
    NoteDialog { align: center middle; }
    NoteDialog > #note {
        width: 90;
        max-width: 100%;
        height: auto;
        border: solid $cockpit-accent;
        background: $background;
        padding: 0 1;
    }
    NoteDialog #note-about { height: auto; max-height: 10; }
    NoteDialog NoteInput { height: 1; background: $surface; }
    NoteDialog #note-keys { height: 1; color: $cockpit-dim; }
    """

    def __init__(self, title: str, about: Sequence[Line], hint: str) -> None:
        super().__init__()
        self._title, self._about, self._hint = title, about, hint

    def compose(self) -> ComposeResult:
        with Vertical(id="note") as box:
            box.border_title = styled([(f" {self._title} ", "bright")])
            yield Static(Content("\n").join(styled(line) for line in self._about), id="note-about")
            yield NoteInput(placeholder=self._hint, compact=True, max_length=300)
            yield Static(styled([(" enter ", "accent"), "keep", (" esc ", "accent"), "leave it"]), id="note-keys")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the words."""
        event.stop()
        if event.value.strip():
            self.dismiss(event.value.strip())
