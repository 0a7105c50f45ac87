"""The rows of a TextView as strips: pure functions from lines, places and styles to segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from screens.grid_paint import LineWriter, fit, palette, safe_cells
from screens.lines import Line, Link
from screens.text_state import piece_text
from screens.wrap import Span
from themes.glyphs import Signs

MARGIN = 1  # cells before the text
AROUND = 3  # cells that are not text: the margin, and at the right a blank and the scroll bar

_LINK, _ACTIVE, _HIT, _HIT_HERE = "+link", "+active", "+hit", "+here"


@dataclass(frozen=True, slots=True)
class TextLook:
    """Complete styles by token, and by token with one of the endings above."""

    plain: Mapping[str, Style]
    cursor: Mapping[str, Style]
    signs: Signs


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything but its pieces that decides how a row looks."""

    span: Span
    indent: int
    cursor: bool  # the whole row is highlighted
    active: int | None  # which link of the line is the active one
    hits: tuple[Span, ...]
    here: bool  # the hits are those of the line that was searched for


def text_look(tokens: Mapping[str, Style], base: Style, signs: Signs, *, focused: bool) -> TextLook:
    """The styles of a text view; links are underlined, the active one and what was found are reversed."""
    colours = palette(tokens, base, focused=focused, stale=False)
    return TextLook(_with_endings(colours.plain, tokens), _with_endings(colours.cursor, tokens), signs)


def _with_endings(styles: Mapping[str, Style], tokens: Mapping[str, Style]) -> dict[str, Style]:
    under, turned = Style(underline=True), Style(reverse=True)
    hit, here = tokens["cursor-cell"], Style(reverse=True, bold=True)
    done = dict(styles)
    for token, style in styles.items():
        link = style if token else styles["accent"]
        done[token + _LINK] = link + under
        done[token + _ACTIVE] = link + turned
        done[token + _HIT] = style + hit
        done[token + _HIT_HERE] = styles["armed"] + here
    return done


def draw_row(line: Line, drawing: Drawing, width: int, look: TextLook, *, left: int | None) -> Strip:
    """One row in `width` cells, without the scroll bar. `left` is how far it is scrolled, None when it is broken."""
    writer = LineWriter(look.cursor if drawing.cursor else look.plain)
    writer.pad(drawing.indent)
    for text, token in _runs(line, drawing):
        writer.add(text, safe_cells(text)[1], token)
    room = width - AROUND
    if left is None:
        writer.pad(room)
        return _framed(writer.strip().crop(0, room), drawing, look)
    strip = writer.strip()
    more, before = strip.cell_length > left + room, left > 0 and strip.cell_length > 0
    strip = strip.crop(left, left + room).adjust_cell_length(room, _styles(drawing, look)[""])
    return _framed(_with_signs(strip, room, before, more, drawing, look), drawing, look)


def _styles(drawing: Drawing, look: TextLook) -> Mapping[str, Style]:
    return look.cursor if drawing.cursor else look.plain


def _framed(strip: Strip, drawing: Drawing, look: TextLook) -> Strip:
    blank = Segment(" ", _styles(drawing, look)[""])
    return Strip([blank, *strip, blank], strip.cell_length + 2)


def _with_signs(strip: Strip, room: int, before: bool, more: bool, drawing: Drawing, look: TextLook) -> Strip:
    """Say at the ends of a row that there is more of it to the side."""
    style = _styles(drawing, look)["bright"]
    if before and room > 2:
        strip = Strip([Segment(look.signs.left, style), *strip.crop(1, room)], room)
    if more and room > 2:
        strip = Strip([*strip.crop(0, room - 1), Segment(look.signs.right, style)], room)
    return strip


def _runs(line: Line, drawing: Drawing) -> list[tuple[str, str]]:
    """The text of the row in pieces of one style."""
    runs: list[tuple[str, str]] = []
    start, end = drawing.span
    at, link = 0, -1
    for piece in line:
        text, token = piece_text(piece), "" if isinstance(piece, str) else piece[1]
        ending = ""
        if isinstance(piece, Link):
            link += 1
            ending = _ACTIVE if link == drawing.active else _LINK
        first, last = max(start, at), min(end, at + len(text))
        if first < last:
            cut = text[first - at : last - at]
            runs += _with_hits(cut, first, token, ending, drawing)
        at += len(text)
    return runs


def _with_hits(text: str, at: int, token: str, ending: str, drawing: Drawing) -> list[tuple[str, str]]:
    runs, done = [], 0
    for start, end in drawing.hits:
        first, last = max(0, start - at), min(len(text), end - at)
        if first < last and first >= done:
            runs += [(text[done:first], token + ending)]
            runs += [(text[first:last], token + (_HIT_HERE if drawing.here else _HIT))]
            done = last
    return [run for run in [*runs, (text[done:], token + ending)] if run[0]]


def with_bar(strips: Sequence[Strip], thumb: range, width: int, look: TextLook) -> list[Strip]:
    """Add the scroll bar as the last cell of every row."""
    style, sign = look.plain["rule"], look.signs.thumb
    return [Strip([*strip, Segment(sign if row in thumb else " ", style)], width) for row, strip in enumerate(strips)]


def cut_pieces(pieces: Sequence[tuple[str, str]], room: int, cut: str) -> list[tuple[str, str]]:
    """As much of some pieces of text as has room."""
    kept: list[tuple[str, str]] = []
    for text, token in pieces:
        cells = safe_cells(text)[1]
        if cells > room:
            return [*kept, (fit(text, room, cut), token)] if room > 1 else kept
        kept.append((text, token))
        room -= cells
    return kept
