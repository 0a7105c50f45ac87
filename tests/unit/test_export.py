"""Files and directories that only their owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.config import state_dir
from cockpit.export import export_table, private_dir


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    before = os.umask(0o022)
    yield state_dir()
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_every_level_that_is_made_is_private(state: Path, tmp_path: Path) -> None:
    private_dir(state / "a" / "exports")
    levels = [state / "a" / "exports", state / "a", state, state.parent, tmp_path / "home"]
    assert [mode(level) for level in levels] == [0o700] * 5


def test_our_levels_are_closed_and_those_above_are_left_alone(state: Path) -> None:
    (state / "exports").mkdir(parents=True)
    assert mode(state) == 0o755
    private_dir(state / "exports")
    assert (mode(state), mode(state / "exports")) == (0o700, 0o700)
    assert mode(state.parent) == 0o755


def test_a_directory_elsewhere_keeps_its_mode(state: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "cockpit"
    elsewhere.mkdir()
    private_dir(elsewhere / "new")
    assert (mode(elsewhere), mode(elsewhere / "new")) == (0o755, 0o700)


def test_exports_are_private(state: Path) -> None:
    paths = export_table(state / "exports", "queue", ["job"], [["=1+1"]], [{"job": 1}])
    assert [mode(path) for path in paths] == [0o600, 0o600]
    assert paths[0].read_text() == "job\n'=1+1\n"
