"""A log of any size in bounded memory: the kinds of telling lines in it, where ranks stood, who ended first.

Most of a big log is ordinary: a chunk of bytes is searched for the catalogue's texts as a whole, and only lines that
hold one are read, and what follows a traceback until it is named.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import BinaryIO

from cockpit.catalog.log_patterns import log_patterns
from cockpit.formats.log_lines import LogSign, shown_line, sign_of
from cockpit.formats.log_models import Finding, LogDigest, RankPosition, RootCause
from cockpit.formats.log_voice import group_of, moment_of, node_of, rank_of

CHUNK = 256 * 1024
LONGEST = 64 * 1024  # bytes of a line that are looked at
KINDS = 400  # kinds of findings that are kept; exceptions of other names are kinds of their own
RANKS = 16_384
_TRACEBACK = "Traceback (most recent call last)"
_BETWEEN = ("Traceback ", "During handling ", "The above exception ")
_NAMED = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: .*)?$")
_TRACEBACK_LINES = 2000  # of all ranks together, since theirs are mixed
_OPEN = 512  # tracebacks under way at once
_ROOT = "Root Cause (first observed failure)"
_ROOT_LINES = 12
_ROOT_FACT = re.compile(r"\s*(time|host|rank|exitcode)\s*: (\S+)")
_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
_SHOWN = 600  # characters of a line that are kept


class LogReader:
    """Feed it bytes as they come; close() gives what was found."""

    def __init__(self) -> None:
        self._partial = b""
        self._skipping = False  # inside a line that is longer than LONGEST
        self._lines = self._size = self._left_out = 0
        self._found: dict[tuple[str, str], _Kind] = {}
        self._open: dict[str, _Open] = {}
        self._follow = 0  # lines that are read whatever they hold
        self._positions: dict[tuple[int, str], RankPosition] = {}
        self._root: dict[str, str] = {}
        self._roots: list[RootCause] = []
        self._root_lines = 0
        self._last = b""
        self._last_at = ""
        self._version = ""

    def feed(self, data: bytes) -> None:
        """More of the log."""
        self._size += len(data)
        end = data.rfind(b"\n") + 1
        if end == 0:
            self._keep(data)
            return
        if self._skipping:
            start = data.find(b"\n") + 1
            self._lines += 1
            self._skipping = False
            body = data[start:end]
        else:
            body = self._partial + data[:end]
        self._partial = b""
        if body:
            self._read(body)
        self._keep(data[end:])

    def _keep(self, rest: bytes) -> None:
        if self._skipping:
            return
        self._partial += rest
        if len(self._partial) > LONGEST:
            self._line(self._lines + 1, self._partial[:LONGEST])
            self._partial, self._skipping = b"", True

    def close(self) -> LogDigest:
        """Everything found; the reader takes no more."""
        if self._partial:
            self._read(self._partial + b"\n")
            self._partial = b""
        elif self._skipping:
            self._lines += 1
        self._end_root()
        for opened in list(self._open.values()):
            self._name(opened, "", opened.sign)
        findings = sorted((kind.finding() for kind in self._found.values()), key=lambda each: each.line)
        return LogDigest(
            findings=tuple(findings),
            positions=tuple(sorted(self._positions.values(), key=lambda each: (each.group, each.rank))),
            root_causes=tuple(self._roots),
            lines=self._lines,
            size_bytes=self._size,
            last_text=shown_line(self._last)[:_SHOWN],
            last_at=moment_of(shown_line(self._last))[0],
            nccl_version=self._version,
            left_out=self._left_out,
        )

    def _read(self, body: bytes) -> None:
        """Whole lines: jump from one telling line to the next, but read on while a traceback is open."""
        self._remember_end(body)
        places = _places(body)
        at, number, counted = 0, self._lines, 0
        while at < len(body):
            if self._follow <= 0:
                next_ = bisect_right(places, at - 1)
                if next_ >= len(places):
                    break
                at = places[next_]
            number += body.count(b"\n", counted, at)
            counted = at
            end = body.find(b"\n", at)
            self._line(number + 1, body[at : min(end, at + LONGEST)])
            at = end + 1
        self._lines += body.count(b"\n")

    def _remember_end(self, body: bytes) -> None:
        tail = body[-LONGEST:].rstrip()
        if tail:
            self._last = tail[tail.rfind(b"\n") + 1 :]

    def _line(self, number: int, raw: bytes) -> None:
        text = shown_line(raw)
        self._follow -= 1
        if self._root_lines:
            self._root_line(text)
        if self._open and self._names(text):
            return
        sign = sign_of(text)
        if not self._version and (found := _VERSION.search(text)):
            self._version = found[1]
        if sign is None:
            return
        if sign.id == "traceback":
            self._begin(number, text, sign)
            return
        if _ROOT in text:
            self._end_root()
            self._root_lines = _ROOT_LINES
            self._follow = max(self._follow, _ROOT_LINES)
        self._place(text, sign)
        self._add(_Line(number, text, sign))

    # Tracebacks: their last line says what they are.

    def _begin(self, number: int, text: str, sign: LogSign) -> None:
        before = text.partition(_TRACEBACK)[0]
        if before not in self._open and len(self._open) < _OPEN:
            self._open[before] = _Open(number, text, sign, before)
        self._follow = _TRACEBACK_LINES

    def _names(self, text: str) -> bool:
        """True when the line ends an open traceback and thereby says what it is."""
        for before, opened in self._open.items():
            rest = text[len(before) :]
            if text.startswith(before) and rest and not rest[0].isspace() and not rest.startswith(_BETWEEN):
                if (named := _NAMED.match(rest)) is None:
                    continue
                self._name(opened, text, sign_of(text), named[1])
                return True
        return False

    def _name(self, opened: _Open, text: str, sign: LogSign | None, name: str = "") -> None:
        del self._open[opened.before]
        if not self._open:
            self._follow = min(self._follow, 0)
        own = sign is None or sign.id == "exception"
        # An exception that NCCL, the launcher or the memory explains is that, and not one of the program.
        use = opened.sign if own or sign is None else sign
        line = _Line(opened.number, text or opened.text, use, first=opened.text)
        self._add(line, name.rpartition(".")[2] if own else "")

    # What lines tell beyond their kind.

    def _place(self, text: str, sign: LogSign) -> None:
        if sign.id not in ("watchdog", "watchdog-status", "dump-signal"):
            return
        rank = rank_of(text)
        if rank is None or (len(self._positions) >= RANKS and (rank, group_of(text)) not in self._positions):
            return
        key = (rank, group_of(text))
        was = self._positions.get(key, RankPosition(rank, key[1]))
        self._positions[key] = _with(was, sign)

    def _root_line(self, text: str) -> None:
        self._root_lines -= 1
        found = _ROOT_FACT.match(text)
        if found is not None:
            self._root[found[1]] = found[2]
        if self._root_lines == 0:
            self._end_root()

    def _end_root(self) -> None:
        facts, self._root, self._root_lines = self._root, {}, 0
        if facts.get("rank", "").isdigit() and len(self._roots) < RANKS:
            code = facts.get("exitcode", "").lstrip("-")
            exit_code = int(facts["exitcode"]) if code.isdigit() else None
            self._roots.append(RootCause(int(facts["rank"]), exit_code, facts.get("host", ""), facts.get("time", "")))

    def _add(self, line: _Line, name: str = "") -> None:
        key = (line.sign.id + line.sign.title, name)
        kind = self._found.get(key)
        if kind is None:
            if len(self._found) >= KINDS:
                self._left_out += 1
                return
            kind = self._found[key] = _Kind(line, name)
        kind.add(line)


class _Line:
    """One telling line; `first` is the line that began its traceback, which tells who wrote it."""

    __slots__ = ("first", "number", "sign", "text")

    def __init__(self, number: int, text: str, sign: LogSign, first: str = "") -> None:
        self.number, self.text, self.sign, self.first = number, text, sign, first or text


class _Open:
    """A traceback whose last line has not come yet."""

    __slots__ = ("before", "number", "sign", "text")

    def __init__(self, number: int, text: str, sign: LogSign, before: str) -> None:
        self.number, self.text, self.sign, self.before = number, text, sign, before


class _Kind:
    """The first line of a kind and who wrote such lines."""

    def __init__(self, line: _Line, name: str) -> None:
        self._first, self._name = line, name
        self._count = self._last = 0
        self._ranks: set[int] = set()
        self._nodes: dict[str, None] = {}
        self._facts: dict[str, str] = {}

    def add(self, line: _Line) -> None:
        self._count += 1
        self._last = max(self._last, line.number)
        if line.number < self._first.number:  # a traceback is named later than it begins
            self._first = line
        rank, node = rank_of(line.first), node_of(line.first)
        if rank is not None and len(self._ranks) < RANKS:
            self._ranks.add(rank)
        if node and len(self._nodes) < 256:
            self._nodes[node] = None
        for key, value in line.sign.facts:
            self._facts.setdefault(key, value)

    def finding(self) -> Finding:
        line = self._first
        at, at_s = moment_of(line.first)
        return Finding(
            sign=replace(line.sign, facts=tuple(self._facts.items())),
            line=line.number,
            text=line.text[:_SHOWN],
            count=self._count,
            last_line=self._last,
            at=at,
            at_s=at_s,
            ranks=tuple(sorted(self._ranks)),
            nodes=tuple(self._nodes),
            name=self._name,
        )


def _with(was: RankPosition, sign: LogSign) -> RankPosition:
    enqueued, completed = _number(sign, "enqueued"), _number(sign, "completed")
    if sign.id != "watchdog":
        return replace(
            was,
            enqueued=was.enqueued if enqueued is None else enqueued,
            completed=was.completed if completed is None else completed,
            timed_out=was.timed_out or sign.id == "watchdog-status",
            seq=was.seq if was.seq is not None else _number(sign, "seq"),
        )
    if was.timed_out and was.op:
        return was  # the first one; later ones follow from it
    timeout_ms = _number(sign, "timeout_ms")
    return replace(
        was,
        timed_out=True,
        seq=_number(sign, "seq"),
        op=sign.fact("op"),
        numel=sign.fact("numel_in"),
        timeout_s=None if timeout_ms is None else timeout_ms / 1000,
    )


def _number(sign: LogSign, name: str) -> int | None:
    text = sign.fact(name)
    return int(text) if text.lstrip("-").isdigit() and len(text) < 18 else None


@cache
def _needles() -> tuple[bytes, ...]:
    texts = dict.fromkeys(text for pattern in log_patterns() for text in pattern.find)
    # A text that holds another one need not be looked for: the shorter finds its lines as well.
    kept = [text for text in texts if not any(other != text and other in text for other in texts)]
    return tuple(text.encode() for text in [*kept, "NCCL version "])


def _places(body: bytes) -> list[int]:
    """Where lines begin that hold one of the catalogue's texts, in order."""
    found: set[int] = set()
    for needle in _needles():
        at = body.find(needle)
        while at >= 0:
            found.add(body.rfind(b"\n", 0, at) + 1)
            end = body.find(b"\n", at)
            at = body.find(needle, end) if end >= 0 else -1
    return sorted(found)


def digest_of(chunks: Iterable[bytes]) -> LogDigest:
    """All of them as one log."""
    reader = LogReader()
    for chunk in chunks:
        reader.feed(chunk)
    return reader.close()


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """A file's bytes in pieces, as they come."""
    while chunk := file.read(CHUNK):
        yield chunk
