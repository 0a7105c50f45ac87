"""What a file of ours says, read on a thread: a home directory may hang. Imports no Textual."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

from cockpit.cluster import Cluster


class FileBook:
    """Nothing waits for the file; what is shown is the last that was read. `listen` is told what is new."""

    name: ClassVar[str]  # what listeners hear
    again_s: ClassVar[float]  # between two looks at the file: other cockpits write there, too

    def __init__(self, cluster: Cluster) -> None:
        self._steady = cluster.clock.steady
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
        if self._read_at is None or self._steady() - self._read_at >= self.again_s:
            self.read()

    def read(self) -> None:
        """Look at the file on a thread; once more when one is at it."""
        self._again = True
        if self._reading.acquire(blocking=False):
            self._read_at = self._steady()
            threading.Thread(target=self._work, name=f"{self.name}-file", daemon=True).start()

    def _work(self) -> None:
        self._wait()
        before = (self._known(), self._fault)
        try:
            while self._again:
                self._again = False
                self._look()
        finally:
            self._reading.release()
        if (self._known(), self._fault) != before:
            self._tell()

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener(self.name)

    def _wait(self) -> None:
        """What may have to come first."""

    def _known(self) -> object:
        """What was read; something else afterwards is news."""
        raise NotImplementedError

    def _look(self) -> None:
        """Read the file if it has changed; no OSError may get out."""
        raise NotImplementedError
