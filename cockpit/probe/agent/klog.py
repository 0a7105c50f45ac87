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
_WANTED = re.compile(
    r"NVRM|SXid|nvidia-nvswitch|nvidia.*(?:error|fail)|\befa\b|Lustre|LNet|\bnfs|NFS:|oom[-_ ]kill|Out of memory"
    r"|Killed process|blocked for more than|soft lockup|hard LOCKUP|hung_task|Remounting filesystem read-only"
    r"|nvme\S* .*(?:timeout|reset)|I/O error|Machine [Cc]heck|Hardware Error|neuron"
)
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
        self._kmsg_path = kmsg
        self._journal: "Child | None" = None
        self._kmsg: "int | None" = None
        self._queue: "list[Message]" = []
        self._reasons: "list[str]" = []
        self._dmesg = Question(nursery, program([dmesg]), _DMESG_EVERY_S, 10.0)
        self._dmesg_seen = -1.0
        self._start_journal(journalctl)

    def _start_journal(self, journalctl: str) -> None:
        # No -k: it means this boot only, and the Xid that led to a reboot is in the one before.
        since = f"--since=@{int(time.time() - WINDOW_S)}"
        words = [journalctl, "-f", "--no-tail", "-o", "json", since, "_TRANSPORT=kernel"]
        try:
            self._journal = self._nursery.start(program(words))
            self._journal.awaited = False
            self.source = "journal"
        except OSError as error:
            self._fall_back(f"journal: {error.strerror}")

    def step(self, now: float) -> None:
        """Take what has come."""
        if self._journal is not None:
            self._read_journal(self._journal)
        elif self._kmsg is not None:
            self._read_kmsg(self._kmsg)
        elif self.source == "dmesg":
            self._read_dmesg(now)

    def wants(self, now: float) -> float:
        """Seconds until this wants to be looked at again."""
        return self._dmesg.wants(now) if self._dmesg.child is not None else 60.0

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
            if line.startswith(b"{"):
                self._journal_entry(line)
            elif any(word in decode(line) for word in _DENIED):
                child.kill()
                self._journal = None
                self._fall_back("journal: not permitted")
                return
        if child.eof and child.reap():
            self._journal = None
            said = decode(bytes(child.out)).strip()
            denied = any(word in said for word in _DENIED)
            self._fall_back("journal: not permitted" if denied else f"journal: {said[:80] or child.ending()}")

    def _journal_entry(self, line: bytes) -> None:
        # Cheaper than parsing: nearly every line of a busy kernel log is of no interest.
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
        self.source = ""
        if self._kmsg is None and not any(reason.startswith("kmsg") for reason in self._reasons):
            try:
                self._kmsg = os.open(self._kmsg_path, os.O_RDONLY | os.O_NONBLOCK)
                self.source = "kmsg"
            except OSError as error:
                self._reasons.append(f"kmsg: {error.strerror}")
                self.source = "dmesg"
        self.why = "" if self.source in ("kmsg", "dmesg") else "; ".join(self._reasons)

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
                self._reasons.append(f"kmsg: {error.strerror}")
                self._kmsg, self.source, self.why = None, "", "; ".join(self._reasons)
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
        said = decode(bytes(child.out))
        if child.code != 0:
            denied = any(word in said for word in _DENIED)
            self._reasons.append("dmesg: not permitted" if denied else f"dmesg: {child.ending()}")
            self.source, self.why = "", "; ".join(self._reasons)
            return
        offset = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
        for line in said.splitlines():
            match = re.match(r"\[\s*(\d+\.\d+)\] (.*)", line)
            if match and float(match.group(1)) > self._dmesg_seen:
                self._dmesg_seen = float(match.group(1))
                self._add(offset + self._dmesg_seen, self._boot, match.group(2))
