"""The words of a Heatmap: title, legend, the cell under the cursor, and what stands where rows are missing."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from cockpit.models import Health
from screens.grid_paint import fit, safe_cells
from screens.heatmap_layout import cut_middle
from screens.heatmap_model import Groups, HeatCell, HeatRow, Tally
from themes import RAMP_TOKENS, STATE_TOKENS
from themes.glyphs import WORDS, Signs

Pieces = tuple[tuple[str, str], ...]

NARROW = 32
LONGEST_GROUP = 24  # cells for the name of a group in the legend


@dataclass(frozen=True, slots=True)
class Metric:
    """What the cells measure; `low` and `high` are the ends of the ramp as a person reads them."""

    name: str = ""
    low: str = ""
    high: str = ""


def title_pieces(title: str, noun: str, rows: int | None, count: Tally, stale: str | None, signs: Signs) -> Pieces:
    """The title's left: `GPUs 64 · 512 GPUs · ✖ 1 · ▲ 3 · 2 no value · 1 row stale`; `rows` None: never read.

    Without `noun` the number of cells is left out.
    """
    dot = f" {signs.dot} "
    pieces = [(title, "bright")]
    if rows is None:
        return tuple(pieces)
    pieces.append((f" {rows:,}{dot}{count.cells:,} {noun}{'s' * (count.cells != 1)}" if noun else f" {rows:,}", "text"))
    if stale is not None:
        pieces.append((f"{dot}{signs.states[Health.UNKNOWN]} {stale}", "bright"))
    for health, number in count.states:
        pieces += [(dot, "dim"), (f"{signs.states[health]} {number:,}", STATE_TOKENS[health])]
    if count.missing:
        pieces.append((f"{dot}{count.missing:,} no value", "dim"))
    for number, word in ((count.stale_rows, "stale"), (count.unread_rows, "not read")):
        if number:
            pieces.append((f"{dot}{number:,} row{'s' * (number > 1)} {word}", "dim"))
    return tuple(pieces)


def legend(metric: Metric, groups: Groups | None, signs: Signs, room: int) -> Pieces:
    """The legend in at most `room` cells: the metric with its ramp, and the groups when colours stand for them."""
    tokens = RAMP_TOKENS if groups is None else ("dim",) * len(signs.ramp)
    ramp = list(zip(signs.ramp, tokens, strict=True))
    wishes = [
        [(f"{metric.name} {metric.low} ", "text"), *ramp, (f" {metric.high}", "text")],
        [(f"{metric.name} ", "text"), *ramp],
        [(metric.name, "text")],
    ]
    if metric.low and metric.low == metric.high:
        wishes = [[(metric.name, "text")]] * 2  # one value only, such as "well": a ramp would promise more
    # The groups need the room more than the ends of the ramp do.
    for wish in wishes if groups is None else wishes[1:]:
        pieces = tuple((safe_cells(text)[0], token) for text, token in wish)
        left = room - _cells(pieces)
        if left >= 0 and metric.name:
            return pieces if groups is None else _group_names(groups, signs, left) + pieces
    return ()


def _group_names(groups: Groups, signs: Signs, room: int) -> Pieces:
    """`A job 1 · B job 2 · 3 more · `, as many as there is room for."""
    pieces: list[tuple[str, str]] = []
    names = sorted(groups.numbers, key=groups.numbers.__getitem__)
    for place, name in enumerate(names):
        text, cells = safe_cells(name)
        text = fit(text, min(cells, LONGEST_GROUP), signs.cut)
        text = f"{groups.letter(name)} {text} "
        rest = f"{len(names) - place} more {signs.dot} "
        if _cells(tuple(pieces)) + cell_len(text) + len(rest) + 2 > room:
            return (*pieces, (rest, "dim")) if pieces and _cells(tuple(pieces)) + len(rest) <= room else ()
        pieces += [(text, groups.token(name)), (f"{signs.dot} ", "dim")]
    return tuple(pieces)


def _cells(pieces: Pieces) -> int:
    return sum(cell_len(text) for text, _ in pieces)


def description(row: HeatRow | None, column: int, cell: HeatCell | None, noun: str, signs: Signs, width: int) -> Pieces:
    """The cell under the cursor: `gpu-st-p5-3 GPU 5 · 98 % · job 48219 maria`.

    Less than NARROW cells are kept for the value: the label is cut and the noun left out.
    """
    if row is None:
        return ()
    label, cells = safe_cells(row.label)
    if width < NARROW:
        label = cut_middle(label, min(cells, max(3, width // 3)), signs.cut)
    pieces = [(label, "bright")]
    if cell is not None:
        pieces.append((f" {column}" if width < NARROW else f" {noun} {column}", "text"))
        if cell.health is not Health.OK:
            sign, word = signs.states[cell.health], WORDS[cell.health]
            # The state that nobody knows has a mark for a word, which alone would say nothing.
            word = "unknown" if cell.health is Health.UNKNOWN else word
            pieces += [(f" {signs.dot} ", "dim"), (f"{sign} {word}", STATE_TOKENS[cell.health])]
    words = [] if cell is None else [cell.text or ("no value" if cell.value is None else ""), cell.group]
    words += [row.note, "stale" if row.stale and not row.unread else ""]
    for text in words:
        if text:
            pieces += [(f" {signs.dot} ", "dim"), (text, "text")]
    return tuple(pieces)
