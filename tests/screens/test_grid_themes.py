"""Theme tokens: colours, their fall-backs, and what works without any."""

from __future__ import annotations

import subprocess
import sys

import pytest

import themes
from cockpit.models import Health
from tests.screens.grid_app import GridApp, Row, node_rows
from tests.screens.helpers import screen_text


def test_ansi_states_are_five_different_colours() -> None:
    styles = themes.token_styles("cockpit-ansi")
    colours = [styles[themes.STATE_TOKENS[health]].color for health in Health]
    assert {colour.number for colour in colours if colour} == {14, 11, 9, 13, 8}


@pytest.mark.parametrize("name", themes.THEMES)
def test_every_theme_defines_every_token_as_a_variable(name: str) -> None:
    variables = themes.theme(name).variables
    for token in themes.TOKENS:
        assert variables[themes.variable(token)]


def test_choice_of_theme() -> None:
    assert themes.choose(256) == themes.choose(None) == "cockpit-dark"
    assert themes.choose(2**24, wanted="cockpit-light") == "cockpit-light"
    assert themes.choose(16) == themes.choose(16, wanted="cockpit-light") == "cockpit-ansi"
    assert themes.choose(2**24, no_color=True) == "cockpit-plain"
    assert themes.choose(256, no_color=True, wanted="cockpit-contrast") == "cockpit-plain"
    assert themes.choose(16, wanted="cockpit-plain") == "cockpit-plain"
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


@pytest.mark.parametrize("by_environment", [True, False])
async def test_the_plain_theme_has_no_colour_at_all(monkeypatch: pytest.MonkeyPatch, by_environment: bool) -> None:
    if by_environment:
        monkeypatch.setenv("NO_COLOR", "1")
    app = GridApp([Row("n1", "down", health=Health.CRITICAL), *node_rows(3)], theme="cockpit-plain")
    async with app.run_test(size=(60, 8), notifications=True) as pilot:
        app.notify("hello", severity="error")
        await pilot.press("j", "slash", "n")
        strips = app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        assert [s for s in styles if s.color is not None or s.bgcolor is not None] == []
        assert any(s.reverse for s in styles)
        assert any(s.bold for s in styles)


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
