"""What text views show: lines of styled pieces, some of which lead elsewhere. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cockpit.words import MISSING

LABEL_WIDTH = 13


@dataclass(frozen=True, slots=True)
class Subject:
    """What details can be opened on. `kind`: node, gpu, job, queue or problem; `key`: as the tables key it.

    The key of a node or queue is its name, of a GPU `node/slot`, of a job that of its QueueRow, of a problem
    its own; the key "" means all of that kind.
    """

    kind: str
    key: str


class Link(NamedTuple):
    """A piece of text that opens the details of something."""

    text: str
    token: str
    subject: Subject


Piece = str | tuple[str, str] | Link  # a pair is (text, style token of the theme)
Line = Sequence[Piece]


def section(title: str) -> Line:
    """A heading."""
    return [(title, "bright")]


def fact(label: str, value: str, token: str = "") -> Line:
    """One labelled value."""
    return [(f"  {label:<{LABEL_WIDTH - 1}} ", "dim"), (value, token)]


def facts(pairs: Iterable[tuple[str, str]]) -> list[Line]:
    """Labelled values; those that are empty are left out."""
    return [fact(label, value) for label, value in pairs if value and value != MISSING]


def links(line: Line) -> list[Subject]:
    """Where a line leads, from left to right."""
    return [piece.subject for piece in line if isinstance(piece, Link)]
