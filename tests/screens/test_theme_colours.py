"""The colours of every theme, computed: can they be read, and are the five states apart for every eye?

What this measures (worst over normal, protan, deutan and tritan vision; CIE76, where 2.3 can just be seen):

              two states apart   text on its ground, cursor line   states on their ground, cursor line
    dark              31.2                  4.7    4.8                   4.1 (grey; others 6.1)   4.3
    light             26.3                  5.2    4.5                   4.7                      4.5
    contrast          35.5                  8.8    8.8                   5.3                      5.3
"""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from rich.color import Color
from rich.style import Style

import themes
from cockpit.models import Health
from tests.screens.change_app import changing
from tests.screens.colour_math import VISIONS, Rgb, contrast, lab, least_distance

COLOURED = ["cockpit-dark", "cockpit-light", "cockpit-contrast"]
STATES = tuple(themes.STATE_TOKENS[health] for health in Health)
TEXTS = ("text", "dim", "bright", "accent", "header", "mark", "stale", "production", "armed")
OTHERS = (*themes.RAMP_TOKENS, *themes.GROUP_TOKENS, "rule")

# The least contrast: of texts; of states; of ramp, groups and frames, which never carry a meaning by colour alone.
LEAST = {"cockpit-dark": (4.5, 4.0, 1.8), "cockpit-light": (4.5, 4.5, 1.8), "cockpit-contrast": (7.0, 4.5, 4.5)}
STATES_APART = {"cockpit-dark": 30.0, "cockpit-light": 26.0, "cockpit-contrast": 35.0}
GROUPS_APART = {"cockpit-dark": 23.5, "cockpit-light": 17.0, "cockpit-contrast": 23.5}


def rgb(colour: Color | None) -> Rgb:
    assert colour is not None
    return colour.get_truecolor()


def ground(name: str) -> Rgb:
    return rgb(Color.parse(str(themes.theme(name).background)))


def colours(name: str, tokens: tuple[str, ...]) -> list[Rgb]:
    return [rgb(themes.token_styles(name)[token].color) for token in tokens]


def on_bar(name: str, token: str, bar: Style) -> float:
    """The contrast of a token on a cursor line: reversed and underlined ones keep the usual ground."""
    styles = themes.token_styles(name)
    below = ground(name) if bar.bgcolor is None else rgb(bar.bgcolor)
    return contrast(rgb(styles.get(f"{token}@cursor", styles[token]).color), below)


@pytest.mark.parametrize("name", COLOURED)
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["texts", "states", "others"])
def test_everything_can_be_read_on_its_ground(name: str, kind: int) -> None:
    for token in (TEXTS, STATES, OTHERS)[kind]:
        found = contrast(rgb(themes.token_styles(name)[token].color), ground(name))
        assert found >= LEAST[name][kind], f"{token}: {found:.2f}"


@pytest.mark.parametrize("name", COLOURED)
@pytest.mark.parametrize("bar", ["cursor", "cursor-blurred"])
def test_everything_can_be_read_on_the_cursor_line(name: str, bar: str) -> None:
    for tokens, least in ((TEXTS, LEAST[name][0]), (STATES, LEAST[name][1])):
        for token in tokens:
            found = on_bar(name, token, themes.token_styles(name)[bar])
            assert found >= least, f"{token}: {found:.2f}"


@pytest.mark.parametrize("name", COLOURED)
def test_the_cell_under_a_heatmaps_cursor_can_be_read(name: str) -> None:
    assert on_bar(name, "bright", themes.token_styles(name)["cursor-cell"]) >= LEAST[name][0]


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", COLOURED)
def test_the_five_states_look_different_to_every_eye(name: str, vision: str) -> None:
    assert least_distance(colours(name, STATES), vision) >= STATES_APART[name]


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", COLOURED)
def test_the_colours_of_jobs_look_different_to_every_eye(name: str, vision: str) -> None:
    assert least_distance(colours(name, themes.GROUP_TOKENS), vision) >= GROUPS_APART[name]


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", COLOURED)
def test_the_ramp_grows_away_from_the_ground_for_every_eye(name: str, vision: str) -> None:
    below = lab(ground(name), vision)[0]
    steps = [abs(lab(colour, vision)[0] - below) for colour in colours(name, themes.RAMP_TOKENS)]
    assert all(after - before >= 0.9 for before, after in pairwise(steps)), steps
    assert steps[-1] - steps[0] >= 34


def test_these_measures_notice_what_is_wrong() -> None:
    """Red and green of the same lightness: apart for most, alike for deutan eyes; and yellow on white."""
    red, green = (170, 85, 0), (85, 125, 0)
    assert least_distance([red, green]) > 40
    assert least_distance([red, green], "deutan") < 15
    assert contrast((255, 255, 255), (0, 0, 0)) == pytest.approx(21)
    assert contrast((255, 255, 95), (255, 255, 255)) < 1.2
    assert lab((255, 255, 255)) == pytest.approx((100, 0, 0), abs=0.02)


@pytest.mark.parametrize("name", COLOURED)
def test_every_colour_is_the_entry_of_the_palette_that_stands_beside_it(name: str) -> None:
    text = (themes.FOLDER / f"{name.removeprefix('cockpit-')}.yaml").read_text(encoding="utf-8")
    told = re.findall(r'"[^"]*?(#[0-9a-f]{6})"\s+# (\d+)', text)
    assert len(told) >= 10 + len(themes.TOKENS) - 3
    for colour, number in told:
        assert Color.from_ansi(int(number)).get_truecolor().hex == colour
    entries = {Color.from_ansi(number).get_truecolor().hex for number in range(16, 256)}
    assert set(re.findall(r"#[0-9a-f]{6}", text)) <= entries


def test_dark_states_are_those_of_the_design() -> None:
    wanted = {"ok": 117, "warning": 227, "critical": 202, "drained": 171, "unknown": 243}
    for token, number in wanted.items():
        assert rgb(themes.token_styles("cockpit-dark")[token].color) == Color.from_ansi(number).get_truecolor()


def test_without_colours_the_states_differ_by_sign_and_word() -> None:
    for signs in (themes.UNICODE, themes.ASCII):
        assert len(set(signs.states.values())) == len(Health)
        assert not {*signs.ramp, signs.up, signs.down} & set(signs.states.values())  # nor does an order look like one
    assert len(set(themes.WORDS.values())) == len(Health)
    plain = themes.token_styles("cockpit-plain")
    assert all(style.color is None or style.color.is_default for style in plain.values())
    assert all(style.bgcolor is None for style in plain.values())
    assert not any(style.dim or style.italic for style in plain.values())


@pytest.mark.parametrize("name", COLOURED)
async def test_what_a_line_asks_for_can_be_read(name: str) -> None:
    async with changing() as pilot:
        pilot.app.use_theme(name)
        await pilot.press("D")
        await pilot.planned()
        style = pilot.app.screen.query_one("#reason").get_component_rich_style("input--placeholder")
        assert contrast(rgb(style.color), rgb(style.bgcolor)) >= LEAST[name][0]
