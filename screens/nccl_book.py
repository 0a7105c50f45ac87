"""The NCCL tests of one cluster as the pane shows them: each with what it is measured by. Imports no Textual.

The history is read on a thread: a home directory may hang. What is shown is the last that was read. What reads it
is loaded there, too: that takes as long as a first paint, which comes first.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cockpit.cluster import Cluster
from cockpit.config import Rules
from cockpit.nccl.place import history_path
from screens.file_book import FileBook
from screens.per_cluster import PerCluster

if TYPE_CHECKING:
    from cockpit.nccl.history import HistoryRun
    from cockpit.nccl.models import Expectation

FIRST_S = 0.5  # what a start may take until the history is looked at
_SAME = 0.02  # of a bandwidth: nearer than that two expectations are one


@dataclass(frozen=True, slots=True)
class NcclRow:
    """One run. `expected` is what its percentage is of; `before` the last good run of the same shape before it."""

    run: HistoryRun
    expected: Expectation | None = None
    before: HistoryRun | None = None
    earlier: tuple[HistoryRun, ...] = ()  # the last good runs of the shape, oldest first

    @property
    def trend_pct(self) -> float | None:
        """How much more than the last good one it reached at the same size."""
        from cockpit.nccl.history import busbw_at

        size, busbw = self.run.size_large_bytes, self.run.busbw_large_gbs
        old = busbw_at(self.before, size) if self.before is not None and size is not None else None
        return None if not old or busbw is None else 100 * (busbw / old - 1)


def rows_of(runs: Iterable[HistoryRun], rules: Rules) -> tuple[NcclRow, ...]:
    """Every run with what came before it, newest first."""
    from cockpit.nccl.history import shape_key

    good: dict[tuple[object, ...], list[HistoryRun]] = defaultdict(list)
    rows = []
    for run in sorted(runs, key=lambda run: run.at):
        same = good[shape_key(run.shape)]
        rows.append(_row(run, same, rules))
        if run.good and run.curve:
            same.append(run)
    return tuple(reversed(rows))


def _row(run: HistoryRun, same: list[HistoryRun], rules: Rules) -> NcclRow:
    from cockpit.nccl.history import BASELINE_RUNS, busbw_at

    size = run.size_large_bytes
    fitting = [old for old in same if size is not None and busbw_at(old, size) is not None][-BASELINE_RUNS:]
    return NcclRow(run, _expected(run, fitting, rules), fitting[-1] if fitting else None, tuple(fitting))


def _expected(run: HistoryRun, fitting: list[HistoryRun], rules: Rules) -> Expectation | None:
    """What it was judged by: the one of both that its percentage fits, for the catalogue may have changed since."""
    from cockpit.nccl.history import baseline
    from cockpit.nccl.models import Expectation
    from cockpit.nccl.verdict import expectation

    if not run.pct or not run.busbw_large_gbs or run.size_large_bytes is None:
        return None
    good = 100 * run.busbw_large_gbs / run.pct
    found = (baseline(fitting, run.shape, run.size_large_bytes, rules), expectation(run.shape, rules))
    rounded = 0.06 / run.pct  # it is kept with one decimal
    near = (each for each in found if each is not None and abs(each.good_gbs / good - 1) < _SAME + rounded)
    return next(near, Expectation("", good, None, None))


class NcclBook(FileBook[NcclRow]):
    """`rows` never waits; `listen` is told when there is something new."""

    name = "nccl"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, history_path(cluster.config.name))
        self._rules = cluster.rules
        self._skipped = 0
        self._awake = threading.Event()  # set once a first paint is no matter any more

    @property
    def skipped(self) -> int:
        """Lines that could not be read."""
        return self._skipped

    def rows(self) -> tuple[NcclRow, ...] | None:
        """Newest first, the very same object while nothing has changed; None before the history was read once."""
        self.read_when_due()
        return self._found

    def row(self, key: str) -> NcclRow | None:
        """The run with that id."""
        return next((row for row in self.rows() or () if row.run.id == key), None)

    def _wait(self) -> None:
        if not self._awake.wait(FIRST_S):
            self._awake.set()

    def _load(self, *, there: bool) -> tuple[NcclRow, ...]:
        if not there:
            return ()
        from cockpit.nccl.history import History

        history = History(self._path)
        rows = rows_of(history.load(), self._rules)
        self._skipped = history.skipped
        return rows


nccl_book = PerCluster(NcclBook)
