"""What every test of the screens stands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from screens.chrome import ClockLine
from screens.nccl_book import NcclBook


@pytest.fixture
def ticking_clock() -> None:
    """For a test of the header's clock itself."""


@pytest.fixture(autouse=True)
def _no_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The header's clock shows after a second: on a slow machine it stood in some goldens and in others not."""
    if "ticking_clock" in request.fixturenames:
        return
    monkeypatch.setattr(ClockLine, "tick", lambda self: None)


@pytest.fixture(autouse=True)
def _own_history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the NCCL tests of whoever runs it; they are read at once, not when a thread comes to it."""

    def at_once(book: NcclBook) -> None:
        book._read_at = book._steady()
        book._look()

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own-state"))
    monkeypatch.setattr(NcclBook, "read", at_once)
