"""The record of changes, what the sources have met and what daemons complained of, for the log pane. No Textual.

The record is read on a thread: a home directory may hang. What is shown is the last that was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from actions.audit import AuditError, AuditLog, Entry
from cockpit.cluster import Cluster
from cockpit.event_models import ClusterEvent, ClusterEvents
from cockpit.kept_lines import stamp_of
from cockpit.models import Health
from cockpit.store import Trouble
from cockpit.text import printable
from screens.file_book import FileBook
from screens.per_cluster import PerCluster


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line of the log: a change made or refused, a fault that a source has met, or what a daemon complained of."""

    key: str
    at: float
    entry: Entry | None = None
    outcome: str = ""  # of the entry when it was read: a look at the process table
    trouble: Trouble | None = None
    event: ClusterEvent | None = None


class LogBook(FileBook[LogRow]):
    """`rows` never waits; `listen` is told when it has something new."""

    name = "log"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._store = cluster, cluster.store
        self._log = AuditLog(cluster.config.name)
        super().__init__(cluster, self._log.path)
        self._made: tuple[object, ...] = ()
        self._rows: tuple[LogRow, ...] = ()

    def rows(self) -> tuple[LogRow, ...] | None:
        """Newest first, the very same object while nothing has changed; None before the record was read once."""
        self.read_when_due()
        troubles = self._store.troubles()
        if self._found is None:
            return None
        events = self._cluster.view.events
        if self._made != (self._found, troubles, events):
            self._made = (self._found, troubles, events)
            found = [*self._found, *(_trouble_row(trouble) for trouble in troubles), *_event_rows(events)]
            self._rows = tuple(sorted(found, key=lambda row: row.at, reverse=True))
        return self._rows

    def row(self, key: str) -> LogRow | None:
        """The line with that key."""
        return next((row for row in self.rows() or () if row.key == key), None)

    def _look(self) -> None:
        try:
            stamp = stamp_of(self._path)
        except OSError:  # reading it says why
            stamp = None
        if self._found is not None and stamp == self._stamp and not self._unended():
            return
        try:
            entries, self._fault = self._log.entries(), ""
        except AuditError as error:
            entries, self._fault = (), str(error)
        self._found = tuple(LogRow(entry.id, entry.at, entry, entry.outcome) for entry in entries)
        self._stamp = stamp

    def _unended(self) -> bool:
        """Something runs: whether its process still lives is not written in the file."""
        return any(row.outcome == "running" for row in self._found or ())


def _trouble_row(trouble: Trouble) -> LogRow:
    return LogRow(f"{printable(trouble.source)}#{trouble.number}", trouble.since, trouble=trouble)


def _event_rows(events: ClusterEvents | None) -> Iterator[LogRow]:
    """What deviates; a daemon's other events are only how it goes about its work."""
    told = {
        f"{event.source}@{event.at} {event.type} {event.cause} {event.text}": event
        for event in (events.events if events else ())
        if event.health is not Health.OK and event.at is not None
    }
    for key, event in told.items():
        yield LogRow(printable(key), event.at or 0.0, event=event)


log_book = PerCluster(LogBook)
