"""What every test of the screens stands on."""

from __future__ import annotations

import pytest

from screens.chrome import ClockLine


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The header's clock shows after a second: on a slow machine it stood in some goldens and in others not."""
    monkeypatch.setattr(ClockLine, "tick", lambda self: None)
