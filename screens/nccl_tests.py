"""NCCL tests, as a part of CockpitScreen: their pane, and the way from a key to a test that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.screen import Screen

from cockpit.cluster import Cluster

if TYPE_CHECKING:
    from screens.pane import TablePane
    from screens.pane_spec import PaneSpec


class NcclTests(Screen[None]):
    """What runs a test, and the dialogs for it, are imported when they are first needed."""

    cluster: Cluster

    def nccl_spec(self, heard: Callable[[str], None]) -> PaneSpec:
        """The tests of this cluster; `heard` is called on a thread when there is something new of them."""
        from screens.nccl_book import nccl_book
        from screens.nccl_table import nccl_spec

        nccl_book(self.cluster).listen(heard)
        return nccl_spec(self.cluster)

    def make_nccl(self, heard: Callable[[str], None]) -> TablePane:
        """The pane of the tests."""
        from screens.pane import TablePane

        return TablePane(self.nccl_spec(heard))
