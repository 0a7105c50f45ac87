"""Sparklines and graphs of block characters: text in, text out."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence

import pytest

import themes
from screens.graph import Line, graph_lines, sparkline

HOUR: list[float | None] = [float(i % 100) for i in range(600)]


def texts(lines: Sequence[Line]) -> list[str]:
    """The lines without their styles."""
    return ["".join(text for text, _ in line) for line in lines]


def test_sparkline_has_its_width_gaps_and_the_newest_at_the_right() -> None:
    assert sparkline([0, 50, None, 100], 4, 0, 100) == "▁▅ █"
    assert sparkline([0, 50, None, 100], 6, 0, 100) == "  ▁▅ █"
    assert sparkline([0, 0, 100, 100, None, None], 3, 0, 100) == "▁█ "
    assert sparkline([0, 100, None, 50], 2, 0, 100) == "▅▅"
    assert sparkline([-5, 500, math.nan, math.inf], 4, 0, 100) == "▁█  "
    assert sparkline([7, 7], 2, 7, 7) == "▁▁"
    assert sparkline([], 3, 0, 1) == "   "
    assert sparkline([1], 0, 0, 1) == ""
    assert sparkline([0, 50, None, 100], 4, 0, 100, ascii=True) == "_+ @"


def test_graph_has_a_scale_a_time_axis_and_gaps() -> None:
    lines = graph_lines([0, 50, None, 100], 18, 6, span_s=600, low=0, high=100, unit="%")
    assert texts(lines) == [
        "100% ┤         ███",
        "     │         ███",
        " 50% ┤   ▄▄▄   ███",
        "     │   ███   ███",
        "  0% ┤▁▁▁███···███",
        "      -10m     now",
    ]
    assert lines[4][1:] == [("▁▁▁███", "accent"), ("···", "dim"), ("███", "accent")]


def test_graph_of_ten_minutes_names_its_times() -> None:
    lines = texts(graph_lines(HOUR, 60, 7, span_s=600, low=0, high=100))
    assert lines[-1].split() == ["-10m", "-5m", "now"]
    assert lines[-1].endswith("now")


@pytest.mark.parametrize("size", [(60, 8), (20, 4), (12, 3), (8, 2), (3, 1), (1, 1), (200, 30)])
@pytest.mark.parametrize("series", [HOUR, [None] * 50, [5.0], [], [math.nan, 1.0], [3.0, 3.0, 3.0]])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_graph_fills_its_size_exactly(size: tuple[int, int], series: list[float | None], ascii_only: bool) -> None:
    lines = graph_lines(series, *size, span_s=600, unit=" W", ascii=ascii_only)
    assert [len(text) for text in texts(lines)] == [size[0]] * size[1]
    assert {token for line in lines for _, token in line} <= {*themes.TOKENS, ""}
    assert not ascii_only or all(text.isascii() for text in texts(lines))


def test_equal_neighbours_are_one_piece() -> None:
    lines = graph_lines([1.0] * 50, 40, 3, span_s=60, low=0, high=1, style="ok")
    assert [len(line) for line in lines] == [2, 2, 1]
    assert lines[0][1][1] == "ok"


def test_no_numbers_are_said_and_not_drawn() -> None:
    assert texts(graph_lines([None, None], 40, 3, span_s=600))[0].strip() == "no numbers in the last 10m"
    assert graph_lines([None], 10, 0, span_s=600) == []


def test_scale_comes_from_the_values_where_none_is_given() -> None:
    lines = texts(graph_lines([70.0, 74.0], 12, 3, span_s=60))
    assert lines[0].startswith("74.0 ┤")
    assert lines[1].startswith("70.0 ┤")


def test_import_loads_no_textual() -> None:
    code = "import screens.graph, sys; print(*{'textual', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
