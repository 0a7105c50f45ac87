"""Cutting a byte stream into lines of bounded length."""

from __future__ import annotations


class LineCutter:
    """Feed it bytes, take whole lines (without newline). Memory stays below max_line plus one chunk."""

    def __init__(self, max_line: int) -> None:
        self._max = max_line
        self._partial = bytearray()
        self._overlong = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes; each at most max_line bytes, the rest of a longer one dropped."""
        *whole, rest = data.split(b"\n")
        lines = []
        for piece in whole:
            self._append(piece)
            lines.append(bytes(self._partial))
            self._partial.clear()
            self._overlong = False
        self._append(rest)
        return lines

    def _append(self, piece: bytes) -> None:
        if self._overlong:
            return
        room = self._max - len(self._partial)
        self._partial += piece[:room]
        self._overlong = len(piece) > room

    def rest(self) -> bytes:
        """What came after the last newline; empty when the stream ended cleanly."""
        return bytes(self._partial)
