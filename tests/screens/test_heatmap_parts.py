"""The pure parts of the heatmap: groups, steps, labels, the ramp."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from rich.cells import cell_len
from rich.color import Color, ColorSystem

import themes
from cockpit.models import Health
from screens.heatmap import HeatCell, HeatRow
from screens.heatmap_layout import arrange, cut_middle
from screens.heatmap_model import Groups, step_of, tally
from tests.screens.heat_app import cell, heat_rows, with_cell
from tests.screens.test_grid_hostile import HOSTILE

LOST = HeatCell(None, "lost", Health.CRITICAL)


def test_a_new_group_takes_the_lowest_free_number() -> None:
    groups = Groups()
    rows = [HeatRow(str(i), str(i), (cell(0.9, group=name),)) for i, name in enumerate("abc")]
    groups.adopt(rows)
    groups.adopt([rows[0], rows[2], HeatRow("n", "n", (cell(0.1, group="new"),))])
    assert groups.numbers == {"a": 0, "c": 2, "new": 1}


def test_labels_are_cut_in_the_middle_and_stay_different() -> None:
    assert cut_middle("gpu-st-p5-117", 8, "…") == "gpu-…117"
    assert cut_middle("gpu-st-p5-117", 13, "…") == "gpu-st-p5-117"
    assert cut_middle("node12345678", 6, "…") == "n…5678"
    labels = [f"gpu-st-p5-{i}" for i in range(1, 200)]
    for width in (24, 40, 80, 160):
        layout = arrange(labels, 8, width, 20)
        shown = [layout.label_text(label, "…") for label in labels]
        assert len(set(shown)) == len(labels)
        assert {cell_len(text) for text in shown} == {layout.label}
    for text in HOSTILE:
        for width in range(1, 12):
            assert cell_len(cut_middle(text + "7", width, "…")) == width


def test_steps() -> None:
    assert [step_of(value) for value in (None, math.nan, -1.0, 0.0, 0.5, 1.0, 7.0, math.inf)] == [
        *(None, None, 0, 0, 4, 7, 7, 7),
    ]
    count = tally(with_cell(with_cell(heat_rows(2), 0, 0, LOST), 1, 1, HeatCell(math.nan, "")))
    assert (count.cells, count.states, count.missing) == (16, ((Health.CRITICAL, 1),), 1)


def _lightness(colour: Color) -> float:
    parts = [part / 255 for part in colour.get_truecolor()]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("name", "way"), [("cockpit-dark", 1), ("cockpit-light", -1)])
def test_the_ramp_is_exact_in_256_colours_and_goes_one_way_in_lightness(name: str, way: int) -> None:
    styles = themes.token_styles(name)
    colours = [styles[token].color for token in themes.RAMP_TOKENS]
    assert all(colour is not None for colour in colours)
    light = [_lightness(colour) * way for colour in colours if colour]
    assert all(before < after for before, after in pairwise(light))
    for token in (*themes.RAMP_TOKENS, *themes.GROUP_TOKENS):
        colour = styles[token].color
        assert colour is not None
        assert Color.parse(f"color({colour.downgrade(ColorSystem.EIGHT_BIT).number})").get_truecolor() == (
            colour.get_truecolor()
        )
