"""The lines of a Grid as strips: pure functions from rows, layout and styles to segments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from cockpit.text import printable
from screens.grid_layout import Layout
from themes.glyphs import Signs

Pieces = Iterable["tuple[str, str]"]

# What stays as it is when the rows are stale: the frame and the person's own marks.
FRAME_TOKENS = ("mark", "bright", "accent", "rule")


# Flags and skin tones take another width in each terminal, which would shift the rest of the line:
# flags become their two letters, skin tones a dot.
_UNSTEADY = {0x1F1E6 + n: chr(ord("A") + n) for n in range(26)} | dict.fromkeys(range(0x1F3FB, 0x1F400), "·")


@dataclass(frozen=True, slots=True)
class Palette:
    """Complete styles by token: `plain` for ordinary lines, `cursor` for the cursor line."""

    plain: Mapping[str, Style]
    cursor: Mapping[str, Style]


def palette(tokens: Mapping[str, Style], base: Style, *, focused: bool, stale: bool) -> Palette:
    """Lay the tokens over the widget's style. Stale rows lose their colours: they tell what was."""
    bar = tokens["cursor" if focused else "cursor-blurred"]
    plain: dict[str, Style] = {}
    cursor: dict[str, Style] = {}
    for token in tokens:
        if "@" in token:
            continue
        shown = "stale" if stale and token not in FRAME_TOKENS else token
        plain[token] = base + tokens[shown]
        cursor[token] = base + tokens.get(f"{shown}@cursor", tokens[shown]) + bar
    return Palette(plain, cursor)


def safe_cells(text: str) -> tuple[str, int]:
    """Return text that cannot move the cursor, and how many cells it takes."""
    if text.isascii() and text.isprintable():
        return text, len(text)
    text = printable(text).translate(_UNSTEADY)
    return text, cell_len(text)


def fit(text: str, width: int, cut: str, *, right: bool = False) -> str:
    """Return the text in exactly `width` cells; `cut` marks what is left out, even amid a wide character."""
    text, cells = safe_cells(text)
    if cells > width:
        return set_cell_size(text, width - 1) + cut if width > 1 else cut[:width]
    blank = " " * (width - cells)
    return blank + text if right else text + blank


class LineWriter:
    """Collects pieces of one line and merges neighbours of equal style, for fewer bytes to the terminal."""

    __slots__ = ("_segments", "_style", "_styles", "_texts", "cells")

    def __init__(self, styles: Mapping[str, Style]) -> None:
        self._styles = styles
        self._segments: list[Segment] = []
        self._style = styles[""]
        self._texts: list[str] = []
        self.cells = 0

    def add(self, text: str, cells: int, token: str = "") -> None:
        """Append text of that many cells. A token that the theme does not know is drawn as normal."""
        if not cells:
            return
        style = self._styles.get(token, self._styles[""])
        if style is not self._style and style != self._style:
            self._flush()
            self._style = style
        self._texts.append(text)
        self.cells += cells

    def pad(self, column: int, token: str = "") -> None:
        """Fill with blanks up to that column."""
        if column > self.cells:
            self.add(" " * (column - self.cells), column - self.cells, token)

    def strip(self) -> Strip:
        """The line so far."""
        self._flush()
        return Strip(self._segments, self.cells)

    def _flush(self) -> None:
        if self._texts:
            self._segments.append(Segment("".join(self._texts), self._style))
            self._texts = []


def draw_row(
    row: Any,
    layout: Layout,
    styles: Mapping[str, Style],
    gutter: Pieces,
    cut: str,
    short: dict[str, int],
) -> Strip:
    """Draw one row without its scroll bar. Columns that had to be cut tell in `short` the width they need."""
    line = LineWriter(styles)
    for sign, token in gutter:
        line.add(sign, 1, token)
    for slot in layout.slots:
        column, width = slot.column, slot.width
        line.pad(slot.x)
        cell = column.cell(row)
        text, token = (cell, "") if isinstance(cell, str) else cell
        text, cells = safe_cells(text)
        if cells > width:
            short[column.id] = max(cells, short.get(column.id, 0))
            line.add(fit(text, width, cut), width, token)
        elif column.align == "right":
            line.pad(slot.x + width - cells)
            line.add(text, cells, token)
        else:
            line.add(text, cells, token)
            line.pad(slot.x + width)
    line.pad(layout.width - 1)
    return line.strip()


