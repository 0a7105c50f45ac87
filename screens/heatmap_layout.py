"""Where the rows and cells of a heatmap stand, for a given width and height. Pure arithmetic in cells."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, chop_cells, set_cell_size

from screens.grid_paint import safe_cells

MARGIN = 1
GAP = 2  # at least so much between two rows on one line
WIDEST_GAP = 6
LEAST_LABEL = 6
READABLE_LABEL = 10  # below this, narrow cells are the smaller loss
WIDEST_LABEL = 40
KEPT_PREFIX = 3  # of what all labels begin with, the last letters are worth most: "p5-"


@dataclass(frozen=True, slots=True)
class HeatLayout:
    """`per_line` rows stand side by side, `stride` apart: a label of `label` cells, a blank, and the cells.

    Each cell is `cell` columns wide; `shown` of a row's cells are on screen, fewer than there are only where
    the terminal is narrower than one row. From every label the characters from `cut_from` to `cut_to` are
    left out, which all of them have in common.
    """

    width: int = 0
    per_line: int = 1
    stride: int = 1
    label: int = 1
    cell: int = 1
    shown: int = 0
    cut_from: int = 0
    cut_to: int = 0

    def cells_at(self, block: int) -> int:
        """The column where the cells of the block begin."""
        return MARGIN + block * self.stride + self.label + 1

    def label_text(self, label: str, cut: str) -> str:
        """The label in exactly its width."""
        if self.cut_to:
            label = label[: self.cut_from] + cut + label[self.cut_to :]
        return cut_middle(label, self.label, cut)

    def hit(self, x: int) -> tuple[int, int | None] | None:
        """The (block, cell on screen) under a column; the cell is None on a label, all is None beside a row."""
        if not MARGIN <= x < self.width - 1:
            return None
        block, place = divmod(x - MARGIN, self.stride)
        if block >= self.per_line:
            return None
        place -= self.label + 1
        if place >= self.shown * self.cell:
            return None
        return block, place // self.cell if place >= 0 else None


def arrange(labels: Sequence[str], cells: int, width: int, lines: int) -> HeatLayout:
    """Find the roomiest layout in which all rows are seen at once, else the densest one, which scrolls.

    Wide cells are worth more than whole labels, but a label is never cut so far that two of them look alike.
    """
    room = max(1, width - MARGIN - 1)
    natural = min(WIDEST_LABEL, max((safe_cells(label)[1] for label in labels), default=1))
    layout = _arrange(labels, cells, width, room, lines, natural)
    return _without_common(layout, labels, natural)


def _arrange(labels: Sequence[str], cells: int, width: int, room: int, lines: int, natural: int) -> HeatLayout:
    least = _least_label(labels, natural)
    readable = min(natural, max(least, READABLE_LABEL))
    per_line = max(1, -(-len(labels) // max(1, lines)))
    for cell, shortest in ((2, readable), (1, readable), (1, least)):
        label = min(natural, (room + GAP) // per_line - GAP - 1 - cells * cell)
        if label >= shortest:
            return _spread(width, room, per_line, label, cell, cells)
    per_line = (room + GAP) // (least + 1 + cells + GAP)
    if per_line < 1:
        return _clipped(width, room, least, cells)
    label = min(natural, (room + GAP) // per_line - GAP - 1 - cells)
    return _spread(width, room, per_line, label, 1, cells)


def _without_common(layout: HeatLayout, labels: Sequence[str], natural: int) -> HeatLayout:
    """Cut all labels at the same place if that is enough, so that they still stand in line."""
    common = len(os.path.commonprefix(list(labels)))  # noqa: RUF071 - characters are what is wanted
    too_much = natural - layout.label + 1
    if layout.label >= natural or common < too_much or not "".join(labels).isascii():
        return layout
    end = max(too_much, common - KEPT_PREFIX)
    return replace(layout, cut_from=end - too_much, cut_to=end)


def cut_middle(text: str, width: int, cut: str) -> str:
    """Return the text in exactly `width` cells, shortened in its middle: the number at its end stays."""
    text, cells = safe_cells(text)
    if cells <= width:
        return text + " " * (width - cells)
    if width < 3:
        return set_cell_size(text, width)
    number = len(text) - len(text.rstrip("0123456789"))
    tail = _last_cells(text, min(width - 2, max(number, (width - 1) // 2)))
    return set_cell_size(text, width - 1 - cell_len(tail)) + cut + tail


def _last_cells(text: str, cells: int) -> str:
    if text.isascii():
        return text[-cells:]
    # Whole characters from the end, so that no wide one is halved.
    tail = ""
    for piece in reversed(chop_cells(text, 2)):
        for char in reversed(piece):
            if cell_len(char + tail) > cells:
                return tail
            tail = char + tail
    return tail


def _least_label(labels: Sequence[str], natural: int) -> int:
    """How far labels can be cut while all of them stay different."""
    different = len(set(labels))
    for width in range(min(LEAST_LABEL, natural), natural):
        layout = _without_common(HeatLayout(label=width), labels, natural)
        if len({layout.label_text(label, "…") for label in labels}) == different:
            return width
    return natural


def _spread(width: int, room: int, per_line: int, label: int, cell: int, cells: int) -> HeatLayout:
    block = label + 1 + cells * cell
    stride = min((room + GAP) // per_line, block + WIDEST_GAP)
    return HeatLayout(width, per_line, max(1, stride), label, cell, cells)


def _clipped(width: int, room: int, least: int, cells: int) -> HeatLayout:
    """One row a line, where not even the narrowest fits: the label gives way up to half of the line."""
    label = max(1, min(least, max(room // 2, room - 1 - cells)))
    return HeatLayout(width, 1, room + GAP, label, 1, max(0, min(cells, room - label - 1)))
