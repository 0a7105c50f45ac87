"""Where a line breaks when it is longer than the screen is wide. Imports no Textual."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

from screens.lines import Line

Span = tuple[int, int]  # where a row begins and ends in the text of its line

_WORDS = re.compile(r"\s*\S+|\s+")
_LABEL_MAX = 24


def spans(text: str, width: int, indent: int = 0) -> list[Span]:
    """Break the text at blanks; a word that is longer than a row is cut, so that nothing is hidden.

    The first row has `width` cells, those that follow `indent` fewer. Blanks at a break belong to no row.
    """
    if cell_len(text) <= width:
        return [(0, len(text))]
    rows: list[Span] = []
    start, room = 0, width
    narrow = max(1, width - indent)
    for found in _WORDS.finditer(text):
        word = found[0]
        cells = cell_len(word)
        if cells > room and found.start() > start:
            rows.append((start, found.start()))
            start, room = found.end() - len(word.lstrip()), narrow
            word = text[start : found.end()]
            cells = cell_len(word)
        if cells > room:
            chunks = _chop(word, room, narrow)
            for chunk in chunks[:-1]:
                rows.append((start, start + len(chunk)))
                start += len(chunk)
            room, cells = narrow, cell_len(chunks[-1])
        room -= cells
    return [*rows, (start, len(text))]


def _chop(word: str, room: int, narrow: int) -> list[str]:
    """Pieces of a long word: the first has to fit the room left, the others a whole row."""
    head = chop_cells(word, max(1, room))[0]
    return [head, *chop_cells(word[len(head) :], max(2, narrow))]


def hang(line: Line, width: int) -> int:
    """How far rows after the first stand in: under the value where the line begins with a label, else under its
    first letter."""
    if not line:
        return 0
    piece = line[0]
    first = piece if isinstance(piece, str) else piece[0]
    if first.endswith(" ") and first.strip() and cell_len(first) <= _LABEL_MAX:
        indent = cell_len(first)
    else:
        indent = len(first) - len(first.lstrip())
    return min(indent, width // 2)
