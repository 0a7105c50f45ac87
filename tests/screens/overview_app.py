"""The overview in an app of its own: over a cluster that stands still, or as a program over the demo's fleet."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

import themes
from cockpit.cluster import Cluster
from screens import grid_messages
from screens.filter_bar import FilterBar
from screens.last_steps import LookApp
from screens.overview import OverviewPane
from tests.still import still_cluster


class OverviewApp(LookApp[None]):
    """The overview over the filter line, in the cockpit's own look."""

    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "quit"), Binding("slash", "filter_front", priority=True)]

    def __init__(self, cluster: Cluster, look: themes.Look | None = None) -> None:
        super().__init__(look)
        self.cluster, self.clock = cluster, cluster.clock
        self.overview = OverviewPane(cluster)
        self.heard: list[Any] = []

    def compose(self) -> ComposeResult:
        """The overview fills the screen."""
        yield self.overview
        yield FilterBar()

    def on_mount(self) -> None:
        """As the cockpit does: the table of the pane gets the focus, then it is filled."""
        self.screen.set_focus(self.overview.table)
        self.overview.show_view(self.cluster)

    def action_filter_front(self) -> None:
        """Type a filter for the table in front."""
        self.query_one(FilterBar).open(self.overview.table)

    @on(grid_messages.Opened)
    def open_row(self, event: grid_messages.Opened) -> None:
        """Note it."""
        self.heard.append(event)


def main() -> None:
    """Show the still demo cluster in a look of one's choice: what tests with a real terminal look at."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--theme", default="auto")
    parser.add_argument("--ascii", action="store_true")
    arguments = parser.parse_args()
    cluster, _, _ = still_cluster()
    cluster.read_once()
    OverviewApp(cluster, themes.choose_look(arguments.theme, ascii=arguments.ascii)).run()


if __name__ == "__main__":
    main()
