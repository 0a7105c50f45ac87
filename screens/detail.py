"""The details of one node or job, or every problem: at once what is known, then Slurm's own record."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from textual.message import Message

from cockpit.cluster import Cluster
from cockpit.models import FaultError
from cockpit.sources.base import unexpected
from cockpit.sources.slurm import NODES, QUEUE
from cockpit.words import span
from screens.detail_lines import job_lines, node_lines, pairs_lines, problem_lines
from screens.gpu_detail import find_gpu, gpu_lines
from screens.lines import Line, Subject, section
from screens.pane import stale_words
from screens.text_view import TextView


class RecordRead(Message):
    """Slurm's record of one subject arrived, or the words for why it did not."""

    def __init__(self, subject: Subject, lines: Sequence[Line]) -> None:
        super().__init__()
        self.subject, self.lines = subject, lines


class DetailView(TextView):
    """Opened on one subject at a time; it follows the cluster while it is in front."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(id="detail")
        self._cluster = cluster
        self._subject = Subject("problem", "")
        self._record: Sequence[Line] = ()
        self._record_at: float | None = None
        self._opened = False  # something else is shown than the last time

    def open(self, subject: Subject) -> None:
        """Show everything known about something."""
        self._subject = subject
        self._record, self._record_at = (), None
        self.clear_search()
        self._opened = True
        self.read_record()
        self.show_view()

    def read_record(self) -> None:
        """Ask Slurm for the subject's own record, anew when there is one already."""
        if self._subject.kind not in ("node", "job"):
            return
        if not self._record:
            self._record = [[("  reading …", "dim")]]
        threading.Thread(target=self._read, args=(self._subject,), daemon=True).start()

    def show_view(self) -> None:
        """Draw the subject as it is known now."""
        kind, key = self._subject.kind, self._subject.key
        tell = {"node": self._node, "gpu": self._gpu, "job": self._job, "problem": self._problems}
        lines = tell[kind](key)
        name = f"{kind} › {key.rstrip('_')}" if key else "problems"
        stale = stale_words(self._cluster, QUEUE if kind == "job" else NODES)
        title = [(name, "bright"), (f" · {stale}" if stale else "", "warning")]
        opened, self._opened = self._opened, False
        self.show([*lines, *self._record_title(), *self._record], title=title, keep=not opened)

    def _record_title(self) -> list[Line]:
        if not self._record:
            return []
        if self._record_at is None:
            return [[], section("Slurm's record")]
        age = span(self._cluster.clock.steady() - self._record_at)
        return [[], [("Slurm's record", "bright"), (f"  read {age} ago, r reads it again", "dim")]]

    def _node(self, name: str) -> list[Line]:
        node = next((node for node in self._cluster.view.nodes or () if node.name == name), None)
        return node_lines(self._cluster, node) if node else [[f"{name} is no longer among Slurm's nodes"]]

    def _job(self, key: str) -> list[Line]:
        queue = self._cluster.view.queue
        row = next((row for row in queue.rows if row.key == key), None) if queue else None
        return job_lines(self._cluster, row) if row else [[f"job {key.rstrip('_')} has left the queue"]]

    def _gpu(self, key: str) -> list[Line]:
        row = find_gpu(self._cluster, key)
        return gpu_lines(self._cluster, row) if row else [[f"{key} is gone: its node is down or no longer watched"]]

    def _problems(self, _: str) -> list[Line]:
        return problem_lines(self._cluster)

    def _read(self, subject: Subject) -> None:
        try:
            pairs = self._pairs(subject)
            lines = pairs_lines(pairs)
        except FaultError as error:
            lines = [[(f"  {error.fault.line()}", "warning")]]
        except Exception as error:  # told where it was asked for, whatever it is
            lines = [[(f"  {unexpected('reading the record', error).line()}", "warning")]]
        self.post_message(RecordRead(subject, lines))

    def _pairs(self, subject: Subject) -> Sequence[tuple[str, str]]:
        key = subject.key
        if subject.kind == "node":
            return self._cluster.node_detail(key).pairs
        queue = self._cluster.view.queue
        row = next((row for row in queue.rows if row.key == key), None) if queue else None
        return self._cluster.job_detail(row.lead).pairs if row else ()

    def on_record_read(self, event: RecordRead) -> None:
        """Add the record, unless something else was opened meanwhile."""
        if event.subject == self._subject:
            self._record, self._record_at = event.lines, self._cluster.clock.steady()
            self.show_view()
