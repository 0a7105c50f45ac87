"""Sizes as a tired person reads them: the unit changes before a number reads 1024, and 10 has no decimal."""

from __future__ import annotations

import pytest

from cockpit.words import mib, size


@pytest.mark.parametrize(
    ("size_mib", "words"),
    [(512, "512M"), (1023.4, "1023M"), (1023.7, "1.0G"), (9.94 * 1024, "9.9G"), (9.97 * 1024, "10G"),
     (1023.8 * 1024, "1.0T"), (2 * 1024**2, "2.0T"), (None, "–")],
)  # fmt: skip
def test_memory(size_mib: float | None, words: str) -> None:
    assert mib(size_mib) == words


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [(812, "812B"), (12 * 1024, "12K"), (1023.9 * 1024, "1.0M"), (3.1 * 1024**2, "3.1M"), (9.99 * 1024**2, "10M"),
     (5 * 1024**3, "5.0G"), (None, "–")],
)  # fmt: skip
def test_data(size_bytes: float | None, words: str) -> None:
    assert size(size_bytes) == words
