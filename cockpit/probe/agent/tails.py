"""Files that ranks write: the ends of their logs, and flight records. Each is read in a child."""

import base64
import os
import time
import zlib

from cockpit.probe.agent.thread import is_plain

TAIL = 24 * 1024
RECORD = 8 * 2**20


def tail(path: str) -> "dict[str, object]":
    """The end of a log, its size, and when it grew last."""
    if not is_plain(path):
        return {"path": path, "why": "no ordinary file"}
    with open(path, "rb") as file:
        told = os.fstat(file.fileno())
        start = max(0, told.st_size - TAIL)
        file.seek(start)
        data = file.read(TAIL)
    return {
        "path": path,
        "size": told.st_size,
        "mtime": told.st_mtime,
        "now": time.time(),
        "start": start,
        "z": packed(data),
    }


def record(path: str, since: float) -> "dict[str, object]":
    """A flight record, if it is of this run and not too big; {} when there is none."""
    if not is_plain(path):
        return {}
    told = os.stat(path)
    if told.st_mtime < since:
        return {"path": path, "why": "it is older than the job"}
    if told.st_size > RECORD:
        return {"path": path, "why": f"it is bigger than {RECORD >> 20} MiB"}
    with open(path, "rb") as file:
        return {"path": path, "mtime": told.st_mtime, "z": packed(file.read(RECORD))}


def packed(data: bytes) -> str:
    """Bytes as text that JSON can hold."""
    return base64.b64encode(zlib.compress(data, 6)).decode()


def record_places(environ: "dict[str, str]", rank: int, root: str) -> "list[str]":
    """Where a rank's flight record would lie; `root` is its own root directory as seen from here. Looks at nothing."""
    stems = [
        environ[name] for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE") if name in environ
    ]
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", "/nonexistent"), ".cache")
    stems += [os.path.join(cache, "torch", "comm_lib_trace_rank_"), "/tmp/nccl_trace_rank_"]  # noqa: S108
    return [base for stem in stems for base in (f"{root}{stem}{rank}", f"{stem}{rank}")]
