"""How full the file systems are. Each is asked in a child of its own: a hung Lustre hangs only that child."""

import json
import os

from cockpit.probe.agent.child import Nursery, answer, program
from cockpit.probe.agent.question import Question
from cockpit.probe.agent.values import compact, decode, read_file

NETWORK_TYPES = ("lustre", "nfs", "nfs4", "efs", "cifs", "smb3", "beegfs", "gpfs", "ceph", "9p", "wekafs")
LOCAL_PATHS = ("/", "/tmp", "/scratch", "/fsx", "/opt/dlami/nvme", "/dev/shm")  # noqa: S108
_MAX_MOUNTS = 24

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.probe.agent.child import Body

    Mount = tuple[str, str, str]  # path, type, source


class Mounts:
    """One Question a mount; `rows` is what there is to tell."""

    def __init__(self, nursery: Nursery, proc: str, every_s: float, deadline_s: float, check: str = "") -> None:
        self._nursery, self._proc = nursery, proc
        self._every_s, self._deadline_s, self._check = every_s, deadline_s, check
        self._questions: dict[Mount, Question] = {}
        self._rows: dict[Mount, list[object]] = {}
        self._listed = -1e9
        self._told = b""

    def step(self, now: float) -> None:
        """Start and collect; the list of mounts itself comes from /proc and cannot hang."""
        if now >= self._listed + self._every_s:
            self._listed = now
            self._list()
        for mount, question in self._questions.items():
            child = question.step(now)
            if child is not None:
                self._rows[mount] = _row(mount, bytes(child.out))
            elif question.late_since is not None:
                self._rows[mount] = [*mount, "?", round(question.late_since)]

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        waits = [question.wants(now) for question in self._questions.values() if question.child is not None]
        return min(waits) if waits else 60.0

    @property
    def settled(self) -> bool:
        """Whether every mount has answered, or is known not to."""
        return all(mount in self._rows for mount in self._questions)

    def take(self, everything: bool) -> "list[list[object]] | None":
        """The rows, when they differ from what was taken before."""
        rows = [self._rows[mount] for mount in self._questions if mount in self._rows]
        text = compact(rows)
        if text == self._told and not everything:
            return None
        self._told = text
        return rows

    def _list(self) -> None:
        found = mounts_of_interest(decode(read_file(f"{self._proc}/self/mounts", 2**20) or b""))
        # A mount that vanished while its child hangs is kept: the child is still there.
        kept = {
            mount: question
            for mount, question in self._questions.items()
            if mount in found or question.child is not None
        }
        for mount in found:
            if mount not in kept:
                kept[mount] = Question(self._nursery, self._body(mount[0]), self._every_s, self._deadline_s)
        self._questions = kept

    def _body(self, path: str) -> "Body":
        return program([self._check, path]) if self._check else answer(lambda: usage(path))


def mounts_of_interest(text: str) -> "list[Mount]":
    """(path, type, source) of network and FUSE file systems, and of the local ones people fill up.

    `text` is /proc/self/mounts, where blanks are written as octal escapes; of several mounts on one path
    the last one is seen.
    """
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        words = [_unescape(word) for word in line.split(" ")]
        if len(words) < 3:
            continue
        source, path, kind = words[:3]
        network = kind in NETWORK_TYPES or kind.split(".")[0] in ("fuse", "fuseblk")
        # FUSE mounts of a desktop or of a container runtime say nothing about a node.
        if (network and not path.startswith(("/run/user/", "/var/lib/"))) or path in LOCAL_PATHS:
            found.pop(path, None)
            found[path] = (path, kind, source[:120])
    return list(found.values())[:_MAX_MOUNTS]


def usage(path: str) -> "list[int]":
    """Total, used and available MiB, inodes in all and in use; raises OSError."""
    told = os.statvfs(path)
    block = told.f_frsize or told.f_bsize
    total = told.f_blocks * block
    return [
        total >> 20,
        (total - told.f_bfree * block) >> 20,
        (told.f_bavail * block) >> 20,
        told.f_files,
        told.f_files - told.f_ffree,
    ]


def _row(mount: "Mount", said: bytes) -> "list[object]":
    try:
        numbers = json.loads(said.decode("utf-8", "replace"))
    except ValueError:
        numbers = {"error": decode(said).strip()[:80]}
    if isinstance(numbers, list) and len(numbers) == 5:
        return [*mount, *numbers]
    why = numbers.get("error", "no answer") if isinstance(numbers, dict) else "no answer"
    return [*mount, "!", str(why)]


def _unescape(word: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        word = word.replace(code, char)
    return word
