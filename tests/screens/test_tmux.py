"""The demo in a real terminal: tmux, 256 colours, 80x24, through the command line as a newcomer types it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.screens.tmux import Tmux, needs_tmux

pytestmark = needs_tmux


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    server = Tmux(tmp_path)
    yield server
    server.run("kill-server")


def test_the_demo_at_80x24_in_256_colours(tmux: Tmux) -> None:
    tmux.start(f"{sys.executable} -m cockpit demo", (80, 24))
    text = tmux.wait(lambda text: "gpu-st-p5-8" in text and "● queue" in text)
    lines = text.rstrip("\n").split("\n")
    assert len(lines) == 24
    assert lines[0].startswith(" demo ")
    assert lines[2].startswith("─ problems")
    assert re.search("✖ gpu-st-p5-8 +down", lines[4])  # the worst trouble is the first thing under the header
    assert "q quit" in lines[-1]
    coloured = tmux.text(colours=True)
    assert "\x1b[38;5;202m" in coloured  # critical, an exact entry of the 256-colour palette
    assert "\x1b[38;2;" not in coloured
    tmux.run("send-keys", "4")
    tmux.wait(lambda text: "llama3" in text and "running" in text)
    tmux.run("send-keys", "/")
    tmux.run("send-keys", "-l", "user:maria")
    tmux.run("send-keys", "Enter")
    tmux.wait(lambda text: "maria" in text and "kenji" not in text)
    tmux.run("send-keys", "Escape")
    tmux.wait(lambda text: "kenji" in text)
    tmux.run("send-keys", "q")
    tmux.wait(lambda text: "ended 0" in text)


def test_the_theme_and_the_signs_that_are_asked_for(tmux: Tmux) -> None:
    tmux.start(f"{sys.executable} -m cockpit --theme cockpit-contrast demo --ascii", (80, 24))
    text = tmux.wait(lambda text: "gpu-st-p5-8" in text and "* queue" in text)
    assert text.isascii() or "训练" in text  # only a job's own name
    assert re.search("x gpu-st-p5-8 +down", text)
    assert "\x1b[38;5;209m" in tmux.text(colours=True)


def test_no_color_in_the_whole_cockpit(tmux: Tmux) -> None:
    tmux.start(f"env NO_COLOR=1 {sys.executable} -m cockpit demo", (80, 24))
    tmux.wait(lambda text: "gpu-st-p5-8" in text and "● queue" in text)
    assert not re.findall(r"\x1b\[[0-9;]*\b(?:[349][0-79]|10[0-7]|38|48)\b[0-9;]*m", tmux.text(colours=True))


def test_the_screen_goes_to_the_terminal_also_when_errors_go_to_a_file(tmux: Tmux, tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    tmux.start(f"{sys.executable} -m cockpit demo 2>{errors}", (80, 24))
    tmux.wait(lambda text: "gpu-st-p5-8" in text and "● queue" in text)
    tmux.run("send-keys", "q")
    tmux.wait(lambda text: "ended 0" in text)
    assert "\x1b" not in errors.read_text()


def test_signs_are_ascii_where_tmux_was_attached_without_a_locale(tmux: Tmux, tmp_path: Path) -> None:
    inner = f"env -u LC_ALL -u LC_CTYPE -u LANG -u TMUX tmux -S {tmp_path / 'inner'} -f /dev/null"
    tmux.start(f"{inner} new-session '{sys.executable} -m cockpit demo'", (80, 24))
    try:
        tmux.wait(lambda text: " x gpu-st-p5-8" in text and "* queue" in text)
    finally:
        tmux.run("send-keys", "q")
        subprocess.run([*inner.split(), "kill-server"], check=False, timeout=20)


def test_an_unknown_theme_is_told_before_anything_is_drawn(tmux: Tmux) -> None:
    tmux.start(f"{sys.executable} -m cockpit demo --theme nonsense", (80, 24))
    text = tmux.wait(lambda text: "ended 2" in text)
    assert "no theme named 'nonsense'; known: auto, cockpit-dark" in text
