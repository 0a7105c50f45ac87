"""One output file of a job, wherever it lies: opened at its end, read on as it grows, paged back, searched.

Everything here waits for a machine and raises FaultError; see output_reader.py for the thread that does the waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cockpit.catalog.log_patterns import first_error_texts
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.formats.log_buffer import GONE, Held, LogBuffer, LogLine, first_effect, first_error
from cockpit.formats.log_lines import shown_line, sign_of
from cockpit.formats.output_paths import OutputFile
from cockpit.hosts.base import Host
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.remote_file import PIECE, Piece, find_text, read_piece
from cockpit.text import printable
from cockpit.words import clock_time

SKIP = 2 * 2**20  # bytes behind the end from which following jumps to the end
SPAN = 64 * 2**20  # bytes searched in one go
_OVERLAP = 64  # bytes that are read again, to see whether they are still the same
_BEFORE = 32 * 1024  # bytes loaded before an error that was found far away
_LOOK = 64 * 1024  # bytes looked at to see what a line found by its text means

_WORDS = {
    "denied": ("this login may not read it", "read it as its owner, or with sudo"),
    "directory": ("it is a directory", "look for files in it"),
    "special": ("it is a FIFO, a socket or a device, which the cockpit never opens", "read it by hand"),
}


@dataclass(frozen=True, slots=True)
class Where:
    """A machine that may have the file, and how to reach it, which may raise FaultError. `node`: not the head."""

    name: str
    host: Callable[[], Host]
    node: str = ""


class FollowedFile:
    """What is held of the file, and the machine it was found on. To be used by one thread."""

    def __init__(self, file: OutputFile, places: Sequence[Where], clock: Clock = SYSTEM_CLOCK) -> None:
        self.file = file
        self.path = file.path
        self.where = self.node = ""  # the machine that has it; `node` stays empty for the head
        self.size = 0
        self.grown_at: float | None = None  # steady clock
        self.gone = False  # it was there and is no more
        self.generation = 0  # changes when what is held has nothing to do with what was
        self.following = True
        self._places, self._clock = places, clock
        self._host: Host | None = None
        self._id = ""
        self._tail = b""  # the last bytes read
        self._caught_up = False  # what is held reached the end of the file
        self._buffer = LogBuffer()

    @property
    def found(self) -> bool:
        """True once the file was there."""
        return self._host is not None

    @property
    def behind(self) -> int:
        """Bytes of the file that follow what is held."""
        return max(0, self.size - self._buffer.end)

    def held(self) -> Held:
        """What is held of it."""
        return self._buffer.held()

    def open(self, most: int = PIECE) -> bool:
        """Look for the file and read its end; False when it is not there (yet). Raises FaultError."""
        faults, without = [], []
        for place in self._places:
            try:
                if self._open_at(place, most):
                    return True
                without.append(place.name)
            except FaultError as error:
                faults.append(error.fault)
        if faults and without:  # the file may well be where nobody could look
            why = f"not on {', '.join(without)}; {faults[0].what}: {faults[0].why}"
            raise FaultError(Fault(faults[0].kind, printable(self.file.path), why, faults[0].next_step))
        if faults:
            raise FaultError(faults[0])
        return False

    def _open_at(self, place: Where, most: int) -> bool:
        host = place.host()
        for path in (self.file.path, *self.file.others):
            piece = read_piece(host, path, None, most)
            if piece.kind == "none":
                continue
            self.path, self.where, self.node = path, place.name, place.node
            self._check(piece)
            self._host = host
            self._begin(piece)
            return True
        return False

    def _check(self, piece: Piece) -> None:
        if piece.kind in _WORDS:
            why, step = _WORDS[piece.kind]
            kind = FaultKind.DENIED if piece.kind == "denied" else FaultKind.FAILED
            raise FaultError(Fault(kind, f"{printable(self.path)} on {self.where}", why, step))

    def _begin(self, piece: Piece) -> None:
        """Forget what is held and begin with this piece."""
        self.generation += 1
        self._buffer = LogBuffer()
        self._buffer.begin(piece.data, piece.start)
        self._id, self.size, self.gone = piece.id, piece.size, False
        self._tail = piece.data[-_OVERLAP:]
        self._caught_up = self.behind == 0
        self.grown_at = self._clock.steady() - max(0, piece.now - piece.mtime)

    # Reading on.

    def read_on(self, *, anyway: bool = False) -> bool:
        """See what has become of the file and read up to one piece more; True when there is more to read at once.

        While nobody follows, it reads only from the end of the file, and as long as there is room; with `anyway` from
        wherever what is held ends, and something else is let go. Raises FaultError.
        """
        if self._host is None:
            return self.open()
        goes_on = self._caught_up and not self._buffer.full
        wanted = PIECE if self.following or anyway or goes_on else 0
        start = self._buffer.end - len(self._tail)
        piece = read_piece(self._host, self.path, start, wanted + len(self._tail))
        if piece.kind == "none":
            self._note_gone()
            return False
        self._check(piece)
        if not self._is_same(piece):
            return True
        self.gone = False
        if piece.size > self.size:
            self.grown_at = self._clock.steady()
        new, self.size = piece.data[len(self._tail) :], piece.size
        if self.following and self.behind - len(new) > SKIP:
            self._begin(read_piece(self._host, self.path, None))
            return False
        if new:
            self._buffer.feed(new)
            self._tail = (self._tail + new)[-_OVERLAP:]
        self._caught_up = self.behind == 0 or (self._caught_up and wanted > 0)
        return self.behind > 0 and len(new) >= wanted > 0

    def _is_same(self, piece: Piece) -> bool:
        """False when another file has taken its place, or it was cut: then it is read anew from its beginning."""
        if piece.id != self._id:
            words = "another file has taken its place"
        elif piece.size < self._buffer.end or not piece.data.startswith(self._tail):
            words = "the file was cut and is written anew"
        else:
            return True
        self._buffer.restart(f"{words} · {clock_time(self._clock.now())}")
        self._id, self._tail, self.size = piece.id, b"", piece.size
        return False

    def _note_gone(self) -> None:
        if not self.gone:
            self.gone = True
            self._buffer.mark(f"the file is gone: deleted or moved · {clock_time(self._clock.now())}")

    # Moving about in it.

    def earlier(self) -> None:
        """Hold a piece more before what is held. Raises FaultError."""
        start = self._buffer.start
        if self._host is None or start <= 0:
            return
        self.following = False
        at, end = max(0, start - PIECE), self._buffer.end
        piece = read_piece(self._host, self.path, at, start - at)
        if piece.kind != "file" or piece.id != self._id or len(piece.data) != start - at:
            return  # the file has changed; reading on tells how
        self._buffer.prepend(piece.data, at)
        if self._buffer.end != end:
            self._tail, self._caught_up = b"", False

    def to_start(self) -> None:
        """Hold the beginning of the file. Raises FaultError."""
        self.following = False
        if self._host is not None and self._buffer.start != 0:
            self._begin_at(0)

    def to_end(self) -> None:
        """Hold the end of the file and follow it. Raises FaultError."""
        self.following = True
        if self._host is not None and self.behind > PIECE:
            self._begin(read_piece(self._host, self.path, None))

    def _begin_at(self, at: int) -> None:
        assert self._host is not None
        piece = read_piece(self._host, self.path, at)
        self._check(piece)
        if piece.kind == "file":
            self._begin(piece)

    # The first error.

    def find_error(self, after: int | None, tell: Callable[[int], bool]) -> int | None:
        """The number of the first line that tells an error, or of the first one behind the line `after`.

        What is not held is searched where the file lies; `tell` hears how many bytes were searched and says
        whether to go on. What was found far away is held afterwards. None when there is none. Raises FaultError.
        """
        held = self.held()
        if after is None and held.start > 0:
            place = self._search(0, held.start, tell)
            if place is not None:
                return self._hold_around(place)
        at = first_error(held.lines, 0 if after is None else after - held.first + 1)
        if at is not None:
            self.following = False
            return held.first + at
        if held.start == GONE or held.end >= self.size:
            return None
        place = self._search(held.end, self.size, tell)
        return None if place is None else self._hold_around(place)

    def find_effect(self) -> int | None:
        """The number of the first line held that tells of any trouble."""
        held = self.held()
        at = first_effect(held.lines)
        return None if at is None else held.first + at

    def _search(self, start: int, end: int, tell: Callable[[int], bool]) -> int | None:
        """The place of the first error between two places of the file."""
        assert self._host is not None
        at = start
        while at < end and tell(at):
            place = find_text(self._host, self.path, first_error_texts(), at, min(SPAN, end - at))
            if place is None:
                at += SPAN - _LOOK  # a line may lie across
                continue
            length = self._error_at(place)
            if length is None:
                return place
            at = place + length
        return None

    def _error_at(self, place: int) -> int | None:
        """None when an error begins there, else how many bytes the line has that only looked like one."""
        assert self._host is not None
        data = read_piece(self._host, self.path, place, _LOOK).data
        raw = data.split(b"\n")
        lines = [LogLine(text, sign_of(text)) for text in map(shown_line, raw)]
        return None if first_error(lines) == 0 else max(1, len(raw[0]) + 1)

    def _hold_around(self, place: int) -> int:
        self.following = False
        self._begin_at(max(0, place - _BEFORE))
        return self._buffer.number_at(place)
