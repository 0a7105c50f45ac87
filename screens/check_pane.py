"""Pane 6: EFA checks, health checks and versions of the nodes; one line above tells which, and what runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from cockpit.cluster import Cluster
from cockpit.words import moment
from screens.check_book import check_book
from screens.check_runs import CheckSession
from screens.check_table import (
    NAMES,
    VIEWS,
    CheckTable,
    check_spec,
    odd_names,
    seen_checks,
    version_columns,
    versions_spec,
)
from screens.chrome import Line
from screens.grid_model import Column
from screens.keys import bindings
from screens.lines import Piece, Subject
from screens.pane import TablePane


class CheckPane(Vertical):
    """One table a view; the one in front has the keys."""

    scopes = ("grid", "checks")
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("checks"),
        Binding("escape", "back", "back", show=False, id="app.back"),
    ]
    DEFAULT_CSS = """
    CheckPane > TablePane { display: none; height: 1fr; }
    CheckPane > TablePane.-front { display: block; }
    """

    def __init__(self, cluster: Cluster, session: Callable[[], CheckSession | None]) -> None:
        """`session` gives the run of this cluster, the last one when none is under way."""
        super().__init__(id="pane-checks")
        self._cluster, self._session = cluster, session
        self._made = {kind: CheckTable(kind, cluster.clock.now) for kind in ("efa", "health")}
        self._ordered: dict[str, object] = {}
        self._looked_at: dict[str, object] = {}
        self.view = "efa"
        specs = {"efa": check_spec(cluster, "efa"), "health": check_spec(cluster, "health")}
        specs["versions"] = versions_spec(cluster)
        self._tables = {name: TablePane(specs[name], id=f"checks-{name}") for name in VIEWS}
        for name, table in self._tables.items():
            table.title = {"efa": "EFA", "health": "health", "versions": "versions"}[name]
            table.set_class(name == self.view, "-front")
            table.state.pinned = True  # results come one by one: the worst is under the cursor

    def compose(self) -> ComposeResult:
        yield Line(id="checks-line")
        yield from self._tables.values()

    @property
    def table(self) -> TablePane:
        """The table in front."""
        return self._tables[self.view]

    @property
    def lead_key(self) -> str:
        """The key that one is here for, by the view in front."""
        return "checks.health" if self.view == "health" else "checks.efa"

    @property
    def subject(self) -> Subject | None:
        """The node under the cursor, by what is shown of it."""
        return self.table.subject

    def show_kind(self, view: str) -> None:
        """Bring a view to the front."""
        had_focus = self.table.has_focus
        self.view = view
        for name, table in self._tables.items():
            table.set_class(name == view, "-front")
        self.show_view(self._cluster)
        if had_focus:
            self.screen.set_focus(self.table)

    def action_check_view(self) -> None:
        """The next of EFA, health, versions."""
        self.show_kind(VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)])

    def action_back(self) -> None:
        """Stop the run that is under way, or let whoever is above leave something."""
        session = self._session()
        if session is None or session.over.is_set() or session.stopping:
            raise SkipAction
        session.stop()
        self._say()

    def show_view(self, cluster: Cluster) -> None:
        """Show the checks as they are known now."""
        self._order_columns()
        self.table.show_view(cluster)
        self._say()

    def show_age(self, cluster: Cluster) -> None:
        """Show only how old they are by now; the book looks whether others have checked."""
        self.show_view(cluster)

    def _order_columns(self) -> None:
        """Checks with trouble stand before the others, as soon as there is some."""
        rows = self.table.spec.rows(self._cluster.view) or ()
        if rows is self._looked_at.get(self.view):
            return
        self._looked_at[self.view] = rows
        if self.view == "versions":
            odd = odd_names(rows)
            self._set_columns(odd, lambda: version_columns(self._cluster.clock.now, odd))
        else:
            bad, fine = seen_checks(self.view, rows)
            self._set_columns((bad, fine), lambda: self._made[self.view].columns(bad, fine))

    def _set_columns(self, asked: object, make: Callable[[], Sequence[Column[Any]]]) -> None:
        if self._ordered.get(self.view) != asked:
            self._ordered[self.view] = asked
            self.table.set_columns(make())

    def _say(self) -> None:
        if self.is_mounted:
            self.query_one("#checks-line", Line).say(self._pieces())

    def _pieces(self) -> list[Piece]:
        """`EFA health versions · m switches`, then the run: how far it is, or when the last one was."""
        pieces: list[Piece] = [" "]
        for name in VIEWS:
            pieces += [(NAMES[name], "bright" if name == self.view else "dim"), " "]
        pieces.append(("m switches", "dim"))
        session = self._session()
        if session is not None and not session.over.is_set():
            stop = "stopping" if session.stopping else "esc stops"
            return [*pieces, (f"  {session.title}: {session.words()}", "accent"), (f" · {stop}", "dim")]
        return [*pieces, (f"  {words}" if (words := self._last()) else "", "dim")]

    def _last(self) -> str:
        """What came of the last run from here, else when somebody last checked."""
        session, book = self._session(), check_book(self._cluster)
        if session is not None:
            return session.end_words(names=False)
        kept = [run for run in book.kept if run.kind == self.view]
        if not kept:
            return ""
        when = moment(kept[-1].at, self._cluster.clock.now())
        return f"last run {when}, {len(kept[-1].nodes)} nodes; E: EFA, C: health"
