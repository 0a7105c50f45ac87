"""What /proc tells of the machine itself: nothing here can hang on a driver or on a file system."""

import os
import sys
import time

from cockpit.probe.agent.values import decode, read_file, read_text

_KEPT = 5  # of the stuck processes: enough to see what they wait for
_MIN_SCAN_S, _MAX_SCAN_S = 10.0, 60.0
_SCAN_SHARE = 600  # a scan may take 1/600 of the time: a node has thousands of processes


class Node:
    """Load and memory at every tick, processes in uninterruptible sleep at a pace that costs next to nothing."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self.stuck_count: int | None = None
        self._stuck: list[tuple[int, str, str, float]] = []
        self._seen: dict[tuple[int, str], float] = {}
        self._own = str(os.getpid())
        self._scan_due = 0.0

    def facts(self) -> "dict[str, object]":
        """What does not change before the next boot."""
        uname = os.uname()
        return {
            "host": uname.nodename,
            "kernel": uname.release,
            "boot": read_text(f"{self._proc}/sys/kernel/random/boot_id"),
            "booted": self._booted_at(),
            "cpus": os.cpu_count(),
            "py": sys.version.split()[0],
        }

    def _booted_at(self) -> "int | None":
        for line in (read_file(f"{self._proc}/stat", 2**20) or b"").splitlines():
            if line.startswith(b"btime "):
                return int(line.split()[1])
        return None

    def load(self) -> "list[float]":
        """The three load averages; empty where they cannot be read."""
        try:
            return [float(word) for word in read_text(f"{self._proc}/loadavg").split()[:3]]
        except ValueError:
            return []

    def memory(self) -> "list[int | None]":
        """Total and available MiB, None for what is not told."""
        found: dict[bytes, int] = {}
        for line in (read_file(f"{self._proc}/meminfo", 512) or b"").splitlines():
            words = line.split()
            if len(words) >= 2 and words[1].isdigit():
                found[words[0]] = int(words[1]) >> 10
        return [found.get(b"MemTotal:"), found.get(b"MemAvailable:")]

    def scan(self, now: float) -> bool:
        """Look for stuck processes when it is time; True when the answer has changed."""
        if now < self._scan_due:
            return False
        started = time.monotonic()
        before = (self.stuck_count, self._stuck)
        self._look(now)
        cost = time.monotonic() - started
        self._scan_due = now + min(max(_MIN_SCAN_S, cost * _SCAN_SHARE), _MAX_SCAN_S)
        return before != (self.stuck_count, self._stuck)

    def stuck(self, now: float) -> "list[list[object]]":
        """[pid, program, wait channel, seconds since it was first seen stuck] of the longest."""
        return [[pid, name, where, round(now - since)] for pid, name, where, since in self._stuck]

    def _look(self, now: float) -> None:
        try:
            pids = [name for name in os.listdir(self._proc) if name.isdigit()]
        except OSError:
            self.stuck_count = None
            return
        found: dict[tuple[int, str], float] = {}
        names: dict[int, str] = {}
        for pid in pids:
            stat = read_file(f"{self._proc}/{pid}/stat", 512)
            comm, state, started, parent = stat_fields(stat)
            if state == "D" and parent != self._own:
                key = (int(pid), started)
                found[key] = self._seen.get(key, now)
                names[int(pid)] = comm
        self._seen = found
        self.stuck_count = len(found)
        longest = sorted(found.items(), key=lambda item: item[1])[:_KEPT]
        self._stuck = [(pid, names[pid], self._wchan(pid), since) for (pid, _), since in longest]

    def _wchan(self, pid: int) -> str:
        where = read_text(f"{self._proc}/{pid}/wchan")
        return "" if where == "0" else where[:40]


def stat_fields(stat: "bytes | None") -> "tuple[str, str, str, str]":
    """comm, state letter, start time in ticks and parent of /proc/PID/stat; empty strings when there is none."""
    # The name stands in parentheses and may hold blanks and parentheses itself.
    head, mark, tail = decode(stat or b"").rpartition(")")
    words = tail.split()
    if not mark or len(words) < 20:
        return "", "", "", ""
    return head.partition("(")[2][:32], words[0], words[19], words[1]
