"""What was changed, by whom, and what came of it: JSON lines that outlive the program, one file a cluster.

Before the first command a `begin` line is on the disk, or the action does not happen; an `end` line follows. What has
a beginning and no end was killed in between: its outcome is unknown until somebody looks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cockpit.config import state_dir
from cockpit.export import private_dir
from cockpit.joins import nodes_of
from cockpit.kept_lines import cluster_file

LOCK_WAIT_S = 5.0
_MOST_BYTES = 4 * 1024 * 1024  # of one line
UNKNOWN = "outcome unknown"


class AuditError(Exception):
    """The record cannot be written (or read); str() says why in one line."""


def audit_dir() -> Path:
    """Where the records lie."""
    return state_dir() / "audit"


def new_id() -> str:
    """An id that sorts by time and can be typed: 20251130-105320-3f9a."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One action as the record tells it; `end` is None while it runs, or when it was killed."""

    begin: Mapping[str, Any]
    end: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        return str(self.begin.get("id", ""))

    @property
    def outcome(self) -> str:
        """ok, failed, refused, cancelled, unverified; running, or `outcome unknown` for one that was killed."""
        if self.end is not None:
            return str(self.end.get("outcome", UNKNOWN))
        return "running" if _still_runs(self.begin) else UNKNOWN

    @property
    def at(self) -> float:
        """When it began, in epoch seconds; 0 when that cannot be read."""
        try:
            moment = datetime.fromisoformat(str(self.begin.get("at")).replace("Z", "+00:00"))
        except ValueError:
            return 0.0
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()

    @property
    def took_s(self) -> float | None:
        took = (self.end or {}).get("took_s")
        return float(took) if isinstance(took, int | float) else None


class AuditLog:
    """The record of one cluster. Methods raise AuditError and nothing else."""

    def __init__(self, cluster: str, directory: Path | None = None) -> None:
        self.path = cluster_file(directory or audit_dir(), cluster)

    @classmethod
    def of(cls, path: Path) -> AuditLog:
        """The record in that file."""
        return cls(unquote(path.stem), path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """Put one line on the disk: whole, synced, and never mixed with another cockpit's."""
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":"), default=str).encode() + b"\n"
        if len(line) > _MOST_BYTES:
            raise AuditError(f"{self.path}: the record would have {len(line):,} bytes; act on fewer targets at once")
        try:
            private_dir(self.path.parent)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                self._write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise AuditError(f"{self.path}: {error.strerror or error}") from error

    def _write(self, descriptor: int, line: bytes) -> None:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise AuditError(f"{self.path}: is no plain file")
        if about.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
        _lock(descriptor, self.path)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line  # a cockpit was killed in the middle of its line
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, "no space left for the whole record")
            os.fsync(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)  # a record that is not safe must not look like one
            raise

    def entries(self) -> tuple[Entry, ...]:
        """Every action in the order of its beginning; lines that cannot be read are passed over."""
        begun: dict[str, Entry] = {}
        for record in self._records():
            key, phase = str(record.get("id", "")), record.get("phase")
            if phase == "begin":
                begun[key] = Entry(record)
            elif phase == "refused":
                begun[key] = Entry(record, record)
            elif phase == "end" and key in begun:
                begun[key] = Entry(begun[key].begin, record)
        return tuple(begun.values())

    def _records(self) -> Iterator[dict[str, Any]]:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise AuditError(f"{self.path}: {error.strerror or error}") from error
        for line in raw.split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue  # half a line
            if isinstance(record, dict):
                yield record

    def find(self, audit_id: str) -> Entry | None:
        """The action of that id (or of the only id that begins so)."""
        found = [entry for entry in self.entries() if entry.id == audit_id or entry.id.startswith(audit_id)]
        exact = [entry for entry in found if entry.id == audit_id]
        return exact[-1] if exact else found[0] if len(found) == 1 else None

    def pinned_by(self, action: str) -> frozenset[str]:
        """The nodes that this action of ours has pinned (SuspendExcNodes+=) and none has let go since."""
        pinned: dict[str, bool] = {}
        for entry in self.entries():
            ours = entry.begin.get("action") == action
            for argv, result in zip(_lists(entry.begin, "commands"), _lists(entry.end or {}, "results"), strict=False):
                word = next((word for word in map(str, argv) if word.startswith("SuspendExcNodes")), "")
                if word and isinstance(result, dict) and result.get("rc") == 0:
                    names = nodes_of(word.partition("=")[2])
                    pinned |= dict.fromkeys(names, ours and "+=" in word)
        return frozenset(name for name, ours in pinned.items() if ours)


def _lists(record: Mapping[str, Any], key: str) -> list[Any]:
    found = record.get(key)
    return found if isinstance(found, list) else []


def clusters_with_records(directory: Path | None = None) -> tuple[Path, ...]:
    """The files of every cluster that was ever changed from here."""
    return tuple(sorted((directory or audit_dir()).glob("*.jsonl")))


def _lock(descriptor: int, path: Path) -> None:
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise AuditError(f"{path}: another cockpit has held it for {LOCK_WAIT_S:g} s") from None
            time.sleep(0.02)


def process_mark() -> dict[str, Any]:
    """What tells this very process from a later one with the same number."""
    return {"host": os.uname().nodename, "pid": os.getpid(), "started": _started(os.getpid())}


def _still_runs(record: Mapping[str, Any]) -> bool:
    process = record.get("process")
    if not isinstance(process, dict) or process.get("host") != os.uname().nodename:
        return False
    pid = process.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _started(pid) == process.get("started")


def _started(pid: int) -> int | None:
    """When a process started, in ticks since boot; None where /proc does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] != "Z" else -1
