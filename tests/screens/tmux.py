"""A real terminal for tests: one tmux server of our own with one window."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

needs_tmux = [
    pytest.mark.tmux,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


class Tmux:
    """One tmux server of our own with one window."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")

    def run(self, *words: str) -> str:
        """One command of tmux, with what it prints."""
        env = {**os.environ, "TERM": "xterm-256color"}
        argv = ["tmux", "-S", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=20, check=False).stdout

    def start(self, command: str, size: tuple[int, int]) -> None:
        """Run a shell command in a window of that many columns and lines."""
        width, height = map(str, size)
        self.run(
            "new-session", "-d", "-x", width, "-y", height, f"TERM=tmux-256color {command}; echo ended $?; sleep 60"
        )

    def text(self, *, colours: bool = False) -> str:
        """What the window shows now."""
        return self.run("capture-pane", "-p", *(["-e"] if colours else []))

    def wait(self, true: Callable[[str], bool], timeout_s: float = 30.0) -> str:
        """Look until it is true of what the window shows; returns that."""
        until = time.monotonic() + timeout_s
        while not true(text := self.text()):
            assert time.monotonic() < until, text
            time.sleep(0.1)
        return text
