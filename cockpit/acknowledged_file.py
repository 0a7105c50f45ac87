"""Where acknowledged problems are kept: one small JSON file a cluster, shared by all cockpits of one user."""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cockpit.config import state_dir
from cockpit.export import private_dir, write_private
from cockpit.models import Acknowledgement, Fault, FaultError, FaultKind, Health
from cockpit.text import printable

SCHEMA = 1
MAX_BYTES = 2**20
MAX_NOTE = 300
LOCK_S = 2.0


@dataclass(frozen=True, slots=True)
class Kept:
    """One acknowledged problem: how bad it was then, and since when it is seen to be gone (epoch), if it is."""

    key: str
    acknowledgement: Acknowledgement
    health: Health
    count: int = 1
    gone_at: float | None = None


Book = Mapping[str, Kept]
_Stamp = tuple[int, int, int]


class AcknowledgedFile:
    """Reads and changes the file. Waits for the disk, so never to be called on the UI thread; not thread-safe.

    A file that cannot be read as ours is never written to: every method raises FaultError then.
    """

    def __init__(self, cluster: str, directory: Path | None = None) -> None:
        name = re.sub(r"[^\w.-]", lambda match: "".join(f"%{byte:02x}" for byte in match[0].encode()), cluster)
        self.path = (directory or state_dir() / "acknowledged") / f"{name}.json"
        self._stamp: _Stamp | None = None
        self._read = False

    def changed(self) -> Book | None:
        """What the file says when it is not as it was at the last look, else None."""
        with self._told("reading"):
            stamp = self._stamp_now()
            if self._read and stamp == self._stamp:
                return None
            return self._load()

    def change(self, edit: Callable[[Book], Book]) -> Book:
        """Read the file as it is now, edit that, and put it in the place of the old one if it differs."""
        with self._told("writing"):
            private_dir(self.path.parent)
            with self._alone():
                before = self._load()
                after = edit(before)
                if dict(after) != dict(before):
                    self._write(after)
                return after

    @contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        what = f"{doing} {printable(str(self.path))}"
        try:
            yield
        except OSError as error:
            self._read = False
            denied = isinstance(error, PermissionError)
            step = "give it back to your login" if denied else "see whether the disk is full or the directory hangs"
            kind = FaultKind.DENIED if denied else FaultKind.FAILED
            raise FaultError(Fault(kind, what, error.strerror or str(error), step)) from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self._read = False
            step = "move that file away to begin anew; until then nothing is acknowledged or taken back"
            why = f"it cannot be read as a list of acknowledged problems ({printable(str(error))[:80]})"
            raise FaultError(Fault(FaultKind.GARBLED, what, why, step)) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other cockpits from changing the file meanwhile; one that hangs is not waited for."""
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + LOCK_S
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise TimeoutError(0, "another cockpit is writing it") from None
                    time.sleep(0.02)
            yield
        finally:
            os.close(lock)

    def _stamp_now(self) -> _Stamp | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _load(self) -> Book:
        # The stamp comes first: what is written in between is then seen at the next look.
        self._stamp, self._read = self._stamp_now(), True
        if self._stamp is None:
            return {}
        with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError("it is no regular file")
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ValueError("it is too large")
        return _book(json.loads(raw))

    def _write(self, book: Book) -> None:
        told = {"schema": SCHEMA, "acknowledged": [_record(kept) for kept in book.values()]}
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}.{time.monotonic_ns()}")
        try:
            write_private(fresh, json.dumps(told, ensure_ascii=False, indent=1) + "\n")
            fresh.replace(self.path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise
        self._stamp = self._stamp_now()


def _record(kept: Kept) -> dict[str, Any]:
    told = kept.acknowledgement
    return {
        "key": kept.key,
        "note": told.note,
        "who": told.who,
        "at": told.at,
        "health": kept.health.value,
        "count": kept.count,
        "gone_at": kept.gone_at,
    }


def _book(told: Any) -> Book:
    if told["schema"] != SCHEMA:
        raise ValueError("another version of the cockpit wrote it")
    return {kept.key: kept for kept in map(_kept, told["acknowledged"])}


def _kept(record: Any) -> Kept:
    gone_at = record["gone_at"]
    told = Acknowledgement(printable(record["note"][:MAX_NOTE]), printable(record["who"][:60]), _number(record["at"]))
    return Kept(
        printable(record["key"]),
        told,
        Health(record["health"]),
        int(_number(record["count"])),
        None if gone_at is None else _number(gone_at),
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e12:
        raise ValueError("a number that is none")
    return float(value)
