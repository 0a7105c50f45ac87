"""The details of one thing: at once what is known of it, then what has to be asked for; or its explanation."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from textual.message import Message

from cockpit.cluster import Cluster
from cockpit.models import FaultError
from cockpit.sources.base import unexpected
from cockpit.sources.slurm import NODES, QUEUE
from cockpit.words import span
from screens import detail_registry
from screens.lines import Line, Subject, section
from screens.text_view import TextView
from screens.waiting import stale_words


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
        self._explains = False
        self._way = ""
        self._record: Sequence[Line] = ()
        self._record_at: float | None = None
        self._opened = False  # something else is shown than the last time
        self._reading: set[Subject] = set()

    def open(self, subject: Subject, way: str, *, explain: bool = False) -> None:
        """Show everything known about something, or explain it; `way` is how one came here, for the title."""
        self._subject, self._way, self._explains = subject, way, explain
        self._record, self._record_at = (), None
        self.clear_search()
        self._opened = True
        self.read_record()
        self.show_view()

    def read_record(self) -> None:
        """Ask Slurm for the subject's own record, anew when there is one already."""
        if self._explains or self._subject.kind not in detail_registry.RECORDS or not self._subject.key:
            return
        if not self._record and self._subject.kind not in detail_registry.QUIET:
            self._record = [[("  reading …", "dim")]]
        if self._subject not in self._reading:  # a key held down while the head hangs piles up no threads
            self._reading.add(self._subject)
            threading.Thread(target=self._read, args=(self._subject,), name="record", daemon=True).start()

    def show_view(self) -> None:
        """Draw the subject as it is known now."""
        tell = detail_registry.explain if self._explains else detail_registry.details
        lines = tell(self._cluster, self._subject)
        stale = stale_words(self._cluster, QUEUE if self._subject.kind == "job" else NODES)
        title = [(self._way, "bright"), (f" · {stale}" if stale else "", "warning")]
        opened, self._opened = self._opened, False
        self.show([*lines, *self._record_title(), *self._record], title=title, keep=not opened)

    def _record_title(self) -> list[Line]:
        if not self._record:
            return []
        title = f"{detail_registry.ANSWERED_BY.get(self._subject.kind, 'Slurm')}'s answers"
        if self._record_at is None:
            return [[], section(title)]
        age = span(self._cluster.clock.steady() - self._record_at)
        return [[], [(title, "bright"), (f"  read {age} ago, r reads them again", "dim")]]

    def _read(self, subject: Subject) -> None:
        try:
            lines = detail_registry.read_more(self._cluster, subject)
        except FaultError as error:
            lines = [[(f"  {error.fault.line()}", "warning")]]
        except Exception as error:  # told where it was asked for, whatever it is
            lines = [[(f"  {unexpected('reading the record', error).line()}", "warning")]]
        self.post_message(RecordRead(subject, lines))

    def on_record_read(self, event: RecordRead) -> None:
        """Add the record, unless something else was opened meanwhile."""
        self._reading.discard(event.subject)
        if event.subject == self._subject and not self._explains:
            self._record, self._record_at = event.lines, self._cluster.clock.steady()
            self.show_view()
