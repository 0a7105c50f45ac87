"""The screen of one cluster: the lines around it, its panes, and the way through them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.css.query import NoMatches
from textual.message import Message
from textual.widgets import ContentSwitcher

from cockpit.cluster import Cluster
from cockpit.models import Job
from screens import chrome, grid_messages, heatmap_messages
from screens.changes import Changes
from screens.check_keys import CheckKeys
from screens.detail import DetailView
from screens.filter_bar import FilterBar
from screens.gpus_pane import GpusPane
from screens.hangs import Hangs
from screens.keys import bindings
from screens.lines import Subject
from screens.nccl_tests import NcclTests
from screens.on_screen import nodes_on_screen
from screens.overview import OverviewPane
from screens.pane import TablePane
from screens.panes import pane_specs
from screens.remembered import Remembers
from screens.subjects import title
from screens.text_messages import FollowLink
from screens.text_view import TextView
from screens.trail import Place, Trail
from screens.verbs import OUTPUT, Verbs, spec_of
from screens.warm_up import warm_up

if TYPE_CHECKING:
    from screens.check_pane import CheckPane
    from screens.output_view import OutputView

    Pane = TablePane | GpusPane | OverviewPane | CheckPane


CHROME_TICK_S = 1.0
WARM_UP_AFTER_S = 1.0  # the first data come first
EXPLAINED = "explained"  # the view of an explanation; it shares the widget of the details
CLOCK_WIDTH = 16
LOW = 8  # below so many lines the first row of a table is worth more than the lines around it


class Changed(Message):
    """A source of the cluster has something new; any number of them waiting become one."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Changed)


