"""The first run on a machine without Slurm and without a config: set a cluster up, look at the demo, or leave."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

import themes
from cockpit.addresses import short_name, take_apart
from cockpit.setup.find import Candidate, Found, find
from screens import first_lines
from screens.content import plain, styled
from screens.filter_bar import FilterInput
from screens.first_trial import TrialScreen
from screens.last_steps import LookApp
from screens.lines import Line
from screens.modal import ClosesOnce

Find = Callable[[], Found]
_MOVES: list[BindingType] = [
    Binding("j", "cursor_down", show=False),
    Binding("k", "cursor_up", show=False),
    Binding("g", "first", show=False),
    Binding("G", "last", show=False),
]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be opened: the demo, or a cluster of the config that was written."""

    demo: bool = False
    cluster: str = ""


class Choices(OptionList):
    """A list that also knows j and k."""

    BINDINGS: ClassVar[list[BindingType]] = _MOVES


def joined(lines: list[Line]) -> Content:
    """Lines as one text."""
    return Content("\n").join(styled(line) for line in lines)


class WelcomeScreen(Screen[None]):
    """Three things to do, the first under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "pick('setup')", show=False),
        Binding("d", "pick('demo')", show=False),
        Binding("q,escape", "pick('quit')", show=False),
    ]

    def __init__(self, path: Path, look: Find) -> None:
        super().__init__()
        self._path, self._find = path, look

    def compose(self) -> ComposeResult:
        options = (
            ("setup", "s", "set up a cluster", "finds it, tests the way in, writes the config"),
            ("demo", "d", "look at the demo", "a simulated cluster; nothing can break"),
            ("quit", "q", "leave", ""),
        )
        with Vertical(classes="first"):
            yield Static(joined(first_lines.welcome(self._path)), classes="first-head")
            yield Choices(
                *(
                    Option(styled([(f" {key} ", "accent"), f"{what:<20}", (why, "dim")]), name)
                    for name, key, what, why in options
                )
            )
            yield Static(styled(first_lines.keys_line([("j k", "move"), ("enter", "choose")])), classes="first-keys")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.action_pick(event.option.id or "quit")

    def action_pick(self, what: str) -> None:
        """Do one of the three."""
        if what == "setup":
            self.app.push_screen(FindScreen(self._path, self._find))
        else:
            self.app.exit(Chosen(demo=True) if what == "demo" else None)


class FindScreen(ClosesOnce[None]):
    """What was found, and a line for a head that was not."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", show=False), Binding("q", "back", show=False)]

    def __init__(self, path: Path, look: Find) -> None:
        super().__init__()
        self._path, self._find = path, look
        self._found: Found | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="first"):
            yield Static(joined(first_lines.found_lines(None)), classes="first-head", id="found")
            yield Choices(id="places")
            yield HeadInput(placeholder="head: user@host, or an alias of ~/.ssh/config", compact=True, max_length=300)
            yield Static("", id="wrong", classes="critical")
            keys = [("tab", "list or line"), ("enter", "test it"), ("esc", "back")]
            yield Static(styled(first_lines.keys_line(keys)), classes="first-keys")

    def on_mount(self) -> None:
        """Look on a thread: AWS may take its time, and somebody may know the head already."""
        self.query_one(HeadInput).focus()
        threading.Thread(target=self._look, name="find", daemon=True).start()

    def _look(self) -> None:
        found = self._find()
        if self.is_running:
            self.app.call_from_thread(self._show, found)

    def _show(self, found: Found) -> None:
        self._found = found
        self.query_one("#found", Static).update(joined(first_lines.found_lines(found)))
        places = self.query_one(Choices)
        places.add_options(Option(styled(first_lines.candidate_line(one))) for one in found.candidates)
        if found.candidates and not self.query_one(HeadInput).value:
            places.highlighted = 0
            places.focus()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        if self._found is not None:
            self._try(self._found.candidates[event.option_index])

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        head = event.value.strip()
        if not head:
            return
        try:
            host = take_apart(head).host if head != "local" else head
        except ValueError as error:
            self.query_one("#wrong", Static).update(plain(f"{head!r} {error}"))
            return
        self._try(Candidate(short_name(host), head))

    def _try(self, candidate: Candidate) -> None:
        self.query_one("#wrong", Static).update("")
        self.app.push_screen(TrialScreen(candidate, self._path), self._done)

    def _done(self, cluster: str | None) -> None:
        if cluster is not None:
            self.app.exit(Chosen(cluster=cluster))

    def action_back(self) -> None:
        """To the three things."""
        self.dismiss()


class HeadInput(FilterInput):
    """The line for the head."""

    def action_clear_filter(self) -> None:
        """Escape leaves the screen, as everywhere on it."""
        self.screen.dismiss()


class FirstRunApp(LookApp[Chosen]):
    """Ends with what is to be opened, None for nothing."""

    TITLE = "cockpit"
    CSS_PATH: ClassVar = [themes.STYLESHEET]
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    .first { padding: 1 2; }
    .first-head { height: auto; margin-bottom: 1; }
    .first-keys { height: 1; color: $cockpit-dim; margin-top: 1; }
    Choices {
        height: auto; max-height: 70%; border: none; padding: 0; background: $background;
        & > .option-list--option-highlighted { background: $cockpit-cursor; color: $foreground; text-style: bold; }
        &:focus > .option-list--option-highlighted { background: $cockpit-cursor; color: $foreground; }
    }
    HeadInput { height: 1; margin-top: 1; background: $surface; }
    #wrong, #outcome { height: auto; }
    VerticalScroll { height: auto; max-height: 1fr; }
    """

    def __init__(self, path: Path, look: themes.Look | None = None, finder: Find = find) -> None:
        super().__init__(look)
        self._path, self._find = path, finder
        self.animation_level = "none"

    def on_mount(self) -> None:
        """Begin with the three things."""
        self.push_screen(WelcomeScreen(self._path, self._find))

    def action_help_quit(self) -> None:
        """ctrl+c does nothing here either; q and esc leave."""
