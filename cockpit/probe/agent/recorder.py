"""Asks PyTorch's flight recorder for a dump through its named pipe, on demand only; it goes on recording."""

import errno
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.probe.agent.ranks import Process

DUMP_S = 15.0  # a few seconds have been seen for 24 ranks
_STABLE_S = 0.6
_STEM = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"


def pipe_of(lead: "Process", proc: str) -> str:
    """Where the named pipe of a rank lies by its environment, "" when none was asked for."""
    environ, rank = lead.get("env"), lead.get("rank")
    if not isinstance(environ, dict) or not isinstance(rank, int) or not environ.get(_STEM):
        return ""
    return f"{proc}/{lead['pid']}/root{environ[_STEM]}{rank}.pipe"


def trigger(path: str) -> str:
    """Write one byte into the pipe; why not, or "". Never waits: a pipe that nobody reads refuses at once."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        return "nobody reads its pipe" if error.errno == errno.ENXIO else f"its pipe: {error.strerror}"
    try:
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return "what stands for its pipe is none"
        os.write(fd, b"1")
    except OSError as error:
        return f"its pipe: {error.strerror}"
    finally:
        os.close(fd)
    return ""


def dumped(path: str, places: "list[str]", deadline_s: float = DUMP_S) -> "dict[str, object]":
    """Trigger one rank and wait until its record is newer and grows no more; {"error": why} when it is not."""
    began = time.time() - 1.0  # file systems keep coarser times than clocks
    why = trigger(path)
    if why:
        return {"error": why}
    until, seen, since = time.monotonic() + deadline_s, (0.0, 0), time.monotonic()
    while time.monotonic() < until:
        now = max((_told(place) for place in places), default=(0.0, 0))
        if now != seen:
            seen, since = now, time.monotonic()
        if seen[0] >= began and seen[1] > 0 and time.monotonic() - since >= _STABLE_S:
            return {}
        time.sleep(0.1)
    return {"error": f"it was asked for its flight record and wrote none within {deadline_s:g} s"}


def _told(path: str) -> "tuple[float, int]":
    try:
        told = os.stat(path)
    except OSError:
        return 0.0, 0
    return told.st_mtime, told.st_size
