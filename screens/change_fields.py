"""What a dialog asks beside the confirmation: the reason, numbers, words and flags, one line each."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult, RenderResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from actions.reasons import MAX_CHARS
from actions.spec import Option
from cockpit.text import printable
from screens.content import plain, styled
from screens.guard import Guard

LABEL_WIDTH = 9


class Chosen(Message):
    """An option has another value: the plan is another one."""


class FieldInput(Input):
    """A line that hears nothing until the guard opens; what is pasted becomes one harmless line."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c,super+c", "nothing", show=False)]

    def __init__(self, guard: Guard, placeholder: str, *, id: str | None = None, max_length: int = 0) -> None:  # noqa: A002
        super().__init__(placeholder=placeholder, compact=True, max_length=max_length, id=id)
        self.guard = guard

    def action_nothing(self) -> None:
        """Keys that Input has its own meaning for."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key != "escape" and not self.guard.is_open(event.time):
            event.stop()
            event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        """The words of a ticket may be pasted; their line breaks answer nothing."""
        event.stop()
        event.prevent_default()
        if self.guard.is_open(event.time):
            self.insert_text_at_cursor(printable(" ".join(event.text.split())))


class Flag(Widget, can_focus=True):
    """A choice that space turns on and off."""

    DEFAULT_CSS = "Flag { width: 1fr; height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "turn", show=False)]

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._title = title
        self.on = False

    def render(self) -> RenderResult:
        mark = "[x] " if self.on else "[ ] "
        return styled([(mark + self._title, "accent" if self.has_focus else "")])

    def action_turn(self) -> None:
        """The other way."""
        self.on = not self.on
        self.refresh()
        self.post_message(Chosen())

    def on_click(self) -> None:
        """A click turns it, too."""
        self.action_turn()

    def on_focus(self) -> None:
        """Show that keys go here."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that keys go elsewhere."""
        self.refresh()


class Field(Horizontal):
    """One line: a name, and a flag or something to type; `value` is what Options wants."""

    DEFAULT_CSS = f"""
    Field {{ height: auto; }}
    Field > .label {{ width: {LABEL_WIDTH}; color: $cockpit-dim; }}
    Field > Input {{ width: 1fr; height: 1; background: $surface; }}
    """

    def __init__(self, option: Option, guard: Guard) -> None:
        super().__init__(id=f"field-{option.name.replace('_', '-')}")
        self.option = option
        self._flag = Flag(option.title) if option.kind == "flag" else None
        self._line = None if self._flag else FieldInput(guard, option.title)

    def compose(self) -> ComposeResult:
        yield Static(plain("" if self._flag else self.option.name.replace("_", " ")), classes="label")
        yield self.entry

    @property
    def entry(self) -> Widget:
        """What takes the focus."""
        widget = self._flag or self._line
        assert widget is not None
        return widget

    @property
    def value(self) -> Any:
        """True or False, a number, a word; None where nothing, or no number, is typed."""
        if self._flag is not None:
            return self._flag.on
        typed = self._line.value.strip() if self._line is not None else ""
        if self.option.kind != "number":
            return typed
        return int(typed) if typed.removeprefix("-").isdecimal() and len(typed) < 12 else None

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter plans with it."""
        event.stop()
        self.post_message(Chosen())


class ReasonLine(Horizontal):
    """Why: in the operator's own words."""

    DEFAULT_CSS = f"""
    ReasonLine {{ height: 1; }}
    ReasonLine > .label {{ width: {LABEL_WIDTH}; color: $cockpit-dim; }}
    ReasonLine > Input {{ width: 1fr; height: 1; background: $surface; }}
    """

    def __init__(self, guard: Guard, words: str = "") -> None:
        super().__init__(id="plan-reason")
        hint = "why, in a few words: Slurm and the record keep it"
        self.line = FieldInput(guard, hint, id="reason", max_length=MAX_CHARS)
        self.line.value = words

    def compose(self) -> ComposeResult:
        yield Static(plain("reason"), classes="label")
        yield self.line

    @property
    def words(self) -> str:
        """What is typed."""
        return self.line.value.strip()
