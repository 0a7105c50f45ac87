"""Python stacks by py-spy, which is asked not to stop the process (`--nonblocking`).

A job's own environment is written by its user, and this login may well be root or have sudo: a program that somebody
else could have put there is never run.
"""

import glob
import json
import os
import stat

from cockpit.probe.agent.child import Nursery, program
from cockpit.probe.agent.question import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.probe.agent.child import Child

_PLACES = ("/usr/local/bin/py-spy", "/usr/bin/py-spy", "/opt/*/bin/py-spy")
_MAX_THREADS, _MAX_FRAMES = 12, 40


def find(proc: str, pids: "list[int]") -> str:
    """py-spy beside the interpreter of one of the processes, in PATH or in the usual places; "" when none is `ours`."""
    beside = []
    for pid in pids[:8]:
        for path in (f"{proc}/{pid}/exe",):
            try:
                beside.append(os.path.join(os.path.dirname(os.readlink(path)), "py-spy"))
            except OSError:
                continue
        beside += _virtual(proc, pid)
    paths = [f"{folder}/py-spy" for folder in os.environ.get("PATH", "").split(":") if folder.startswith("/")]
    for pattern in (*beside, *paths, *_PLACES):
        for path in sorted(glob.glob(pattern))[:4]:
            if os.access(path, os.X_OK) and ours(path):
                return os.path.realpath(path)
    return ""


def ours(path: str) -> bool:
    """Whether nobody but root and this login can have put the file there, nor put another one in its place."""
    path = os.path.realpath(path)
    if not os.path.basename(path).startswith("py-spy"):
        return False
    while True:
        try:
            about = os.lstat(path)
        except OSError:
            return False
        # A group named like its owner has only him in it; in a sticky folder only the owner replaces a file.
        private = about.st_gid in (0, about.st_uid) or not about.st_mode & stat.S_IWGRP
        shared = about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX
        if about.st_uid not in (0, os.geteuid()) or shared or not private:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def _virtual(proc: str, pid: int) -> "list[str]":
    """A virtual environment's own folder, which the interpreter's path does not show."""
    try:
        with open(f"{proc}/{pid}/cmdline", "rb", 0) as file:
            first = file.read(4096).split(b"\0")[0].decode("utf-8", "replace")
    except OSError:
        return []
    return [os.path.join(os.path.dirname(first), "py-spy")] if first.startswith("/") else []


class Dump:
    """One dump of one process; step() until `done`."""

    def __init__(self, nursery: Nursery, path: str, pid: int, deadline_s: float) -> None:
        self.pid = pid
        self.done = False
        self.said: object = "no answer in time"
        body = program([path, "dump", "--json", "--nonblocking", "--pid", str(pid)])
        self._question = Question(nursery, body, 1e9, deadline_s)

    def step(self, now: float) -> None:
        """Start and collect."""
        if self.done:
            return
        child = self._question.step(now)
        if child is not None:
            self.said, self.done = _read(child), True
        elif self._question.late_since is not None:
            self.done = True


def _read(child: "Child") -> object:
    text = bytes(child.out).decode("utf-8", "replace")
    try:
        threads = json.loads(text[text.index("[") :])
    except ValueError:
        words = " ".join(text.split())
        return words[-200:] or child.ending()
    found = [_thread(each) for each in threads if isinstance(each, dict)]
    # The main thread first, then those that do something.
    found.sort(key=lambda each: (each["n"] != "MainThread", not each["a"]))
    return found[:_MAX_THREADS]


def _thread(told: "dict[str, object]") -> "dict[str, object]":
    frames = told.get("frames")
    rows = [
        [frame.get("name"), frame.get("filename"), frame.get("line")]
        for frame in (frames if isinstance(frames, list) else [])
        if isinstance(frame, dict)
    ]
    return {
        "n": told.get("thread_name") or "",
        "t": told.get("os_thread_id"),
        "a": int(bool(told.get("active"))),
        "g": int(bool(told.get("owns_gil"))),
        "f": rows[:_MAX_FRAMES],
    }
