"""Problems that somebody has acknowledged: out of the way until they get worse, grow, or come back."""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Iterable
from dataclasses import replace

from cockpit.acknowledged_file import MAX_NOTE, AcknowledgedFile, Book, Kept
from cockpit.clock import Clock
from cockpit.models import Acknowledgement, Fault, FaultError, Health, Problem
from cockpit.text import printable

GONE_FOR_S = 600.0
FIRST_LOOKS_S = 60.0  # a cockpit just started has not heard every node yet
_OVER_MINUTES = ("job:idle:", "job:low:", "job:lag:", "stuck")  # such a problem needs minutes to be seen at all
_RANK = {health: rank for rank, health in enumerate(Health)}

_Change = tuple[float, Kept | None]  # when the record that it is about was made, and what becomes of it


class Acknowledged:
    """Which problems of a cluster are acknowledged, by this cockpit and all others of the same user.

    `marked` and `observe` look at memory only; `sync`, `acknowledge` and `take_back` wait for the disk.
    """

    def __init__(self, file: AcknowledgedFile, clock: Clock, *, slow_rules_s: float = 300.0) -> None:
        self._file, self._clock, self._slow_s = file, clock, slow_rules_s
        self._book: Book = {}
        self._pending: dict[str, _Change] = {}
        self._fault: Fault | None = None
        self._lock, self._disk = threading.Lock(), threading.Lock()
        self._whole_since: float | None = None
        self._seen: set[str] = set()

    def book(self) -> Book:
        """Every record by key, as far as it was read."""
        return self._book

    def fault(self) -> Fault | None:
        """Why the file cannot be read or written just now."""
        return self._fault

    def marked(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Open ones first, then the acknowledged ones, each in the given order."""
        book, now = self._book, self._clock.now()
        found = [
            replace(problem, acknowledged=kept.acknowledgement)
            if (kept := book.get(problem.key)) is not None and not _ended(kept, problem, now)
            else problem
            for problem in problems
        ]
        return tuple(sorted(found, key=lambda problem: problem.acknowledged is not None))

    def observe(self, problems: Iterable[Problem], *, whole: bool) -> None:
        """Look which acknowledgements end by what is there now; `whole`: nothing else can be there.

        A problem is taken for gone when it was there before this look, or when this cockpit has looked for long
        enough to have seen it.
        """
        now, there = self._clock.now(), {problem.key: problem for problem in problems}
        self._whole_since = (self._whole_since or now) if whole else None
        with self._lock:
            for kept in list(self._book.values()):
                problem = there.get(kept.key)
                after = self._gone(kept, now) if problem is None else _after(kept, problem, now)
                if after != kept:
                    self._pending[kept.key] = kept.acknowledgement.at, after
            self._book = _applied(self._book, self._pending)
        # Only what may still be asked for: keys of jobs are new ones for ever.
        self._seen = {key for key in self._seen | there.keys() if key in there or key in self._book}

    def _gone(self, kept: Kept, now: float) -> Kept:
        if self._whole_since is None or kept.gone_at is not None:
            return kept
        wait_s = self._slow_s + FIRST_LOOKS_S if kept.key.startswith(_OVER_MINUTES) else FIRST_LOOKS_S
        if kept.key not in self._seen and now - self._whole_since < wait_s:
            return kept
        # Once for every time it was seen: another cockpit may see it still, and both would write without end.
        self._seen.discard(kept.key)
        return replace(kept, gone_at=now)

    def sync(self) -> None:
        """Read what other cockpits have changed, and write what has ended; a failure is kept in `fault()`."""
        with self._disk:
            try:
                with self._lock:
                    pending = dict(self._pending)
                book = self._file.change(lambda now: _applied(now, pending)) if pending else self._file.changed()
            except FaultError as error:
                self._fault = error.fault
                return
            self._fault = None
            self._take(book, pending)

    def acknowledge(self, problem: Problem, note: str) -> None:
        """Remember that somebody knows of this problem; raises FaultError when it cannot be written down."""
        told = Acknowledgement(printable(note.strip()[:MAX_NOTE]), login(), self._clock.now())
        self._change(problem.key, Kept(problem.key, told, problem.health, problem.count))

    def take_back(self, key: str) -> None:
        """Make it an open problem again; does nothing when it is one. Raises FaultError."""
        self._change(key, None)

    def _change(self, key: str, kept: Kept | None) -> None:
        with self._disk:
            with self._lock:
                self._pending.pop(key, None)
                pending = dict(self._pending)
            book = self._file.change(lambda now: _with(_applied(now, pending), key, kept))
            self._fault = None
            self._take(book, pending)

    def _take(self, book: Book | None, written: dict[str, _Change]) -> None:
        with self._lock:
            self._pending = {key: change for key, change in self._pending.items() if written.get(key) != change}
            if book is not None:
                self._book = _applied(book, self._pending)


def login() -> str:
    """The login that this cockpit runs as."""
    try:
        return printable(pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:
        return f"uid {os.getuid()}"


def _ended(kept: Kept, problem: Problem, now: float) -> bool:
    """Whether it is worse than what was acknowledged, or comes again."""
    if _RANK[problem.health] > _RANK[kept.health] or problem.count > kept.count:
        return True
    return kept.gone_at is not None and now - kept.gone_at > GONE_FOR_S


def _after(kept: Kept, problem: Problem, now: float) -> Kept | None:
    return None if _ended(kept, problem, now) else replace(kept, gone_at=None)


def _applied(book: Book, changes: dict[str, _Change]) -> Book:
    """The book with these changes, but for records that somebody has made anew since."""
    for key, (at, kept) in changes.items():
        if key in book and book[key].acknowledgement.at == at:
            book = _with(book, key, kept)
    return book


def _with(book: Book, key: str, kept: Kept | None) -> Book:
    rest = {name: record for name, record in book.items() if name != key}
    return rest if kept is None else {**rest, key: kept}
