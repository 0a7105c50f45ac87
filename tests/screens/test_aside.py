"""Stepping aside for another program, in a real terminal."""

from __future__ import annotations

import shlex
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


def start(tmux: Tmux, *argv: str) -> None:
    tmux.start(shlex.join([sys.executable, "-m", "tests.screens.aside", *argv]), (100, 24))
    tmux.wait(lambda text: "never left" in text)
    tmux.run("send-keys", "s")


def test_ctrl_c_ends_what_runs_aside_but_not_the_cockpit(tmux: Tmux) -> None:
    start(tmux, "sh", "-c", "trap 'echo caught; exit 7' INT; echo here; while :; do sleep 0.05; done")
    tmux.wait(lambda text: "\nhere" in text)
    # Longer than it takes a stopped writer's queue to fill: then the cockpit must still be alive.
    tmux.run("run-shell", "sleep 1.5")
    tmux.run("send-keys", "C-c")
    tmux.wait(lambda text: "back with 7, the count went on" in text)
    tmux.run("send-keys", "q")
    text = tmux.wait(lambda text: "ended 0" in text)
    assert "caught" in text  # the terminal is as it was, with what the program wrote


def test_the_words_of_an_ssh_that_failed_stay_until_enter(tmux: Tmux) -> None:
    start(tmux, "sh", "-c", "echo no route to host; exit 255")
    tmux.wait(lambda text: "no route to host" in text and "enter goes back" in text)
    tmux.run("send-keys", "x", "Enter")
    tmux.wait(lambda text: "back with 255" in text)


def test_a_program_that_is_not_there_is_said(tmux: Tmux) -> None:
    start(tmux, "/no/such\x1b[31m/ssh")
    tmux.wait(lambda text: "cannot be started: No such file" in text and "enter goes back" in text)
    tmux.run("send-keys", "Enter")
    tmux.wait(lambda text: "back with None" in text)
