"""The Textual app: wiring only. What is shown is in screens/, what is known is in the cluster."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from contextlib import suppress
from typing import Any, ClassVar

from rich.console import Console
from textual import events, on
from textual.actions import SkipAction
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import ContentSwitcher

import themes
from cockpit.cluster import Cluster
from cockpit.config import ClusterConfig, ConfigError, Rules
from screens import chrome, grid_messages, heatmap_messages, outlet
from screens.detail import CopyText, DetailView
from screens.filter_bar import FilterBar
from screens.gpus_pane import GpusPane, make_pane
from screens.grid import Grid
from screens.help import HelpScreen
from screens.keys import bindings
from screens.pane import TablePane
from screens.pane_spec import PaneSpec
from screens.panes import pane_specs

CHROME_TICK_S = 1.0
CLOCK_WIDTH = 16


class Changed(Message):
    """A source of the cluster has something new; any number of them waiting become one."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Changed)


class CockpitApp(App[int]):
    """The cockpit over one cluster. It starts polling after its first paint and waits for nothing on its way out."""

    TITLE = "cockpit"
    CSS_PATH: ClassVar = [themes.STYLESHEET, themes.STYLESHEET.with_name("layout.tcss")]
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("app"),
        # Before the table sees it: the rest of a burst such as `/maria` must go to the filter line.
        Binding("slash", "filter_front", show=False, priority=True),
    ]

    def __init__(self, cluster: Cluster, *, seconds: float | None = None) -> None:
        theme = themes.choose(_colours(), no_color="NO_COLOR" in os.environ)
        super().__init__(ansi_color=theme == themes.ANSI)
        self.animation_level = "none"  # a page down would cost 24 times the bytes
        self.cluster, self.clock = cluster, cluster.clock
        self.ascii_only = "utf" not in (getattr(sys.__stdout__, "encoding", "") or "utf").lower()
        self._seconds = seconds
        self._specs = {spec.id: spec for spec in pane_specs(self.cluster)}
        for name in themes.THEMES:
            self.register_theme(themes.theme(name))
        self.theme = theme

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield chrome.Line(id="header")
            yield chrome.ClockLine(id="clock")
        yield chrome.Line(id="sources")
        yield chrome.Line(id="trouble")
        with ContentSwitcher(initial="pane-nodes", id="panes"):
            yield make_pane(self._specs["nodes"])
            yield DetailView(self.cluster)
        yield FilterBar()
        yield chrome.Line(id="keys")

    def on_mount(self) -> None:
        """Say what is known before anything is read, and start reading once that is painted."""
        self.pane.focus()
        self.refresh_chrome()
        self.front.show_view(self.cluster)
        self.call_after_refresh(self._start)
        if self._seconds is not None:
            self.set_timer(self._seconds, self.exit)

    def _start(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(NotImplementedError, RuntimeError, ValueError):  # not on the main thread: as in tests
                asyncio.get_running_loop().add_signal_handler(number, self._told_to_end, number)
        # What start-up made lives as long as the app: a full collection over it would stall a key for 60 ms.
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 20, 100)
        gc.enable()
        self.cluster.store.listen(self._heard)
        self.cluster.start()
        self.set_interval(CHROME_TICK_S, self.refresh_chrome)
        self.set_interval(CHROME_TICK_S, self._end_without_terminal)

    def _end_without_terminal(self) -> None:
        """End when the terminal is gone and no SIGHUP came: the kernel tells only the session's leader, make say."""
        if not self.is_headless and not os.isatty(0):  # run_app began with a terminal there
            self._told_to_end(signal.SIGHUP)

    def _told_to_end(self, number: int) -> None:
        outlet.end_in_any_case(128 + number, self.cluster.stop)
        self.exit(return_code=128 + number)

    def _heard(self, name: str) -> None:
        self.post_message(Changed())

    async def on_event(self, event: events.Event) -> None:
        """Any key tells the sources that somebody is there."""
        if isinstance(event, events.Key | events.MouseDown) and self.cluster.pace.touch():
            self.cluster.refresh()
        await super().on_event(event)

    @property
    def front(self) -> TablePane | GpusPane:
        """The pane in front, or the one that a detail was opened from."""
        found = self.query_one(f"#{self._front}")
        assert isinstance(found, TablePane | GpusPane)
        return found

    @property
    def pane(self) -> TablePane:
        """The table of the pane in front."""
        return self.front.table

    _front = "pane-nodes"

    def on_changed(self) -> None:
        """Show what is new where somebody looks; hidden panes do no work."""
        self._say_lines()
        if self.in_detail:
            self.query_one(DetailView).show_view()
        else:
            self.front.show_view(self.cluster)

    def refresh_chrome(self) -> None:
        """Everything that tells an age: it ticks even when nothing arrives."""
        if not self.is_running:
            return
        self._say_lines()
        if self.in_detail:
            self.query_one(DetailView).show_view()
        else:
            self.front.show_age(self.cluster)

    def _say_lines(self) -> None:
        store, steady, problems = self.cluster.store, self.clock.steady(), self.cluster.problems()
        self.query_one("#header", chrome.Line).say(chrome.header_pieces(self.cluster, self.size.width - CLOCK_WIDTH))
        self.query_one("#sources", chrome.Line).say(chrome.source_pieces(store.states(), steady, self))
        trouble = self.query_one("#trouble", chrome.Line)
        trouble.say(chrome.trouble_pieces(problems, self.clock.now(), self))
        trouble.display = bool(problems)
        self.query_one("#keys", chrome.Line).say(chrome.key_pieces(*self._scopes()))

    def _scopes(self) -> tuple[str, ...]:
        if self.query_one(FilterBar).is_open:
            return ("filter",)
        if self.in_detail:
            return ("text",)
        return ("grid", "gpus") if isinstance(self.front, GpusPane) else ("grid",)

    @property
    def in_detail(self) -> bool:
        """True while the details of something are in front."""
        return self.query_one("#panes", ContentSwitcher).current == "detail"

    async def action_pane(self, name: str) -> None:
        """Bring a pane to the front; it is built on the first visit."""
        if self.screen.is_modal:
            raise SkipAction
        switcher = self.query_one("#panes", ContentSwitcher)
        self._front = f"pane-{name}"
        if switcher.query(f"#{self._front}"):
            switcher.current = self._front
        else:
            await switcher.add_content(make_pane(self._specs[name]), set_current=True)
        self.front.show_view(self.cluster)
        self.screen.set_focus(self.pane)
        self.refresh_chrome()

    def action_filter_front(self) -> None:
        """Type a filter for the table in front."""
        if self.screen.is_modal or self.in_detail:
            raise SkipAction
        self.query_one(FilterBar).open(self.pane)
        self.refresh_chrome()

    def action_redraw(self) -> None:
        """Draw the whole screen again."""
        self.refresh(repaint=True, layout=True)

    def action_help_quit(self) -> None:
        """ctrl+c does nothing; say what does."""
        outlet.tell(self, "q leaves the cockpit")

    def action_refresh_now(self) -> None:
        """Read everything again now."""
        self.cluster.refresh()
        if self.in_detail:
            self.query_one(DetailView).read_record()

    def action_pause(self) -> None:
        """Stop or resume polling."""
        self.cluster.pace.paused = not self.cluster.pace.paused
        if not self.cluster.pace.paused:
            self.cluster.refresh()
        self.refresh_chrome()

    def action_help(self) -> None:
        """What every key does here."""
        self.push_screen(HelpScreen())

    async def action_back(self) -> None:
        """Leave the details or the zoom."""
        if self.in_detail:
            await self.action_pane(self.pane.spec.id)
        else:
            self.screen.remove_class("zoomed")

    @on(grid_messages.Opened)
    def open_row(self, event: grid_messages.Opened) -> None:
        """Show everything known about the row."""
        self._open_detail(spec_of(event.grid).id, event.key)

    @on(heatmap_messages.Opened)
    def open_cell(self, event: heatmap_messages.Opened) -> None:
        """Show everything known about a GPU of the heatmap."""
        self._open_detail("gpus", f"{event.row_key}/{event.column}")

    def action_problems(self) -> None:
        """Every problem in full."""
        if self.screen.is_modal:
            raise SkipAction
        self._open_detail("problems", "")

    def _open_detail(self, pane: str, key: str) -> None:
        detail = self.query_one(DetailView)
        detail.open(pane, key)
        self.query_one("#panes", ContentSwitcher).current = "detail"
        self.screen.set_focus(detail)
        self.refresh_chrome()

    @on(grid_messages.ZoomRequested)
    def zoom(self) -> None:
        """The table over the whole screen, or back."""
        self.screen.toggle_class("zoomed")

    @on(grid_messages.CopyRequested)
    def copy_rows(self, event: grid_messages.CopyRequested) -> None:
        """Put the names of rows on the clipboard."""
        outlet.copy(self, spec_of(event.grid).copied(event.keys))

    @on(CopyText)
    def copy_details(self, event: CopyText) -> None:
        """Put a text on the clipboard."""
        outlet.copy(self, event.text)

    @on(grid_messages.ExportRequested)
    def export_rows(self, event: grid_messages.ExportRequested) -> None:
        """Write the lines shown to files of the user's own."""
        outlet.export_rows(self, self.cluster.config.name, spec_of(event.grid), event.grid.visible_rows)


def spec_of(grid: Grid[Any]) -> PaneSpec:
    """The spec of the pane that sent a message: by now another one may be in front."""
    assert isinstance(grid, TablePane)
    return grid.spec


def _colours() -> int | None:
    """How many colours the terminal has by its environment, None when that is not told."""
    system = Console().color_system
    return {"standard": 16, "256": 256, "truecolor": 2**24}.get(system or "")


def run_app(config: ClusterConfig, rules: Rules, *, read_only: bool, seconds: float | None = None) -> int:
    """Run the cockpit until the user leaves; returns the exit code. Raises ConfigError without a terminal.

    The caller may have turned garbage collection off for the start; it is on after the first paint.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "") in ("", "dumb"):
        raise ConfigError("this is no terminal that can show the cockpit; `cockpit status` prints the same as text")
    sys.setswitchinterval(0.001)  # the default lets a key wait 5 ms for each thread that reads an answer
    cluster = Cluster(config, rules=rules, read_only=read_only)
    app = CockpitApp(cluster, seconds=seconds)
    try:
        app.run()
    finally:
        cluster.stop()
    return app.return_code or 0
