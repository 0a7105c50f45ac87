"""The overview: the problems, worst first, over four live panels: nodes, GPUs, NCCL tests, queue."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget

from cockpit.cluster import Cluster
from cockpit.sources.gpus import GPUS
from screens import grid_messages
from screens.chrome import Line
from screens.details.node_instance import recent_pieces
from screens.gpus_pane import METRICS, HeatTurns, gpu_under, heat_rows
from screens.grid_canvas import TOP_LINES
from screens.heatmap import Heatmap
from screens.keys import bindings
from screens.lines import Subject
from screens.nothing_there import closed_queues, no_gpus
from screens.overview_panels import columns_for, compact, nothing_yet, problem_lines
from screens.pane import TablePane
from screens.pane_spec import PaneSpec
from screens.panes import pane_specs
from screens.problem_table import calm_pieces, next_pieces, problem_spec
from screens.waiting import stale_words, waiting_words

NO_NCCL = "no NCCL test has been run from here yet"
LINES_AROUND = 3  # header, sources, keys


class OverviewPane(Vertical):
    """Tab goes from panel to panel; `z` gives one the whole pane; where only one fits, it is the one with the focus.

    `nccl` is the pane of the NCCL tests, None while there is none.
    """

    scopes = ("grid", "overview")
    DEFAULT_CSS = """
    OverviewPane > #overview-problems { height: auto; }
    OverviewPane > #overview-next { display: none; padding: 0 1; }
    OverviewPane > #overview-calm { display: none; padding: 0 2; }
    OverviewPane > #overview-events { display: none; }
    OverviewPane > #overview-panels { height: 1fr; layout: grid; grid-size: 2; grid-gutter: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("overview"),
        # A table says itself that it wants to be zoomed; the heatmap leaves the key to its pane.
        *[binding for binding in bindings("grid") if isinstance(binding, Binding) and binding.id == "grid.zoom"],
        Binding("escape", "back", "back", show=False, id="app.back"),
    ]

    def __init__(self, cluster: Cluster, nccl: PaneSpec | None = None) -> None:
        super().__init__(id="pane-overview")
        specs = {spec.id: spec for spec in pane_specs(cluster)}
        self._cluster = cluster
        self._problems = TablePane(problem_spec(cluster), id="overview-problems")
        self._problems.state.pinned = True  # the sources answer one after the other; the worst is under the cursor
        self._heat = Heatmap("gpus", "no node that is up has a GPU", id="overview-gpus", noun="GPU")
        self._panels: tuple[TablePane | Heatmap, ...] = (
            TablePane(compact(specs["nodes"]), id="overview-nodes"),
            self._heat,
            TablePane(compact(nccl) if nccl else nothing_yet("nccl", NO_NCCL), id="overview-nccl"),
            TablePane(compact(specs["queue"]), id="overview-queue"),
        )
        self._box = Container(*self._panels, id="overview-panels")
        self._next, self._calm, self._events = (Line(id=f"overview-{name}") for name in ("next", "calm", "events"))
        self._current: TablePane | Heatmap = self._panels[0]  # it has the focus, or had it before the focus left
        self._front: TablePane | Heatmap = self._panels[0]  # the one that is seen where only one fits
        self._zoomed = False
        self._seen_problems = False
        self._laid_out: object = None
        self._turns = HeatTurns()

    def compose(self) -> ComposeResult:
        yield self._problems
        yield self._next
        yield self._calm
        yield self._events
        yield self._box

    @property
    def table(self) -> TablePane:
        """The table that keys and filters are about: the one with the focus, else the problems, else the nodes."""
        untouched = self._problems.rows_total and not self._seen_problems
        for panel in (self._problems if untouched else self._current, self._problems, self._panels[0]):
            if isinstance(panel, TablePane) and (panel is not self._problems or panel.rows_total):
                return panel
        raise AssertionError("the nodes are a table")

    @property
    def subject(self) -> Subject | None:
        """What the cursor is on."""
        return gpu_under(self._heat) if self._heat.has_focus else self.table.subject

    # What is shown.

    def show_view(self, cluster: Cluster) -> None:
        """Show the cluster as it is known now; panels that are hidden do no work."""
        self._cluster = cluster
        self._show_problems()
        for panel in self._panels:
            if panel.display:
                self._show_panel(panel)

    def show_age(self, cluster: Cluster) -> None:
        """Show only how old the data are by now; that a source fails or is lost is a matter of age too."""
        self._show_problems()
        for panel in self._panels:
            if panel.display and isinstance(panel, TablePane):
                panel.show_age(cluster)
            elif panel.display:
                panel.set_stale(stale_words(cluster, GPUS))

    def _show_panel(self, panel: TablePane | Heatmap) -> None:
        if isinstance(panel, TablePane):
            panel.show_view(self._cluster)
        else:
            self._show_heat()

    def _show_heat(self) -> None:
        view, stale = self._cluster.view, stale_words(self._cluster, GPUS)
        steady = self._cluster.clock.steady()
        if view.fleet is None:
            self._heat.set_waiting(waiting_words(self._cluster, GPUS))
        elif not self._turns.due(view, steady):
            self._heat.set_stale(stale)
        else:
            metric = METRICS[0]
            rows = heat_rows(view.gpu_rows, metric, steady)
            self._heat.empty = no_gpus(view, closed_queues(self._cluster))
            self._heat.show(rows, metric.name, stale, low=metric.low, high=metric.high)

    def _show_problems(self) -> None:
        self._problems.show_view(self._cluster)
        happened = recent_pieces(self._cluster, self._cluster.head_now())
        self._events.say(happened)
        self._events.display = bool(happened)
        self._say_calm()
        self._say_next()
        self._lay_out()
        if self._problems.rows_total and not self._seen_problems:
            self._seen_problems = True
            if self._nobody_looks():
                self._problems.focus()

    def _say_calm(self) -> None:
        if not self._problems.rows_total:
            self._calm.say(calm_pieces(self._cluster, max(0, self.size.width - 4)))

    @on(grid_messages.CursorMoved, "#overview-problems")
    def _say_next(self) -> None:
        """What to do about the problem under the cursor, whole: few screens have room for it in its column."""
        self._next.say(next_pieces(self._problems.cursor_row))

    def _nobody_looks(self) -> bool:
        """Whether the focus is where it was put at the start, and nobody has moved there since."""
        nodes = self._panels[0]
        assert isinstance(nodes, TablePane)
        untouched = nodes.state.at_home and not nodes.filter_text and not self._zoomed
        # The screen itself begins with the first that can have it, which are the problems.
        return untouched and self.screen.focused in (None, nodes, self._problems)

    # Where it stands.

    def _lay_out(self) -> None:
        """Give each panel its room or hide it, when something has changed that this depends on."""
        # Before the first layout: all but the lines around it, so that not even the first frame is out of place.
        room = self.size or self.app.size - (0, LINES_AROUND)
        width, height, count = *room, self._problems.rows_total or 0
        if self._current is self._problems and not count:
            self._current = self._front
        alone = self._current if self._zoomed else None
        lines = problem_lines(count, height, TOP_LINES) if count else 1
        columns = 1 if alone else columns_for(width, height - lines - bool(count))
        asked = (columns, lines, bool(count), alone, self._front)
        if asked == self._laid_out:
            return
        self._laid_out = asked
        with self.app.batch_update():
            self._place(columns, lines, alone)

    def _place(self, columns: int, lines: int, alone: Widget | None) -> None:
        problems, box = self._problems, self._box
        had_focus = problems.has_focus
        problems.display = bool(problems.rows_total) and alone in (None, problems)
        problems.styles.height = "1fr" if alone is problems else lines
        self._next.display = problems.display
        self._calm.display = not problems.rows_total and alone is None
        box.display = alone is not problems
        box.styles.grid_size_columns = columns
        for panel in self._panels:
            display = panel is (alone or self._front) if columns == 1 else True
            if display and not panel.display:
                self._show_panel(panel)
            panel.display = display
        if had_focus and not problems.display:
            self._current.focus()

    def on_resize(self) -> None:
        """Arrange everything for the new size."""
        self._say_calm()
        self._lay_out()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Remember where the focus is; the panel that has it must be seen."""
        panels = (self._problems, *self._panels)
        # Each panel tells it from a queue of its own: one that was busy may tell it after the focus has gone on.
        of = self.screen.focused if self.screen.focused in panels else event.widget
        for panel in panels:
            if panel is of:
                self._go_to(panel)

    def _go_to(self, panel: TablePane | Heatmap) -> None:
        self._current = panel
        if panel is not self._problems:
            self._front = panel
        self._lay_out()

    # What keys do.

    def action_next_panel(self, step: int) -> None:
        """The next panel; while one fills the pane, the next one does."""
        order = [panel for panel in (self._problems, *self._panels) if panel is not self._problems or panel.rows_total]
        place = order.index(self._current) if self._current in order else 0
        panel = order[(place + step) % len(order)]
        self._go_to(panel)
        self.screen.set_focus(panel)  # at once: the next key of a burst belongs to it

    @on(grid_messages.ZoomRequested)
    def zoom_table(self, event: grid_messages.ZoomRequested) -> None:
        """Here a table fills the pane, and only that."""
        event.stop()
        self.action_zoom()

    def action_zoom(self) -> None:
        """The panel with the focus over the whole pane, or all of them again."""
        self._zoomed = not self._zoomed
        self._lay_out()

    def action_back(self) -> None:
        """Leave the zoom, or let whoever is above leave something."""
        if not self._zoomed:
            raise SkipAction
        self.action_zoom()
