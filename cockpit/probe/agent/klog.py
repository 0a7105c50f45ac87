"""Kernel messages about GPUs, EFA and file systems, forwarded as they are. Judging them is not done here."""

import errno
import json
import os
import re
import time

from cockpit.probe.agent.child import Child, Nursery, program
from cockpit.probe.agent.question import Question
from cockpit.probe.agent.values import decode, read_text

WINDOW_S = 7200.0
_MAX_QUEUE = 200  # the newest are kept
_MAX_PER_LINE = 20
_MAX_TEXT = 400
_DMESG_EVERY_S = 30.0
_LOOK_S = 15.0
_QUIET_S = 1.0
_WANTED = re.compile(
    r"NVRM|SXid|nvidia-nvswitch|nvidia.*(?:error|fail)|\befa\b|Lustre|LNet|\bnfs|NFS:|oom[-_ ]kill|Out of memory"
    r"|Killed process|blocked for more than|soft lockup|hard LOCKUP|hung_task|Remounting filesystem read-only"
    r"|nvme\S* .*(?:timeout|reset)|I/O error|Machine [Cc]heck|Hardware Error|neuron"
)
_WANTED_BYTES = re.compile(_WANTED.pattern.encode())
_BYTES_MESSAGE = re.compile(rb'"MESSAGE" *: *\[')  # text that is no clean UTF-8
_DENIED = ("not seeing messages", "insufficient permissions", "not permitted", "ermission denied")

TYPE_CHECKING = False
if TYPE_CHECKING:
    Message = tuple[float, str, str]  # wall time, boot id ("" for this boot), text


