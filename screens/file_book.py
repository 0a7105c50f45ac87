"""What a file of ours says, read on a thread: a home directory may hang. Imports no Textual."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from cockpit.cluster import Cluster
from cockpit.kept_lines import stamp_of

T = TypeVar("T")
AGAIN_S = 2.0  # between two looks at the file: other cockpits, the command line and cron write there, too


class FileBook(Generic[T]):
    """Nothing waits for the file; what is shown is the last that was read. `listen` is told what is new."""

    name: ClassVar[str]  # what listeners hear

    def __init__(self, cluster: Cluster, path: Path) -> None:
        self._steady, self._path = cluster.clock.steady, path
        self._found: tuple[T, ...] | None = None  # None before the file was read once
        self._stamp: object = None
        self._fault = ""
        self._reading = threading.Lock()
        self._again = False
        self._read_at: float | None = None
        self._listeners: list[Callable[[str], None]] = []

    @property
    def fault(self) -> str:
        """Why the file could not be read; "" when it could."""
        return self._fault

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call listener(name) on the thread of whatever is new."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def read_when_due(self) -> None:
        """Look at the file on a thread when the last look is some time ago."""
        if self._read_at is None or self._steady() - self._read_at >= AGAIN_S:
            self.read()

    def read(self) -> None:
        """Look at the file on a thread; once more when one is at it."""
        self._again = True
        if self._reading.acquire(blocking=False):
            self._read_at = self._steady()
            threading.Thread(target=self._work, name=f"{self.name}-file", daemon=True).start()

    def _work(self) -> None:
        self._wait()
        before = (self._found, self._fault)
        try:
            while self._again:
                self._again = False
                self._look()
        finally:
            self._reading.release()
        if (self._found, self._fault) != before:
            self._tell()

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener(self.name)

    def _wait(self) -> None:
        """What may have to come first."""

    def _look(self) -> None:
        """Read the file if it has changed; no OSError may get out."""
        try:
            stamp = stamp_of(self._path)
            if self._found is not None and stamp == self._stamp and not self._fault:
                return
            self._found = self._load(there=stamp is not None)
            self._stamp, self._fault = stamp, ""
        except OSError as error:  # what was read before stays
            self._found, self._fault = self._found or (), error.strerror or str(error)

    def _load(self, *, there: bool) -> tuple[T, ...]:
        """Everything in the file; raises OSError."""
        raise NotImplementedError
