"""Plain-text goldens: the screen as it should look, beside the tests; written anew by `make goldens`."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "goldens"


def assert_golden(name: str, text: str) -> None:
    """Compare with goldens/NAME.txt, or write it when COCKPIT_WRITE_GOLDENS is set."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("COCKPIT_WRITE_GOLDENS"):
        path.write_text(text + "\n", encoding="utf-8")
    assert path.exists(), f"{path} is missing; `make goldens` writes it"
    assert text + "\n" == path.read_text(encoding="utf-8")
