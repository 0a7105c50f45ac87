"""What is kept of a cluster from one start to the next: its file's name, and JSON lines that only ever grow."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar
from urllib.parse import quote

from cockpit.export import private_dir

T = TypeVar("T")
_READ_BYTES = 32 * 2**20  # the newest part of a longer file
_PIECE_BYTES = 2**18
_NONE_OF_OURS = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)


def cluster_file(directory: Path, cluster: str, suffix: str = ".jsonl") -> Path:
    """The file of that cluster: whatever its name is, it neither leaves the directory nor collides with another."""
    return directory / f"{quote(cluster, safe='')}{suffix}"


def stamp_of(path: Path) -> object:
    """Something else when the file was changed, None when it is not there; raises OSError."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return about.st_mtime_ns, about.st_size


def run_id(at: float) -> str:
    """A name that no other run has, for one that began at `at` (epoch seconds)."""
    return f"{int(at * 1000):x}-{os.urandom(3).hex()}"


class KeptLines(Generic[T]):
    """The records of one file. Several cockpits may append at once; a line that broke off spoils no other."""

    def __init__(self, path: Path, read: Callable[[Any], T], max_line: int) -> None:
        """`read` makes a record of what a line's JSON holds; whatever it trips over is a line that is passed over."""
        self.path = path
        self.skipped = 0  # lines of the last load() that could not be read
        self._read, self._max_line = read, max_line

    def load(self) -> tuple[T, ...]:
        """Every record, oldest first; () when nothing was ever kept. Raises OSError when the file cannot be read."""
        self.skipped = 0
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                start = max(0, size - _READ_BYTES)
                file.seek(start)
                lines = file.read(_READ_BYTES).split(b"\n")[1 if start else 0 :]
        except FileNotFoundError:
            return ()
        found = [self._record(line) for line in lines if line.strip()]
        kept = tuple(each for each in found if each is not None)
        self.skipped = len(found) - len(kept)
        return kept

    def newest_first(self) -> Iterator[T]:
        """The records from the last one on, none before it is asked for; raises OSError as load() does."""
        try:
            with self.path.open("rb") as file:
                yield from (each for line in _backwards(file) if (each := self._record(line)) is not None)
        except FileNotFoundError:
            return

    def _record(self, line: bytes) -> T | None:
        """One line; None for what is none of ours."""
        if len(line) > self._max_line:
            return None
        try:
            return self._read(json.loads(line))
        except _NONE_OF_OURS:
            return None

    def _add(self, record: Mapping[str, Any]) -> None:
        """Append one line; raises OSError (no room, no right)."""
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        private_dir(self.path.parent)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self.path, flags, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            broken = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            data = (b"\n" if broken else b"") + line + b"\n"
            while data:
                data = data[file.write(data) or 0 :]


def _backwards(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file from its end, read piece by piece; of a long one only the newest part."""
    size = at = file.seek(0, os.SEEK_END)
    rest = b""
    while at > max(0, size - _READ_BYTES):
        step = min(_PIECE_BYTES, at)
        at -= step
        file.seek(at)
        rest, *lines = (file.read(step) + rest).split(b"\n")
        yield from (line for line in reversed(lines) if line.strip())
    if not at and rest.strip():
        yield rest
