"""Asked before the cockpit is left while an action runs, and before a read-only cluster is armed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from actions.spec import Confirm
from screens.confirm import HIDDEN, Answered, ConfirmLine, Void, YesNo, in_sight
from screens.content import plain, styled
from screens.guard import SETTLE_S, Guard
from screens.lines import Line
from screens.modal import Modal


class AskDialog(Modal[str | None]):
    """A few lines and a question. Dismissed with what was typed when that confirms, None when it was left."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]
    DEFAULT_CSS = """
    AskDialog { align: center middle; }
    AskDialog > #ask {
        width: 90;
        max-width: 100%;
        height: auto;
        max-height: 100%;
        border: solid $cockpit-accent;
        background: $background;
        padding: 0 1;
    }
    AskDialog.-production > #ask { border: heavy $cockpit-production; }
    AskDialog #ask-about { height: auto; max-height: 14; margin-bottom: 1; }
    AskDialog ConfirmLine { height: 1; background: $surface; }
    AskDialog #ask-note { height: 1; color: $cockpit-warning; }
    """

    def __init__(
        self, title: str, about: Sequence[Line], question: Line, confirm: Confirm, *, production: bool = False
    ) -> None:
        super().__init__()
        self._title, self._about, self._question, self._confirm = title, about, question, confirm
        self._production = production
        self._guard = Guard()

    def compose(self) -> ComposeResult:
        with Vertical(id="ask") as box:
            box.border_title = styled([(f" {self._title} ", "bright")])
            yield Static(Content("\n").join(styled(line) for line in self._about), id="ask-about")
            yield Static(styled(self._question), id="ask-question")
            yield YesNo(self._guard) if self._confirm.kind == "yes" else ConfirmLine(self._guard)
            yield Static(id="ask-note")
            yield Static(styled([(" esc ", "accent"), "no"]))

    def on_mount(self) -> None:
        """Hear nothing for a moment."""
        self.app.clear_notifications()  # nothing lies over the question
        self.set_class(self._production, "-production")
        self._guard.shut(time.monotonic())
        self.set_timer(SETTLE_S, self._listen)

    def _listen(self) -> None:
        self.query_one("YesNo, ConfirmLine").focus()

    @on(Void)
    def void(self, event: Void) -> None:
        """What came was no answer."""
        self.query_one("#ask-note", Static).update(plain(event.why))

    @on(Answered)
    def answered(self, event: Answered) -> None:
        """Close when it confirms; No closes, too, anything else is asked for again."""
        if not event.typed and self._confirm.kind == "yes":
            self.dismiss(None)
        elif not in_sight(self, *self.query("#ask-about, #ask-question, YesNo, ConfirmLine")):
            self.query_one("#ask-note", Static).update(plain(HIDDEN))
        elif self._confirm.fits(event.typed):
            self.dismiss(event.typed)
        elif self._confirm.kind == "yes":
            self.dismiss(None)
        else:
            self.query_one(ConfirmLine).clear()
            self.query_one("#ask-note", Static).update(plain(self._confirm.prompt))

    def action_leave(self) -> None:
        """Close; nothing changes."""
        self.dismiss(None)
