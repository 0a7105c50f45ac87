"""A pane with one table: how the cluster's view gets into it, and what its table asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cockpit.cluster import Cluster
from screens.grid import Grid
from screens.lines import Subject
from screens.pane_spec import PaneSpec
from screens.waiting import stale_words, waiting_words


class TablePane(Grid[Any]):
    """The grid of a PaneSpec; it shows the view it was last given and tells the age of what it shows."""

    scopes: tuple[str, ...] = ("grid",)  # of the key table; whoever holds this one may have more

    def __init__(self, spec: PaneSpec, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(
            spec.columns,
            spec.key,
            health=spec.health,
            fields=spec.fields,
            title=spec.id,
            sort=spec.sort,
            id=id or f"pane-{spec.id}",
        )
        self.spec = spec
        self._shown: Sequence[Any] | None = None
        self._shown_with: object = None
        self._drawn_at = 0.0  # steady clock

    def on_mount(self) -> None:
        """Begin with the columns that the config wants."""
        wanted = getattr(self.app, "columns_of_user", {})
        if self.spec.settable and self.spec.id in wanted:
            self.usual_choice = wanted[self.spec.id]
            self.choose_columns(self.choice)

    @property
    def table(self) -> TablePane:
        """The pane is its table; others hold one."""
        return self

    @property
    def subject(self) -> Subject | None:
        """What the cursor is on."""
        return None if self.cursor_key is None else Subject(self.spec.kind, self.cursor_key)

    def show_view(self, cluster: Cluster) -> None:
        """Show the cluster as it is known now; rows that are the very same objects cost nothing."""
        view, spec = cluster.view, self.spec
        rows, joined = spec.rows(view), spec.joined(view)
        self.empty, self.headline = spec.empty(view), spec.headline(view)
        if rows is None:
            self.set_waiting(waiting_words(cluster, spec.source))
        elif rows is self._shown and joined is self._shown_with:
            self.set_stale(stale_words(cluster, spec.source))
            self._tick_at_pace(cluster)
        else:
            self._shown, self._shown_with = rows, joined
            self._drawn_at = cluster.clock.steady()
            self.show(rows, stale=stale_words(cluster, spec.source), joined=joined)

    def _tick_at_pace(self, cluster: Cluster) -> None:
        # Other sources may have news every second; drawing all live cells for each would cost 1% of a core.
        steady = cluster.clock.steady()
        if steady - self._drawn_at >= cluster.store.state(self.spec.source).interval_s:
            self._drawn_at = steady
            self.tick()

    def show_age(self, cluster: Cluster) -> None:
        """Show only how old the data are by now, or why there are none yet."""
        if self._shown is None:
            self.set_waiting(waiting_words(cluster, self.spec.source))
        self.set_stale(stale_words(cluster, self.spec.source))