class CockpitScreen(Changes, Verbs, NcclTests, CheckKeys, Hangs, Remembers):
    """One cluster. It does no work while another cluster's screen is in front."""

    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW, "-high")]  # noqa: RUF012 - Textual declares it so
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app"), *bindings("subject"), *bindings("change")]

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster, self.clock = cluster, cluster.clock
        self._specs = {spec.id: spec for spec in pane_specs(cluster)}
        self.trail = Trail(Place("pane-overview"))
        self._followed: dict[Subject, Job] = {}

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield chrome.Line(id="header")
            yield chrome.ClockLine(self.clock, id="clock")
        yield chrome.Line(id="sources")
        yield chrome.Line(id="trouble")
        with ContentSwitcher(initial=self.trail.here.view, id="panes"):
            yield self._make_pane(self.trail.here.view)
            yield DetailView(self.cluster)
        yield FilterBar()
        yield chrome.Line(id="keys")

    def _make_pane(self, view: str) -> Pane:
        name = view.removeprefix("pane-")
        if name == "overview":
            return OverviewPane(self.cluster, self.nccl_spec(self._heard))
        if name == "log":
            return self.make_log(self._heard)
        if name == "nccl":
            return self.make_nccl(self._heard)
        if name == "checks":
            return self.make_checks(self._heard)
        return GpusPane(self._specs[name]) if name == "gpus" else TablePane(self._specs[name])

    def on_mount(self) -> None:
        """Say what is known by now, and go on reading once that is painted."""
        if not self.is_whole:
            return
        self.pane.focus()
        self.refresh_chrome()
        self.front.show_view(self.cluster)
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        self.cluster.store.listen(self._heard)
        self.on_changed()  # what was read since the first paint
        self.cluster.start()
        self.set_timer(WARM_UP_AFTER_S, warm_up)
        threading.Thread(target=self._watch_silences, name="silences-begin", daemon=True).start()
        self.set_interval(CHROME_TICK_S, self.refresh_chrome)
        if getattr(self.app, "remember", False):
            self.begin_to_remember()

    def _watch_silences(self) -> None:
        from cockpit.silences import watch_silences  # with what reads logs, which no first paint waits for

        watch_silences(self.cluster)

    def _heard(self, name: str) -> None:
        self.post_message(Changed())

    # What is in front.

    @property
    def front(self) -> Pane:
        """The pane in front, or the one that the way to what is in front began at."""
        return cast("Pane", self.query_one(f"#{self.trail.pane.view}"))

    @property
    def pane(self) -> TablePane:
        """The table of the pane in front."""
        return self.front.table

    @property
    def in_detail(self) -> bool:
        """True while the details of something are in front."""
        return self.trail.here.view in ("detail", EXPLAINED)

    def subject(self) -> Subject | None:
        """What the cursor is on, or what is shown in full."""
        if self.in_detail:
            return self.query_one(DetailView).subject or self.trail.here.subject
        if (diagnosis := self.hang_view()) is not None:
            return diagnosis.subject or self.trail.here.subject
        return self.front.subject if self.output_view() is None else self.trail.here.subject

    def text_view(self) -> TextView | None:
        """The text in front, None where a pane is."""
        return self.query_one(DetailView) if self.in_detail else self.hang_view() or self.output_view()

    def output_view(self) -> OutputView | None:
        """What a job writes, while that is in front."""
        return self._output() if self.trail.here.view == OUTPUT else None

    def _output(self) -> OutputView:
        from screens.output_view import OutputView

        return self.query_one(f"#{OUTPUT}", OutputView)

    @property
    def is_whole(self) -> bool:
        """False while the app, on its way out, takes this apart: that may begin before it has been mounted."""
        return all(self.query(f"#{part}") for part in ("header", "sources", "trouble", "keys", self.trail.pane.view))

    @property
    def is_shown(self) -> bool:
        """False while another cluster is in front; a dialog over this screen does not hide it."""
        stack = self.app.screen_stack if self.is_running else []
        return next((screen for screen in reversed(stack) if isinstance(screen, CockpitScreen)), None) is self

    def on_changed(self) -> None:
        """Show what is new where somebody looks; hidden panes do no work."""
        self._show(lambda: self.front.show_view(self.cluster))

    def on_screen_resume(self) -> None:
        """Catch up with what was not drawn meanwhile."""
        self.on_changed()

    def refresh_chrome(self) -> None:
        """Everything that tells an age: it ticks even when nothing arrives."""
        self._show(lambda: self.front.show_age(self.cluster))
        if self.is_shown:
            self.cluster.look_at(nodes_on_screen(self))

    def _show(self, pane: Callable[[], None]) -> None:
        """The lines around, and what is in front: details, or `pane`; output and diagnosis show themselves."""
        if not self.is_shown:
            return
        try:
            self._show_all(pane)
        except NoMatches:
            if self.is_whole:
                raise

    def _show_all(self, pane: Callable[[], None]) -> None:
        if self.in_detail:
            self.query_one(DetailView).show_view()
        elif (diagnosis := self.hang_view()) is not None:
            diagnosis.show_age()
        elif self.output_view() is None:
            pane()
        self._say_lines()  # last: the keys are those of what is under the cursor now

    def _say_lines(self) -> None:
        steady, problems = self.clock.steady(), self.cluster.problems()
        width = self.size.width
        self.query_one("#header", chrome.Line).say(
            chrome.header_pieces(
                self.cluster, width - CLOCK_WIDTH, [*self.run_pieces(), *self.nccl_pieces(), *self.check_pieces()]
            )
        )
        self.query_one("#sources", chrome.Line).say(
            chrome.source_pieces(self.cluster.sources(), steady, self.app, width)
        )
        trouble, told = self.query_one("#trouble", chrome.Line), [p for p in problems if p.acknowledged is None]
        trouble.say(chrome.trouble_pieces(told, self.clock.now(), self.app, width))
        # The overview begins with the problems.
        trouble.display = bool(told) and self.size.height >= LOW and self.trail.here.view != "pane-overview"
        scopes = self.scopes()[-1:] if self.output_view() is not None else self.scopes()  # its own keys say most
        self.query_one("#keys", chrome.Line).say(
            chrome.key_pieces(width, *scopes, keymap=self.keymap, lead=getattr(self.front, "lead_key", ""))
        )

    def scopes(self) -> tuple[str, ...]:
        """Where the keys work now, besides everywhere; the last line shows them."""
        if self.query_one(FilterBar).is_open:
            return ("filter",)
        on = self.on_scopes(self.pointed())
        if self.in_detail or self.hang_view() is not None:
            return ("text", *on) if self.in_detail else ("text", *on, "hang")
        return (*self.front.scopes, *on) if self.output_view() is None else ("text", *on, "output")

    # The way.

    async def action_pane(self, name: str) -> None:
        """Bring a pane to the front; it is built on the first visit."""
        place, switcher = Place(f"pane-{name}"), self.query_one("#panes", ContentSwitcher)
        if not switcher.query(f"#{place.view}"):
            await switcher.add_content(self._make_pane(place.view))
            self.restore_tables()
        self.trail.begin(place)  # not before it is there: what ticks meanwhile looks for it
        self._arrive()

    def _arrive(self) -> None:
        """Show where the trail has led."""
        place, switcher = self.trail.here, self.query_one("#panes", ContentSwitcher)
        text = self.text_view()
        self.leave_diagnosis()
        if place.view == OUTPUT and place.subject is not None:
            self._output().open(self.cluster, self._followed[place.subject])
        elif (diagnosis := self.hang_view()) is not None and place.subject is not None:
            diagnosis.open(place.subject.key, self.trail.words())
        elif place.subject is not None:
            self.query_one(DetailView).open(place.subject, self.trail.words(), explain=place.view == EXPLAINED)
        switcher.current = place.view if text is None else text.id
        if text is not None:
            self.set_focus(text)
        else:
            self.front.show_view(self.cluster)
            self.set_focus(self.pane)
        self.refresh_chrome()

    async def go(self, subject: Subject, view: str = "detail") -> None:
        """Open the details of something."""
        self.trail.go(Place(view, subject, title(subject, self.cluster.problems())))
        self._arrive()

    async def go_to_output(self, subject: Subject, job: Job) -> None:
        """Follow what a job writes."""
        switcher = self.query_one("#panes", ContentSwitcher)
        if not switcher.query(f"#{OUTPUT}"):
            from screens.output_view import OutputView

            await switcher.add_content(OutputView(id=OUTPUT))
        self._followed[subject] = job  # on the way back it may have left the queue
        await self.go(subject, OUTPUT)

    async def action_back(self) -> None:
        """One step back on the way, or out of the zoom."""
        if self.trail.back():
            self._arrive()
        else:
            self.remove_class("zoomed")

    @on(grid_messages.Opened)
    async def open_row(self, event: grid_messages.Opened) -> None:
        """Show everything known about the row."""
        await self.go(Subject(spec_of(event).kind, event.key))

    @on(heatmap_messages.Opened)
    async def open_cell(self, event: heatmap_messages.Opened) -> None:
        """Show everything known about a GPU of the heatmap."""
        await self.go(Subject("gpu", f"{event.row_key}/{event.column}"))

    @on(FollowLink)
    async def follow(self, event: FollowLink) -> None:
        """Show everything known about what a link leads to."""
        await self.go(event.subject)

    async def action_explain(self) -> None:
        """What the thing under the cursor is in, in plain words; what the table is for when it is on nothing."""
        await self.go(self.subject() or Subject("pane", self.pane.spec.id), EXPLAINED)

    # What keys do.

    def action_filter(self) -> None:
        """Type a filter for the table in front."""
        if self.text_view() is not None:
            raise SkipAction
        self.query_one(FilterBar).open(self.pane)
        self.refresh_chrome()

    def action_redraw(self) -> None:
        """Draw the whole screen again."""
        self.refresh(repaint=True, layout=True)

    def draw_anew(self) -> None:
        """Draw everything again: what it looks like has changed, not what is known."""
        for table in self.query(TablePane):
            table.draw_anew()
        self.on_changed()
        self.action_redraw()

    def action_refresh_now(self) -> None:
        """Read everything again now."""
        self.cluster.refresh()
        if self.in_detail:
            self.query_one(DetailView).read_record()
        elif diagnosis := self.hang_view():
            diagnosis.again()
        elif output := self.output_view():
            output.read_now()

    def action_pause(self) -> None:
        """Stop or resume polling."""
        self.cluster.pace.paused = not self.cluster.pace.paused
        if not self.cluster.pace.paused:
            self.cluster.refresh()
        self.refresh_chrome()

    @on(grid_messages.ZoomRequested)
    def zoom(self) -> None:
        """The table over the whole screen, or back."""
        self.toggle_class("zoomed")
