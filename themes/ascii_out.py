"""Printing in ASCII: for `--ascii`, and for terminals whose encoding lacks our signs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

from themes.ascii_text import ascii_text


class AsciiOut(io.TextIOBase):
    """A stream that puts every sign of ours in ASCII, cell for cell, so that columns stay aligned."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._encoding = out, getattr(out, "encoding", None) or "ascii"

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream behind it."""
        return self._encoding

    def write(self, text: str) -> int:
        """Pass it on; returns the number of characters taken."""
        self._out.write(ascii_text(text, self._encoding))
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def fileno(self) -> int:
        return self._out.fileno()

    def isatty(self) -> bool:
        return self._out.isatty()


@contextmanager
def printed_in_ascii(out: TextIO) -> Iterator[None]:
    """Everything that is printed meanwhile goes out in ASCII."""
    with redirect_stdout(AsciiOut(out)):
        yield
