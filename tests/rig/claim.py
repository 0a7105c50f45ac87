"""Instance numbers: each running rig on this machine holds one, and with it its addresses and ports."""

from __future__ import annotations

import fcntl
import os
import socket
from dataclasses import dataclass
from pathlib import Path

INSTANCES = 100


@dataclass(frozen=True, slots=True)
class Claim:
    """A held number. Whoever has the open file, also by inheritance, keeps it; the last close frees it."""

    instance: int
    fd: int


def lock_path(instance: int) -> Path:
    # Not tempfile.gettempdir(): rigs started with different TMPDIR must still see each other.
    return Path(f"/tmp/cockpit-rig.{instance}.lock")


def claim() -> Claim:
    """The lowest number that no rig holds and whose ports no other program uses."""
    for instance in range(INSTANCES):
        fd = _lock(instance)
        if fd is None:
            continue
        if _ports_free(10_000 + 100 * instance):
            return Claim(instance, fd)
        os.close(fd)
    raise OSError(f"all {INSTANCES} rig instances of this machine are taken")


def release(instance: int) -> None:
    """Take the lock file away, unless another rig holds the number by now."""
    fd = _lock(instance)
    if fd is not None:
        lock_path(instance).unlink(missing_ok=True)
        os.close(fd)


def _lock(instance: int) -> int | None:
    path = lock_path(instance)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The file may have been unlinked between open and lock; then the lock guards nothing.
        if os.fstat(fd).st_ino == path.stat().st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def _ports_free(base: int) -> bool:
    for port in range(base, base + 20):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                return False
    return True
