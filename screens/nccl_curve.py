"""Bus bandwidth over size as a graph: plotext draws, its colours become tokens of the theme. Imports no Textual."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cockpit.words import binary_size
from screens.lines import Line, Piece

Points = tuple[tuple[int, float], ...]  # (size in bytes, GB/s)
WIDTH, HEIGHT = 74, 14
# Numbers of ANSI colours stand for styles of ours on the way through plotext.
_TOKENS = {1: "accent", 2: "dim", 3: "ok"}
_TICKS = 5
_plotting = threading.Lock()  # plotext has one figure for all


@dataclass(frozen=True, slots=True)
class Curve:
    """One run over sizes. `kind`: 1 the run that is looked at, 2 an earlier one, 3 what is expected."""

    points: Points
    kind: int = 1


@lru_cache(maxsize=16)
def curve_lines(curves: tuple[Curve, ...], width: int = WIDTH, height: int = HEIGHT) -> tuple[Line, ...]:
    """The graph, () when no run has two sizes; the same curves are drawn once only."""
    sizes = sorted({size for curve in curves for size, _ in curve.points if size > 0})
    if len(sizes) < 2:
        return ()
    with _plotting:
        return tuple(_pieces(line) for line in _drawn(curves, sizes, width, height).rstrip("\n").split("\n"))


def _drawn(curves: Sequence[Curve], sizes: Sequence[int], width: int, height: int) -> str:
    import plotext as plot  # takes a tenth of a second, and few ever look at a curve

    plot.clear_figure()
    plot.theme("clear")
    plot.plotsize(width, height)
    top = max(busbw for curve in curves for _, busbw in curve.points)
    for curve in sorted(curves, key=lambda curve: -curve.kind):  # what is looked at lies on top
        points = _every(curve.points, sizes) if curve.kind == 3 else curve.points
        known = [(size, busbw) for size, busbw in points if size > 0]
        marker = {1: "●", 2: "·", 3: "─"}[curve.kind]
        plot.plot([size for size, _ in known], [busbw for _, busbw in known], marker=marker, color=curve.kind)
    plot.xscale("log")
    plot.ylim(0, top * 1.05 or 1.0)
    ticks = sorted({sizes[at * (len(sizes) - 1) // (_TICKS - 1)] for at in range(_TICKS)})
    plot.xticks(ticks, [binary_size(size) for size in ticks])
    marks = [round(top * part / 3) for part in range(4)]
    plot.yticks(marks, [str(mark) for mark in marks])
    plot.ylabel("GB/s")
    return str(plot.build())


def _every(points: Points, sizes: Sequence[int]) -> Points:
    """A level line from its first size to the end."""
    (start, level), *_ = points
    return tuple((size, level) for size in sizes if size >= start)


def _pieces(line: str) -> Line:
    """A line of ANSI text with our own styles."""
    from rich.text import Text

    text = Text.from_ansi(line.rstrip())
    marks: dict[int, str] = {}
    for span in text.spans:
        colour = getattr(span.style, "color", None)
        if colour is not None and colour.number in _TOKENS:
            marks |= dict.fromkeys(range(span.start, span.end), _TOKENS[colour.number])
    pieces: list[Piece] = []
    for at, char in enumerate(text.plain):
        token = marks.get(at, "dim")
        if pieces and isinstance(pieces[-1], tuple) and pieces[-1][1] == token:
            pieces[-1] = (pieces[-1][0] + char, token)
        else:
            pieces.append((char, token))
    return pieces
