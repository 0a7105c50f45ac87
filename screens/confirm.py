"""How a change is confirmed: by y or n with No as the default, or by a word that is typed, never pasted."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from textual import events
from textual.app import RenderResult
from textual.binding import Binding, BindingType
from textual.errors import NoWidget
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from screens.content import styled
from screens.guard import BURST_S, Guard

NO_WIDTH = 8
PASTED = "that was pasted, or came faster than a hand types: type it"
HIDDEN = "nothing is sent: make the terminal larger, so that the plan and the question can be read"


def in_sight(screen: Screen[Any], *widgets: Widget) -> bool:
    """Whether each of them can be seen whole: what nobody can read, nobody has agreed to."""
    for widget in widgets:
        try:
            place = screen.find_widget(widget)
        except NoWidget:
            return False
        if not place.region.area or place.visible_region.size != place.region.size:
            return False
    return True


class Answered(Message):
    """What was typed as the answer; "" is No."""

    def __init__(self, typed: str) -> None:
        super().__init__()
        self.typed = typed


class Void(Message):
    """What came was no answer of a person's; `why` says so."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


class ConfirmLine(Input):
    """The word that confirms. Pastes and bursts empty it; nothing is heard until the guard opens."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+v,ctrl+x,ctrl+k,ctrl+c,super+c", "nothing", show=False),  # above all no paste
    ]

    def __init__(self, guard: Guard, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id, compact=True, max_length=200)
        self.guard = guard

    def action_nothing(self) -> None:
        """Keys that Input has its own meaning for."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            return
        if not self.guard.is_open(event.time):
            event.stop()
            event.prevent_default()
        elif (event.is_printable or event.key == "enter") and not self.guard.press(event.time):
            event.stop()
            event.prevent_default()
            self._refuse()

    def on_paste(self, event: events.Paste) -> None:
        """Nothing that is pasted confirms anything."""
        event.stop()
        event.prevent_default()
        self._refuse()

    def _refuse(self) -> None:
        self.clear()
        self.post_message(Void(PASTED))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter answers."""
        event.stop()
        self.post_message(Answered(event.value.strip()))


class YesNo(Widget, can_focus=True):
    """`No` and `Yes`; y and n answer, enter answers with the one that has the mark, which is No at first."""

    DEFAULT_CSS = "YesNo { width: 1fr; height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("left,right,h,l", "switch", show=False)]

    def __init__(self, guard: Guard, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.guard = guard
        self._yes = False
        self._waits: Timer | None = None

    def reset(self) -> None:
        """No, again."""
        self._yes = False
        self._drop()
        self.refresh()

    def render(self) -> RenderResult:
        mark = "accent" if self.has_focus else "dim"
        no, yes = ("  n no  ", "[ y yes ]") if self._yes else ("[ n no ]", "  y yes  ")
        return styled([(no, "" if self._yes else mark), " ", (yes, mark if self._yes else "")])

    def action_switch(self) -> None:
        """The other one."""
        if self.guard.is_open(time.monotonic()):
            self._yes = not self._yes
            self.refresh()

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            return
        if not self.guard.is_open(event.time):
            event.stop()
            event.prevent_default()
            return
        if not self.guard.press(event.time):
            event.stop()
            event.prevent_default()
            self._drop()
            self.post_message(Void(PASTED))
        elif event.key in ("y", "n", "enter"):
            event.stop()
            event.prevent_default()
            yes = event.key == "y" or (event.key == "enter" and self._yes)
            # What comes right behind shows whether it was a hand: `y` and enter in one paste are no answer.
            self._drop()
            self._waits = self.set_timer(2 * BURST_S, lambda: self._answer(yes))

    def on_paste(self, event: events.Paste) -> None:
        """Nothing that is pasted answers."""
        event.stop()
        self._drop()
        self.post_message(Void(PASTED))

    def on_click(self, event: events.Click) -> None:
        """A click on one of them answers."""
        if self.guard.is_open(event.time):
            self.post_message(Answered("y" if event.x > NO_WIDTH else ""))

    def _answer(self, yes: bool) -> None:
        self._waits = None
        self.post_message(Answered("y" if yes else ""))

    def _drop(self) -> None:
        if self._waits is not None:
            self._waits.stop()
            self._waits = None

    def on_focus(self) -> None:
        """Show that keys go here."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that keys go elsewhere."""
        self.refresh()
