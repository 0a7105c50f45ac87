"""Small graphs of block characters as plain text: pure functions, without Textual."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.words import span
from themes.glyphs import ASCII, UNICODE

Line = list[tuple[str, str]]  # pieces of (text, style token of the theme)

# How full the topmost cell of a column is, in eighths; ASCII has but three heights.
FILLS = " ▁▂▃▄▅▆▇█"
ASCII_FILLS = " ...:::##"


def sparkline(
    values: Sequence[float | None],
    width: int,
    low: float,
    high: float,
    ascii: bool = False,  # noqa: A002 - the word that signs and options use
) -> str:
    """One line of exactly `width` cells, the newest value at its right; blank where there is no number.

    More values than cells are averaged, each with its neighbours. `low` and `high` are the ends of the scale.
    """
    ramp = (ASCII if ascii else UNICODE).ramp
    return "".join(
        " " if value is None else ramp[min(len(ramp) - 1, int(_share(value, low, high) * len(ramp)))]
        for value in _columns(values, width)
    )


def graph_lines(
    series: Sequence[float | None],
    width: int,
    height: int,
    *,
    span_s: float,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    style: str = "accent",
    ascii: bool = False,  # noqa: A002
) -> list[Line]:
    """A graph of `height` lines of `width` cells: a scale at the left, the time below, the newest value at the right.

    The values stand `span_s` / len(series) seconds apart. `low` and `high` are the ends of the scale, taken from
    the values where None. A value at the low end still shows its lowest mark, a missing one a dim dot, so that
    the two differ. Too little room leaves out the time first, then the scale.
    """
    scale = _scale(series, low, high)
    if scale is None or width < 1 or height < 1:
        words = f"no numbers in the last {span(span_s)}"[: max(0, width)]
        return [[(words.ljust(width), "dim")], *([[(" " * width, "")]] * (height - 1))][: max(0, height)]
    labels = _labels(scale, height - (height > 2), unit)
    margin = max(map(len, labels)) + 2
    # A graph narrower than its scale says nothing.
    margin = margin if width - margin >= margin else 0
    columns = _columns(_stretched(series, width - margin), width - margin)
    lines = [
        [*_axis(label, margin, ascii), *_plot(columns, scale, len(labels) - row - 1, len(labels), style, ascii)]
        for row, label in enumerate(labels)
    ]
    if height > 2:
        lines.append([(" " * margin + _times(width - margin, span_s), "dim")])
    return lines


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float


def _scale(series: Sequence[float | None], low: float | None, high: float | None) -> _Scale | None:
    known = [value for value in series if value is not None and math.isfinite(value)]
    if not known:
        return None
    bottom, top = min(known) if low is None else low, max(known) if high is None else high
    return _Scale(bottom, top if top > bottom else bottom + 1)


def _share(value: float, low: float, high: float) -> float:
    return max(0.0, min(1.0, (value - low) / (high - low))) if high > low else 0.0


def _columns(values: Sequence[float | None], width: int) -> list[float | None]:
    """One number a cell: averages where there are more values than cells, nothing at the left where fewer."""
    if width < 1:
        return []
    known = [None if value is None or not math.isfinite(value) else value for value in values]
    if len(known) <= width:
        return [None] * (width - len(known)) + known
    edges = [place * len(known) // width for place in range(width + 1)]
    return [_mean(known[start:end]) for start, end in itertools.pairwise(edges)]


def _stretched(series: Sequence[float | None], width: int) -> Sequence[float | None]:
    """Fewer values than cells repeated, so that each stands over its time."""
    count = len(series)
    return series if count >= width else [series[place * count // width] for place in range(width)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _labels(scale: _Scale, rows: int, unit: str) -> list[str]:
    """The texts beside the lines: the ends of the scale, and its middle where there are five lines or more."""
    digits = 0 if scale.high - scale.low >= 8 else 1 if scale.high - scale.low >= 0.8 else 2
    at = {0: scale.high, rows - 1: scale.low}
    if rows % 2 and rows >= 5:
        at[rows // 2] = (scale.low + scale.high) / 2
    if rows == 1:
        at = {0: scale.high}
    return [f"{at[row]:.{digits}f}{unit}" if row in at else "" for row in range(rows)]


def _axis(label: str, margin: int, ascii: bool) -> Line:  # noqa: A002
    if not margin:
        return []
    return [(f"{label:>{margin - 2}} {('|' if ascii else '┤') if label else ('|' if ascii else '│')}", "dim")]


def _plot(
    columns: Sequence[float | None],
    scale: _Scale,
    row: int,
    rows: int,
    style: str,
    ascii: bool,  # noqa: A002
) -> Line:
    """One line of the graph, `row` counted from below; equal neighbours are one piece."""
    fills, dot = (ASCII_FILLS, ASCII.dot) if ascii else (FILLS, UNICODE.dot)
    pieces: Line = []
    for value in columns:
        if value is None:
            text, token = (dot if row == 0 else " "), "dim"
        else:
            eighths = max(1, round(_share(value, scale.low, scale.high) * rows * 8))
            text, token = fills[max(0, min(8, eighths - row * 8))], style
        if pieces and pieces[-1][1] == token:
            pieces[-1] = (pieces[-1][0] + text, token)
        else:
            pieces.append((text, token))
    return pieces


def _times(width: int, span_s: float) -> str:
    """The time below: how long ago at the left, the half of it in the middle, now at the right."""
    left, middle, right = f"-{span(span_s)}", f"-{span(span_s / 2)}", "now"
    if width < len(left) + len(right) + 1:
        return right.rjust(width)[-width:] if width >= len(right) else " " * width
    line = left.ljust(width - len(right)) + right
    start = (width - len(middle)) // 2
    if start > len(left) + 1 and start + len(middle) < width - len(right) - 1:
        line = line[:start] + middle + line[start + len(middle) :]
    return line
