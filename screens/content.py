"""Outside text on its way into a widget: always a Content object, never markup.

Textual reads a plain str as markup in most widgets, so an unbalanced bracket in a job's name would end
the app and a click tag in it would run an action.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from cockpit.text import printable
from screens.lines import Piece
from themes import variable


def plain(text: str | bytes) -> Content:
    """Return outside text as one line, shown exactly as it is, control characters as visible signs."""
    return Content(printable(text))


def styled(parts: Iterable[Piece]) -> Content:
    """Join pieces of text into one line; a pair is (text, style token of the theme, "" for normal).

    The texts may come from outside; the tokens are ours. Raises KeyError for an unknown token.
    """
    pieces = [(part, "") if isinstance(part, str) else part[:2] for part in parts]
    return Content.assemble(*[(printable(text), f"${variable(token)}" if token else "") for text, token in pieces])
