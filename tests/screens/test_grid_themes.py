"""Theme tokens: colours, their fall-backs, and what works without any."""

from __future__ import annotations

import subprocess
import sys

import pytest
from rich.color import Color, ColorSystem

import themes
from cockpit.models import Health
from tests.screens.grid_app import GridApp, Row, node_rows
from tests.screens.helpers import screen_text


def test_dark_states_are_exact_entries_of_the_256_palette() -> None:
    styles = themes.token_styles("cockpit-dark")
    wanted = {"ok": 117, "warning": 227, "critical": 202, "drained": 171, "unknown": 243}
    for token, number in wanted.items():
        colour = styles[token].color
        assert colour is not None
        assert colour.downgrade(ColorSystem.EIGHT_BIT).number == number


def test_ansi_states_are_five_different_colours() -> None:
    styles = themes.token_styles("cockpit-ansi")
    colours = [styles[themes.STATE_TOKENS[health]].color for health in Health]
    assert {colour.number for colour in colours if colour} == {14, 11, 9, 13, 8}


@pytest.mark.parametrize("name", themes.THEMES)
def test_every_theme_defines_every_token_as_a_variable(name: str) -> None:
    variables = themes.theme(name).variables
    for token in themes.TOKENS:
        assert variables[themes.variable(token)]


def _luminance(colour: Color) -> float:
    parts = [part / 255 for part in colour.get_truecolor()]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", ["cockpit-dark", "cockpit-light"])
def test_every_text_can_be_read_also_on_the_cursor_line(name: str) -> None:
    styles = themes.token_styles(name)
    ground = Color.parse(str(themes.theme(name).background))
    bar = styles["cursor"].bgcolor
    assert bar is not None
    for token in (
        *(themes.STATE_TOKENS[health] for health in Health),
        "text",
        "dim",
        "accent",
        "stale",
        "mark",
    ):
        for style, below in ((styles[token], ground), (styles.get(f"{token}@cursor", styles[token]), bar)):
            assert style.color is not None
            high, low = sorted((_luminance(style.color), _luminance(below)), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 3.5, token


def test_choice_of_theme() -> None:
    assert themes.choose(256) == themes.choose(None) == "cockpit-dark"
    assert themes.choose(2**24, wanted="cockpit-light") == "cockpit-light"
    assert themes.choose(16, wanted="cockpit-light") == "cockpit-ansi"
    assert themes.choose(2**24, no_color=True) == "cockpit-ansi"
    assert themes.choose(256, wanted="nonsense") == "cockpit-dark"


def test_import_is_cheap() -> None:
    code = "import themes, sys; print(*{'textual', 'rich', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", themes.THEMES)
async def test_every_theme_runs(name: str) -> None:
    app = GridApp([Row("n1", "down", health=Health.CRITICAL), *node_rows(3)], theme=name)
    async with app.run_test(size=(60, 8), notifications=True) as pilot:
        app.notify("hello", severity="warning")
        await pilot.press("slash", *"n")
        await pilot.pause()
        assert "✖ n1" in screen_text(app)


async def test_no_color_sends_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = GridApp([Row("n1", "down", health=Health.CRITICAL), *node_rows(3)], theme="cockpit-ansi")
    async with app.run_test(size=(60, 8), notifications=True) as pilot:
        await pilot.press("j")
        strips = app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        assert all(s.color is None or s.color.is_default for s in styles)
        assert all(s.bgcolor is None or s.bgcolor.is_default for s in styles)
        assert any(s.reverse for s in styles)


async def test_a_change_of_theme_recolours_the_rows() -> None:
    app = GridApp([Row("n1", "down", health=Health.CRITICAL), *node_rows(3)])
    async with app.run_test(size=(60, 8), notifications=True) as pilot:
        before = list(app.grid.render_line(2))
        app.register_theme(themes.theme("cockpit-light"))
        app.theme = "cockpit-light"
        await pilot.pause()
        await pilot.pause()
        after = list(app.grid.render_line(2))
        assert [segment.text for segment in before] == [segment.text for segment in after]
        assert before != after
