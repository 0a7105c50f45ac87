"""The source `storage`: FSx file systems and what CloudWatch measures of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone

from cockpit.aws_models import Part
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.formats import aws_storage
from cockpit.models import FaultError
from cockpit.sources.aws_client import AwsCalls
from cockpit.sources.base import SourceKey
from cockpit.storage_models import FileSystem, FileSystemUse, StorageReading

STORAGE: SourceKey[StorageReading] = SourceKey("storage")

NAMES_EVERY_S = 3600.0
WINDOW_S = 600  # CloudWatch is some minutes late


class StorageReads:
    """Reads the file systems whose ids `ids` gives; CloudWatch is asked only for what it lists for each."""

    def __init__(self, calls: AwsCalls, ids: Callable[[], Iterable[str]], clock: Clock = SYSTEM_CLOCK) -> None:
        self._calls, self._ids, self._clock = calls, ids, clock
        self._offered: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._use: dict[str, Part[FileSystemUse]] = {}

    def read(self) -> StorageReading:
        """One reading; raises FaultError when FSx itself refuses. CloudWatch may fail for each file system alone."""
        ids = sorted({word for word in self._ids() if aws_storage.FS_ID.fullmatch(word)})
        if not ids:
            return StorageReading(Part((), self._clock.now()))
        systems = self._systems(ids)
        self._use = {fs.id: self._part(fs.id) for fs in systems}
        return StorageReading(Part(systems, self._clock.now()), dict(self._use))

    def _systems(self, ids: Sequence[str]) -> tuple[FileSystem, ...]:
        what = "reading the file systems"
        return aws_storage.parse_file_systems(
            self._calls.pages("fsx", "describe_file_systems", what, FileSystemIds=list(ids))
        )

    def _part(self, fs: str) -> Part[FileSystemUse]:
        try:
            return Part(self._measure(fs), self._clock.now())
        except FaultError as error:
            old = self._use.get(fs, Part())
            return Part(old.data, old.read_at, error.fault)

    def _measure(self, fs: str) -> FileSystemUse:
        offered, now = self._names(fs), self._clock.now()
        asked = aws_storage.queries(fs, offered)
        if not asked:
            return FileSystemUse(offered=offered)
        pages = self._calls.pages(
            "cloudwatch",
            "get_metric_data",
            f"reading the metrics of {fs}",
            MetricDataQueries=asked,
            StartTime=datetime.fromtimestamp(now - WINDOW_S, timezone.utc),
            EndTime=datetime.fromtimestamp(now, timezone.utc),
        )
        return aws_storage.parse_use(pages, offered)

    def _names(self, fs: str) -> tuple[str, ...]:
        known = self._offered.get(fs)
        if known is None or self._clock.now() - known[0] > NAMES_EVERY_S:
            pages = self._calls.pages(
                "cloudwatch",
                "list_metrics",
                f"asking which metrics {fs} has",
                Namespace=aws_storage.NAMESPACE,
                Dimensions=[{"Name": "FileSystemId", "Value": fs}],
            )
            known = self._offered[fs] = self._clock.now(), aws_storage.parse_metric_names(pages)
        return known[1]


def ids_in(stack_ids: Iterable[str], mount_sources: Iterable[str]) -> tuple[str, ...]:
    """File system ids out of the stack's outputs and of what nodes have mounted (by DNS name)."""
    found = [*stack_ids, *(match[0] for source in mount_sources if (match := aws_storage.FS_ID.search(source)))]
    return tuple(dict.fromkeys(found))
