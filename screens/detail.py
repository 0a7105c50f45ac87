"""The details of one node or job: at once what is known, then Slurm's own record when it has answered."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from cockpit.cluster import Cluster
from cockpit.models import FaultError
from screens.content import styled
from screens.detail_lines import Line, job_lines, node_lines, pairs_lines
from screens.keys import bindings


class RecordRead(Message):
    """Slurm's record of one subject arrived, or the words for why it did not."""

    def __init__(self, subject: tuple[str, str], lines: Sequence[Line]) -> None:
        super().__init__()
        self.subject, self.lines = subject, lines


class DetailView(VerticalScroll, can_focus=True):
    """Opened on one subject at a time; it follows the cluster while it is in front."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("text")

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(id="detail")
        self._cluster = cluster
        self._subject = ("nodes", "")
        self._record: Sequence[Line] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="detail-text")

    def open(self, pane: str, key: str) -> None:
        """Show a row of the pane `nodes` or `queue` by its key."""
        self._subject = (pane, key)
        self._record = [[], [("reading Slurm's record …", "dim")]]
        self.scroll_home(animate=False)
        self.show_view()
        threading.Thread(target=self._read_record, args=(self._subject,), daemon=True).start()

    def show_view(self) -> None:
        """Draw the subject as it is known now."""
        pane, key = self._subject
        lines = self._node(key) if pane == "nodes" else self._job(key)
        self.border_title = styled([(f" {pane} › {key.rstrip('_')} ", "bright")])
        text = Content("\n").join(styled(line) for line in [*lines, *self._record])
        self.query_one("#detail-text", Static).update(text)

    def _node(self, name: str) -> list[Line]:
        node = next((node for node in self._cluster.view.nodes or () if node.name == name), None)
        return node_lines(self._cluster, node) if node else [[f"{name} is no longer among Slurm's nodes"]]

    def _job(self, key: str) -> list[Line]:
        queue = self._cluster.view.queue
        row = next((row for row in queue.rows if row.key == key), None) if queue else None
        return job_lines(self._cluster, row) if row else [[f"job {key.rstrip('_')} has left the queue"]]

    def _read_record(self, subject: tuple[str, str]) -> None:
        pane, key = subject
        try:
            if pane == "nodes":
                lines = pairs_lines("Slurm's record", self._cluster.node_detail(key).pairs)
            else:
                lines = pairs_lines(
                    "Slurm's record", self._cluster.job_detail(int(key.split("_")[0].split("+")[0])).pairs
                )
        except FaultError as error:
            lines = [[], [(f"Slurm's record: {error.fault.line()}", "warning")]]
        self.post_message(RecordRead(subject, lines))

    def on_record_read(self, event: RecordRead) -> None:
        """Add the record, unless something else was opened meanwhile."""
        if event.subject == self._subject:
            self._record = event.lines
            self.show_view()