def draw_header(layout: Layout, styles: Mapping[str, Style], signs: Signs, sort: str | None, down: bool) -> Strip:
    """Draw the column titles, the sort arrow, and signs where columns are scrolled away on either side."""
    line = LineWriter(styles)
    for place, slot in enumerate(layout.slots):
        if place == 1 and layout.left:
            line.pad(slot.x - 1)
            line.add(signs.left, 1, "bright")
        line.pad(slot.x)
        if slot.column.id == sort:
            title = _with_arrow(slot.column.title, slot.width, signs, down)
            line.add(fit(title, slot.width, "", right=slot.column.align == "right"), slot.width, "bright")
        else:
            right = slot.column.align == "right"
            line.add(fit(slot.column.title, slot.width, signs.cut, right=right), slot.width, "header")
    line.pad(layout.width - 1)
    line.add(signs.right if layout.right else " ", 1, "bright")
    return line.strip()


def _with_arrow(title: str, width: int, signs: Signs, down: bool) -> str:
    """The title of the sorted column; the arrow stays when the title has to be cut."""
    title, cells = safe_cells(title)
    if cells >= width:
        title = fit(title, width - 1, signs.cut)
    return title + (signs.down if down else signs.up)


def draw_title(left: Pieces, right: Pieces, width: int, styles: Mapping[str, Style], signs: Signs, rule: str) -> Strip:
    """Draw the title in a rule over the whole width; what stands at its right goes first."""
    line = LineWriter(styles)
    line.add(signs.rule + " ", 2, rule)
    tail = [(*safe_cells(text), token) for text, token in right]
    tail_cells = sum(cells for _, cells, _ in tail) + 3 if tail else 0
    for text, token in left:
        text, cells = safe_cells(text)
        room = width - 2 - line.cells
        if cells > room:
            line.add(fit(text, room, signs.cut), room, token) if room > 0 else None
            break
        line.add(text, cells, token)
    line.add(" ", 1, rule)
    if tail and line.cells + tail_cells < width:
        _rule_to(line, width - tail_cells, signs, rule)
        line.add(" ", 1, rule)
        for text, cells, token in tail:
            line.add(text, cells, token)
        line.add(" ", 1, rule)
    _rule_to(line, width, signs, rule)
    return line.strip().crop(0, width)


def _rule_to(line: LineWriter, column: int, signs: Signs, rule: str) -> None:
    missing = column - line.cells
    if missing > 0:
        line.add(signs.rule * missing, missing, rule)


def draw_words(text: str, width: int, styles: Mapping[str, Style], token: str, cut: str) -> list[Strip]:
    """Draw plain words where rows would stand, as many lines as they need; a newline begins a new one."""
    room = max(1, width - 3)
    wrapped = [line for part in text.split("\n") for line in textwrap.wrap(part, room) or [""]]
    strips = []
    for words in wrapped:
        line = LineWriter(styles)
        line.pad(2)
        line.add(fit(words, room, cut), room, token)
        strips.append(line.strip().adjust_cell_length(width, styles[""]))
    return strips


def changed_width(old: Strip, new: Strip) -> int:
    """How many cells from the left have to be sent again; 0 when both look the same.

    Textual sends a line from its start, so only an equal tail can be spared.
    """
    before, after = list(old), list(new)
    if before == after:
        return 0
    width = new.cell_length
    if old.cell_length != width:
        return width
    while before and after and before[-1] == after[-1]:
        width -= after[-1].cell_length
        before.pop()
        after.pop()
    if before and after and before[-1].style == after[-1].style:
        width -= _same_tail(before[-1].text, after[-1].text)
    return width


def _same_tail(old: str, new: str) -> int:
    """The length of the equal ASCII end of two texts; one cell a character, so no wide one is halved."""
    count = 0
    for one, other in zip(reversed(old), reversed(new), strict=False):
        if one != other or one > "~":
            break
        count += 1
    return count
