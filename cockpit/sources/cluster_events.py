"""The source `events`: what ParallelCluster's daemons write on the head, each time only what is new."""

from __future__ import annotations

import re
import secrets

from cockpit.event_models import ClusterEvent, ClusterEvents
from cockpit.formats.pcluster_events import parse_events, parse_resume_log
from cockpit.hosts.base import Host
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.base import SourceKey
from cockpit.text import printable

EVENTS: SourceKey[ClusterEvents] = SourceKey("events")

DEADLINE_S = 12.0
FIRST_BYTES = 262_144  # some hours of a usual cluster
MOST_BYTES = 1_048_576  # in one read
KEPT = 500
MISSING, REFUSED = "not there", "may not be read"

# Arguments: a mark nobody can guess, then pairs of a file and how much of it is known. Logs may be root's.
_SCRIPT = r"""
mark=$1; shift
while [ $# -ge 2 ]; do
  f=$1 known=$2; shift 2
  s=; [ -r "$f" ] || s="sudo -n"
  size=$($s wc -c "$f" 2>/dev/null | tr -dc '0-9 ' | awk '{print $1}')
  if [ -z "$size" ]; then
    if [ -e "$f" ]; then echo "$mark $f unread"; else echo "$mark $f missing"; fi
    continue
  fi
  [ "$known" -lt 0 ] && { known=$((size - FIRST)); [ "$known" -lt 0 ] && known=0; }
  [ "$known" -gt "$size" ] && known=0
  [ $((size - known)) -gt MOST ] && known=$((size - MOST))
  echo "$mark $f $known"
  $s tail -c "+$((known + 1))" "$f" 2>/dev/null | head -c MOST
  echo
done
echo "$mark end"
""".replace("FIRST", str(FIRST_BYTES)).replace("MOST", str(MOST_BYTES))


class EventReads:
    """Follows the files of one head; `files` are absolute paths, `*.events` or logs."""

    def __init__(self, host: Host, files: tuple[str, ...]) -> None:
        self._host, self._files = host, files
        self._known = dict.fromkeys(files, -1)
        self._cut: dict[str, bytes] = {}  # the beginning of a line that was still being written
        self._events: tuple[ClusterEvent, ...] = ()
        self._heartbeat: float | None = None
        self._broken = 0

    def read(self) -> ClusterEvents:
        """Everything known by now; raises FaultError when the head does not answer or lets no file be read.

        Files that are not there are no fault: ParallelCluster writes events from about 3.6 on.
        """
        mark = secrets.token_hex(8)
        pairs = [word for name in self._files for word in (name, str(self._known[name]))]
        done = self._host.run(
            ["sh", "-s", "-", mark, *pairs], stdin=_SCRIPT.encode(), deadline_s=DEADLINE_S, max_bytes=16 * MOST_BYTES
        )
        pieces = re.split(rb"(?:^|\n)" + mark.encode() + rb" ", done.stdout)
        if not pieces or pieces[-1].strip() != b"end":
            why = printable(done.stderr[:200].strip()) or "its answer is cut off"
            raise FaultError(Fault(FaultKind.GARBLED, "reading ParallelCluster's events", why))
        unread = dict(told for piece in pieces[1:-1] if (told := self._take(piece)))
        if len(unread) == len(self._files) and REFUSED in unread.values():
            why = "neither this login nor sudo may read its files in /var/log/parallelcluster"
            raise FaultError(Fault(FaultKind.DENIED, "reading ParallelCluster's events", why, "log in as an admin"))
        return ClusterEvents(self._events, self._heartbeat, unread, self._broken)

    def _take(self, piece: bytes) -> tuple[str, str] | None:
        """Take in what is new of one file; its name and the reason when it cannot be read."""
        head, _, body = piece.partition(b"\n")
        name, _, word = head.decode("utf-8", "replace").rpartition(" ")
        if not word.isdigit():
            return name, MISSING if word == "missing" else REFUSED
        start, was = int(word), self._known[name]
        self._known[name] = start + len(body)
        carried = self._cut.pop(name, b"") if start == was else b""
        lines, _, rest = (carried + body).rpartition(b"\n")
        if rest:
            self._cut[name] = rest
        if was < 0 < start:
            lines = lines.partition(b"\n")[2]  # the first line of a tail is cut
        self._parse(name, lines)
        return None

    def _parse(self, name: str, lines: bytes) -> None:
        if name.endswith(".events"):
            events, heartbeat, broken = parse_events(lines)
            self._heartbeat = heartbeat or self._heartbeat
            self._broken += broken
        else:
            events = parse_resume_log(lines)
        if events:
            both = sorted((*self._events, *events), key=lambda event: event.at or 0.0)
            self._events = tuple(both[-KEPT:])