class KernelLog:
    """Follows the journal; else /dev/kmsg; else asks dmesg now and then. Says why when none can be read."""

    def __init__(self, nursery: Nursery, proc: str, kmsg: str, journalctl: str, dmesg: str) -> None:
        self.source = ""
        self.why = ""
        self.dropped = 0
        self._nursery = nursery
        self._boot = read_text(f"{proc}/sys/kernel/random/boot_id").replace("-", "")
        self._kmsg_path, self._journalctl = kmsg, journalctl
        self._journal: Child | None = None
        self._kmsg = -1
        self._queue: list[Message] = []
        self._reasons: list[str] = []
        # Without the right to read it, or without a journal, a follower waits in silence: ask for one line first.
        look = [journalctl, "-n", "1", "--no-pager", "-o", "json", "_TRANSPORT=kernel"]
        self._look: Question | None = Question(nursery, program(look), _DMESG_EVERY_S, _LOOK_S)
        self._dmesg = Question(nursery, program([dmesg]), _DMESG_EVERY_S, _LOOK_S)
        self._dmesg_seen = -1.0
        self._moved = 0.0  # when the journal last said something

    def step(self, now: float) -> None:
        """Take what has come."""
        if self._look is not None:
            self._try_journal(self._look, now)
        elif self._journal is not None:
            self._read_journal(self._journal)
        elif self._kmsg >= 0:
            self._read_kmsg(self._kmsg)
        elif self.source == "dmesg":
            self._read_dmesg(now)

    def _try_journal(self, look: Question, now: float) -> None:
        child = look.step(now)
        if child is None and look.late_since is None:
            return
        self._look = None
        if child is None:
            self._fall_back("journal: no answer")
        elif bytes(child.out).startswith(b"{"):
            self._follow()
        else:
            self._fall_back(f"journal: {_reason(child)}")

    def _follow(self) -> None:
        # No -k: it means this boot only, and the Xid that led to a reboot is in the one before.
        since = f"--since=@{int(time.time() - WINDOW_S)}"
        words = [self._journalctl, "-f", "--no-tail", "-o", "json", since, "_TRANSPORT=kernel"]
        try:
            self._journal = self._nursery.start(program(words))
        except OSError as error:
            self._fall_back(f"journal: {error.strerror}")
            return
        self._journal.awaited = False
        self._moved = time.monotonic()
        self.source = "journal"

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        asked = self._dmesg if self._look is None else self._look
        return asked.wants(now) if asked.child is not None else 60.0

    @property
    def settled(self) -> bool:
        """Whether what was in the log at the start has been taken in, as far as can be told."""
        if self._look is not None or self._queue:
            return False
        if self._journal is not None:  # it says what it has and then waits, without a word between
            return time.monotonic() - self._moved > _QUIET_S
        return bool(self.why) or self._kmsg >= 0 or self._dmesg_seen >= 0

    def take(self) -> "list[list[object]]":
        """A few messages, oldest first: [time, text], or [time, text, boot id] of an earlier boot."""
        taken, self._queue = self._queue[:_MAX_PER_LINE], self._queue[_MAX_PER_LINE:]
        return [[round(at, 3), text, boot] if boot else [round(at, 3), text] for at, boot, text in taken]

    def _add(self, at: float, boot: str, text: str) -> None:
        if at < time.time() - WINDOW_S or not _WANTED.search(text):
            return
        self._queue.append((at, "" if boot == self._boot else boot, text[:_MAX_TEXT]))
        if len(self._queue) > _MAX_QUEUE:
            del self._queue[0]
            self.dropped += 1

    def _read_journal(self, child: Child) -> None:
        for line in child.lines():
            self._moved = time.monotonic()
            # Most lines are of no interest, and parsing them all would cost too much where the kernel chats.
            if line.startswith(b"{") and (_WANTED_BYTES.search(line) or _BYTES_MESSAGE.search(line)):
                self._journal_entry(line)
        if child.eof and child.reap():
            self._journal = None
            self._fall_back(f"journal: {_reason(child)}")

    def _journal_entry(self, line: bytes) -> None:
        try:
            entry = json.loads(line.decode("utf-8", "replace"))
            message = entry.get("MESSAGE")
            if isinstance(message, list):  # bytes, when the text is no clean UTF-8
                message = decode(bytes(message))
            at = int(entry["__REALTIME_TIMESTAMP"]) / 1e6
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        self._add(at, str(entry.get("_BOOT_ID", "")), str(message))

    def _fall_back(self, why: str) -> None:
        self._reasons.append(why)
        try:
            self._kmsg = os.open(self._kmsg_path, os.O_RDONLY | os.O_NONBLOCK)
            self.source = "kmsg"
        except OSError as error:
            self._reasons.append(f"kmsg: {error.strerror}")
            self.source = "dmesg"

    def _give_up(self, why: str) -> None:
        self._reasons.append(why)
        self.source, self.why = "", "; ".join(self._reasons)

    def _read_kmsg(self, fd: int) -> None:
        # Every read gives one record: "prio,seq,usec,flags;text", continuation lines after it.
        offset = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
        for _ in range(20000):
            try:
                record = decode(os.read(fd, 8192))
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # records were overwritten before they were read
                    continue
                self._kmsg = -1
                self._give_up(f"kmsg: {error.strerror}")
                return
            head, _, text = record.partition(";")
            fields = head.split(",")
            if len(fields) >= 3 and fields[2].isdigit():
                self._add(offset + int(fields[2]) / 1e6, self._boot, text.split("\n")[0])
            if not record:
                return

    def _read_dmesg(self, now: float) -> None:
        child = self._dmesg.step(now)
        if child is None:
            return
        if child.code != 0:
            self._give_up(f"dmesg: {_reason(child)}")
            return
        offset = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
        self._dmesg_seen = max(self._dmesg_seen, 0.0)
        for line in decode(bytes(child.out)).splitlines():
            match = re.match(r"\[\s*(\d+\.\d+)\] (.*)", line)
            if match and float(match.group(1)) > self._dmesg_seen:
                self._dmesg_seen = float(match.group(1))
                self._add(offset + self._dmesg_seen, self._boot, match.group(2))


def _reason(child: Child) -> str:
    said = decode(bytes(child.out)).strip()
    if any(word in said for word in _DENIED):
        return "not permitted"
    if child.code == 0:
        return "none here"
    return said.splitlines()[-1][:80] if said else child.ending()
