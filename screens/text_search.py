"""Looking for words in a text, a few thousand lines at a time so that keys are never kept waiting."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from screens.lines import Line
from screens.text_state import line_text, unchanged

_TOLD = 20  # letters of what is searched for that the title repeats
AT_ONCE = 4_000  # lines looked at in one go, some 5 ms


class TextSearch:
    """The lines that hold `needle`, found from the first line on. A capital letter in it makes case matter."""

    def __init__(self, needle: str, lines: Sequence[Line]) -> None:
        self.needle = needle
        self.pattern = re.compile(re.escape(needle), 0 if needle != needle.lower() else re.IGNORECASE)
        self.hits: list[int] = []
        self._lines = lines
        self._seen = 0

    @property
    def done(self) -> bool:
        """True once every line was looked at."""
        return self._seen >= len(self._lines)

    def advance(self) -> None:
        """Look at some more lines."""
        stop = min(len(self._lines), self._seen + AT_ONCE)
        self.hits += self._look(range(self._seen, stop))
        self._seen = stop

    def adopt(self, lines: Sequence[Line], shift: int) -> None:
        """Go on in new lines, of which `shift` stand before the first there was; looks again only at what changed."""
        same = unchanged(self._lines, lines, shift)
        seen = range(same.start, min(same.stop, max(same.start, self._seen + shift)))
        self._lines = lines
        kept = [line + shift for line in self.hits if line + shift in seen]
        self.hits = [*self._look(range(same.start)), *kept]
        self._seen = seen.stop
        self.advance()

    def _look(self, places: range) -> list[int]:
        search = self.pattern.search
        return [at for at in places if search(line_text(self._lines[at]))]

    def first_from(self, line: int) -> int | None:
        """The first hit from that line on, else the first of all; None while it is not known yet, or there is none."""
        at = bisect_left(self.hits, line)
        if at < len(self.hits):
            return self.hits[at]
        return self.hits[0] if self.hits and self.done else None

    def next_from(self, line: int, step: int) -> int | None:
        """The hit after that line (1) or before it (-1), going round at the ends; None when there is none."""
        if not self.hits:
            return None
        at = bisect_right(self.hits, line) if step > 0 else bisect_left(self.hits, line) - 1
        return self.hits[at % len(self.hits)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the needle stands in the text of a line."""
        return [found.span() for found in self.pattern.finditer(text)]

    def words(self, line: int) -> str:
        """What the title says with the cursor on that line: `"loss" 3/17`."""
        told = self.needle if len(self.needle) <= _TOLD else f"{self.needle[:_TOLD]} …"
        count = f"{len(self.hits):,}" + ("" if self.done else "+")
        if not self.hits:
            return f'"{told}" ' + ("not found" if self.done else "…")
        at = bisect_left(self.hits, line)
        if at < len(self.hits) and self.hits[at] == line:
            return f'"{told}" {at + 1:,}/{count}'
        return f'"{told}" {count}'
