"""Breaking styled lines at blanks, with what follows hanging under where the text began. Imports no Textual."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.cells import cell_len

from screens.lines import Line, Link, Piece

_WORDS = re.compile(r"\s*\S+|\s+")
_LABEL_MAX = 24


def wrap(lines: Iterable[Line], width: int) -> list[Line]:
    """Every line in at most `width` cells; a word that is longer stays whole on a line of its own."""
    return [part for line in lines for part in _wrap(line, max(20, width))]


def _wrap(line: Line, width: int) -> list[Line]:
    pieces = [(piece, "") if isinstance(piece, str) else piece for piece in line]
    if sum(cell_len(piece[0]) for piece in pieces) <= width:
        return [line]
    indent = _indent(pieces[0][0])
    done: list[Line] = []
    row: list[Piece] = []
    used = 0
    for piece in pieces:
        for word in _WORDS.findall(piece[0]):
            if row and used + cell_len(word) > width:
                done.append(row)
                row, used, word = [" " * indent], indent, word.lstrip()
            row.append(Link(word, piece.token, piece.subject) if isinstance(piece, Link) else (word, piece[1]))
            used += cell_len(word)
    return [*done, row]


def _indent(first: str) -> int:
    """Under the value where the line begins with a label, else under its first letter."""
    if first.endswith(" ") and first.strip() and cell_len(first) <= _LABEL_MAX:
        return cell_len(first)
    return len(first) - len(first.lstrip())
