"""Fixtures that the tests of actions share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.action_kit import Kit


@pytest.fixture
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is kept between runs lies in the test's own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """The cluster that stands still, with a runner."""
    return Kit(tmp_path)
