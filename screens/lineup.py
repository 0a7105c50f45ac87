"""All clusters of the config, one line each; enter opens one."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from cockpit.clusters import Clusters
from cockpit.lineup import ClusterLine, cluster_line
from screens import chrome, grid_messages, outlet
from screens.column_choice import Choice
from screens.filter_bar import FilterBar
from screens.grid import Grid
from screens.keymap import DEFAULT, Keymap
from screens.keys import bindings
from screens.lineup_table import FIELDS, columns
from screens.modal import Modal

TICK_S = 1.0


class LineupScreen(Modal[str]):
    """Dismissed with the name of the cluster to open, or with None.

    While it is open every cluster is read: nodes and queue only, no node is dialled for its GPUs.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("lineup")

    def __init__(self, clusters: Clusters, keymap: Keymap = DEFAULT, choice: Choice | None = None) -> None:
        super().__init__()
        self._clusters, self._keymap, self._choice = clusters, keymap, choice

    def compose(self) -> ComposeResult:
        self._grid: Grid[ClusterLine] = Grid(
            columns(),
            lambda line: line.name,
            health=lambda line: line.health,
            fields=FIELDS,
            title="clusters",
            sort="worst",
            id="lineup",
        )
        self._grid.choose_columns(self._choice)
        yield self._grid
        yield FilterBar()
        yield chrome.Line(id="lineup-keys")

    def on_mount(self) -> None:
        """Read every cluster, and look once a second."""
        for name in self._clusters.names:
            self._clusters.open(name).start(gpus=False)
        pieces = chrome.key_pieces(self.app.size.width, "lineup", keymap=self._keymap)
        self.query_one("#lineup-keys", chrome.Line).say([(" enter ", "accent"), "open", *pieces])
        self._grid.focus()
        self.show_lines()
        self.set_interval(TICK_S, self.show_lines)

    @property
    def choice(self) -> Choice | None:
        """The columns as they were chosen here."""
        return self._grid.choice

    def show_lines(self) -> None:
        """Show what is known of each cluster now."""
        self._grid.show([cluster_line(cluster) for cluster in self._clusters.opened()])

    def action_filter(self) -> None:
        """Type a filter for the clusters."""
        self.query_one(FilterBar).open(self._grid)

    def action_refresh_now(self) -> None:
        """Read every cluster again now."""
        for cluster in self._clusters.opened():
            cluster.refresh()

    def action_close(self) -> None:
        """Back to where one was."""
        self.dismiss(None)

    @on(grid_messages.CopyRequested)
    def copy_names(self, event: grid_messages.CopyRequested) -> None:
        """Put the names of the clusters on the clipboard."""
        outlet.copy(self.app, "\n".join(event.keys))

    @on(grid_messages.ExportRequested)
    def say_no_export(self) -> None:
        """A key that does nothing must say so."""
        outlet.tell(self.app, "there is no export of the clusters; open one of them first")

    @on(grid_messages.ColumnsRequested)
    def choose_columns(self) -> None:
        """Which columns are shown."""
        from screens.column_chooser import ColumnsScreen, kept_words

        self.app.push_screen(ColumnsScreen(self._grid, kept_words(remember=False)))

    @on(grid_messages.Opened)
    def choose(self, event: grid_messages.Opened) -> None:
        """Open the cluster of that line."""
        event.stop()
        self.dismiss(event.key)
