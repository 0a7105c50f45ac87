"""A piece of a growing file as lines: fed at its end, extended at its beginning, bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.catalog.log_patterns import INFO
from cockpit.formats.log_lines import LogSign, last_state, shown_line, sign_of

MOST_BYTES = 4 * 2**20
MOST_LINES = 50_000
LONGEST_LINE = 64 * 1024  # bytes that are kept of a line that has not ended yet
GONE = -1


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, fit to be shown. `mark`: the cockpit's own words, no line of the file."""

    text: str
    sign: LogSign | None = None
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """What is held. Lines have numbers that stay with them: the first one's is `first`.

    `start` is the place in the file where the first line begins (GONE: that file is no more), `end` the place
    behind the last byte.
    """

    lines: Sequence[LogLine] = ()
    first: int = 0
    start: int = 0
    end: int = 0
    partial: bool = False  # the last line has not ended yet


class LogBuffer:
    """Bytes `start` to `end` of a file as lines. To be used by one thread.

    `most_bytes` and `most_lines` bound what is held: what is fed at one end is let go at the other.
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES, most_lines: int = MOST_LINES) -> None:
        self.start = self.end = self.first = 0
        self._most_bytes, self._most_lines = most_bytes, most_lines
        self._lines: deque[LogLine] = deque()
        self._sizes: deque[int] = deque()  # bytes of the file behind each line; 0 for a mark
        self._bytes = 0
        self._partial = b""  # what stands behind the last newline, without what a carriage return rewrote
        self._partial_size = 0  # how many bytes that is in the file

    @property
    def full(self) -> bool:
        """True when more can only be held by letting something go."""
        return self._bytes >= self._most_bytes or len(self._lines) >= self._most_lines

    def begin(self, data: bytes, at: int) -> None:
        """Begin with bytes from the middle of a file: half a line at the beginning is left out."""
        skip = _half_line(data, at)
        self.start = self.end = at + skip
        self.feed(data[skip:])

    def feed(self, data: bytes) -> None:
        """More bytes at the end."""
        self.end += len(data)
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._lengthen(piece)
            self._end_line(1)
        self._lengthen(rest)
        while self._bytes > self._most_bytes or len(self._lines) > self._most_lines:
            self._drop_first()

    def _lengthen(self, piece: bytes) -> None:
        self._partial_size += len(piece)
        joined = self._partial + piece
        if b"\r" in joined:
            joined = last_state(joined) + (b"\r" if joined.endswith(b"\r") else b"")
        self._partial = joined[:LONGEST_LINE]

    def _end_line(self, newline: int) -> None:
        text, size = shown_line(self._partial), self._partial_size + newline
        self._lines.append(LogLine(text, sign_of(text)))
        self._sizes.append(size)
        self._bytes += size
        self._partial, self._partial_size = b"", 0

    def mark(self, words: str) -> None:
        """Say something of our own behind the last line."""
        if self._partial:
            self._end_line(0)
        self._lines.append(LogLine(words, mark=True))
        self._sizes.append(0)

    def restart(self, words: str) -> None:
        """What follows comes from the beginning of another file; what was read stays, with a mark between."""
        self.mark(words)
        self.start, self.end = GONE, 0

    def prepend(self, data: bytes, at: int) -> None:
        """The bytes before what is held, from the place `at` on; what is let go for them has to be read again."""
        skip = _half_line(data, at)
        for piece in reversed(data[skip:].removesuffix(b"\n").split(b"\n")):
            text = shown_line(piece)
            self._lines.appendleft(LogLine(text, sign_of(text)))
            self._sizes.appendleft(len(piece) + 1)
            self.first -= 1
        self._bytes += len(data) - skip
        self.start = at + skip
        while len(self._lines) > 1 and (self._bytes > self._most_bytes or len(self._lines) > self._most_lines):
            self._drop_last()

    def _drop_first(self) -> None:
        self._lines.popleft()
        size = self._sizes.popleft()
        self._bytes -= size
        self.first += 1
        if self.start != GONE:
            self.start += size

    def _drop_last(self) -> None:
        self._lines.pop()
        size = self._sizes.pop()
        self._bytes -= size
        self.end -= size + self._partial_size
        self._partial, self._partial_size = b"", 0

    def held(self) -> Held:
        """Everything that is held; the last line may still grow."""
        lines = list(self._lines)
        if self._partial:
            text = shown_line(_whole_letters(self._partial))
            lines.append(LogLine(text, sign_of(text)))
        return Held(lines, self.first, self.start, self.end, bool(self._partial))

    def number_at(self, place: int) -> int:
        """The number of the first line that begins at that place in the file or behind it."""
        at = self.start
        for number, size in enumerate(self._sizes, self.first):
            if at >= place:
                return number
            at += size
        return self.first + len(self._sizes)


def _half_line(data: bytes, at: int) -> int:
    """How many bytes belong to a line that began before `at`; 0 when there is nothing but that line."""
    if at <= 0:
        return 0
    newline = data.find(b"\n")
    return newline + 1 if 0 <= newline < len(data) - 1 else 0


def _whole_letters(raw: bytes) -> bytes:
    """Without the beginning of a UTF-8 letter at the end, whose other bytes have yet to come."""
    for back in range(1, min(3, len(raw)) + 1):
        byte = raw[-back]
        if byte < 0x80:
            return raw
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return raw[:-back] if wanted > back else raw
    return raw


_TRACEBACK = "Traceback (most recent call last)"
_BETWEEN = ("Traceback ", "During handling ", "The above exception ")
_TRACEBACK_LINES = 300


def first_error(lines: Sequence[LogLine], start: int = 0) -> int | None:
    """The place, from `start` on, of the first line that tells an error which follows from no other."""
    for at in range(start, len(lines)):
        sign = lines[at].sign
        if sign is None or not sign.is_error:
            continue
        named = named_exception(lines, at)
        if named is None or named.sign is None or not named.sign.effect:
            return at
    return None


def first_effect(lines: Sequence[LogLine], start: int = 0) -> int | None:
    """The place of the first line that tells of trouble at all, which may well follow from something else."""
    for at in range(start, len(lines)):
        sign = lines[at].sign
        if sign is not None and sign.severity != INFO:
            return at
    return None


def named_exception(lines: Sequence[LogLine], at: int) -> LogLine | None:
    """The last line of the traceback that begins there, which names the exception; None where none does."""
    before, found, _ = lines[at].text.partition(_TRACEBACK)
    if not found:
        return None
    for line in lines[at + 1 : at + _TRACEBACK_LINES]:
        if line.text.startswith(before):
            rest = line.text[len(before) :]
            if rest and not rest[0].isspace() and not rest.startswith(_BETWEEN):
                return line
    return None
