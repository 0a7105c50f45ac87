"""The lines of a Heatmap as strips: pure functions from rows, layout and styles to segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.style import Style
from textual.strip import Strip

from cockpit.models import Health
from screens.grid_paint import LineWriter, Pieces, fit, palette, safe_cells
from screens.heatmap_layout import MARGIN, HeatLayout
from screens.heatmap_model import Groups, HeatCell, HeatRow, step_of
from themes import RAMP_TOKENS, STATE_TOKENS
from themes.glyphs import Signs

# Styles besides the theme's tokens: the cell under the cursor and the label of its row.
CELL, LABEL = "@cell", "@label"
NOTE_ROOM = 8  # a note beside the cells is worth showing from this many columns on


@dataclass(frozen=True, slots=True)
class HeatLook:
    """Everything but rows and cursor that decides how a line looks; `groups` is None when values give colours."""

    layout: HeatLayout
    styles: Mapping[str, Style]
    signs: Signs
    first: int = 0  # the first cell of each row that is shown
    groups: Groups | None = None


def heat_styles(tokens: Mapping[str, Style], base: Style, *, focused: bool, stale: bool) -> Mapping[str, Style]:
    """Complete styles by token, with those of the cursor. Stale heatmaps lose their colours."""
    look = palette(tokens, base, focused=focused, stale=stale)
    bar = tokens["cursor-cell" if focused else "cursor-blurred"]
    return {**look.plain, CELL: base + tokens["bright"] + bar, LABEL: look.cursor["bright"]}


def cell_sign(cell: HeatCell, signs: Signs) -> tuple[str, str]:
    """The sign of a cell and its token: a state that deviates goes before the value."""
    if cell.health is not Health.OK:
        return signs.states[cell.health], STATE_TOKENS[cell.health]
    step = step_of(cell.value)
    return (signs.dot, "dim") if step is None else (signs.ramp[step], RAMP_TOKENS[step])


def draw_line(rows: Sequence[HeatRow], cursor: tuple[int, int] | None, bar: str, look: HeatLook) -> Strip:
    """Draw the rows of one line and its piece of the scroll bar; `cursor` is (block, column) if it is here."""
    line, layout = LineWriter(look.styles), look.layout
    for block, row in enumerate(rows):
        column = cursor[1] if cursor is not None and cursor[0] == block else None
        line.pad(MARGIN + block * layout.stride - 1)
        # Greyed out is not enough for a terminal without colours.
        line.add(look.signs.states[Health.UNKNOWN] if row.stale else " ", 1, "stale" if row.stale else "")
        label = LABEL if column is not None else "stale" if row.stale else ""
        line.add(layout.label_text(row.label, look.signs.cut), layout.label, label)
        line.pad(layout.cells_at(block))
        if row.cells:
            _draw_cells(line, row, column, look)
        _draw_note(line, row, look)
    line.pad(layout.width - 1)
    line.add(bar, 1, "" if bar == " " else "rule")
    return line.strip()


def _draw_cells(line: LineWriter, row: HeatRow, cursor: int | None, look: HeatLook) -> None:
    layout, before = look.layout, ""
    for column in range(look.first, min(look.first + layout.shown, len(row.cells))):
        cell = row.cells[column]
        text, token = _cell_text(cell, cell.group != before, look)
        before = cell.group
        token = CELL if column == cursor else "stale" if row.stale else token
        line.add(text, layout.cell, token)


def _cell_text(cell: HeatCell, begins: bool, look: HeatLook) -> tuple[str, str]:
    """A cell in its full width and its token; `begins` says that the group of the cell before is another one."""
    sign, token = cell_sign(cell, look.signs)
    tail, groups = " " * (look.layout.cell - 1), look.groups
    if groups is None or token not in RAMP_TOKENS:
        return sign + tail, token
    if not cell.group:
        return sign + tail, "dim"
    # A letter where a group begins, and in the value's place where there is no room beside it.
    letter = groups.letter(cell.group)
    return (sign + (letter if begins else tail) if tail else letter), groups.token(cell.group)


def _draw_note(line: LineWriter, row: HeatRow, look: HeatLook) -> None:
    """The note beside the cells where one row has the line to itself, or in the place of cells there are none."""
    layout, text = look.layout, row.note
    room = layout.width - 2 - line.cells
    if row.cells:
        room = room - 2 if layout.per_line == 1 else 0
        line.pad(line.cells + 2) if room >= NOTE_ROOM and text else None
    elif layout.per_line > 1:
        room = layout.shown * layout.cell
    if text and room >= (NOTE_ROOM if row.cells else 1):
        line.add(fit(text, room, look.signs.cut), room, "dim")


def draw_numbers(columns: int, rows: int, look: HeatLook) -> Strip:
    """The line above the first: the number of each cell, its last digit where there is no room for more."""
    line, layout = LineWriter(look.styles), look.layout
    for block in range(min(layout.per_line, rows)):
        line.pad(layout.cells_at(block))
        for column in range(look.first, min(look.first + layout.shown, columns)):
            line.add(f"{column % 10:<{layout.cell}}", layout.cell, "dim")
    line.pad(layout.width)
    return line.strip()


def draw_pieces(pieces: Pieces, look: HeatLook) -> Strip:
    """One line of text of several styles, cut at the right."""
    line, width = LineWriter(look.styles), look.layout.width
    line.pad(min(1, width))
    for text, token in pieces:
        text, cells = safe_cells(text)
        room = width - line.cells
        if cells > room:
            line.add(fit(text, room, look.signs.cut), room, token) if room > 0 else None
            break
        line.add(text, cells, token)
    line.pad(width)
    return line.strip()
