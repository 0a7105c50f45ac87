"""`printable`: nothing that moves a cursor, hides text or turns a line round gets through."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.text import printable


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("llama-70b", "llama-70b"),
        ("a\x1b]52;c;eA==\x07b", "a␛]52;c;eA==␇b"),
        ("a\nb\tc\rd", "a␊b␉c␍d"),
        ("x\x1fy\x1ez\x7f", "x␟y␞z␡"),
        ("\x9b31m", "�31m"),
        ("\u202egnp.exe", "·gnp.exe"),
        ("zero\u200bwidth", "zero·width"),
        ("汉字 🚀", "汉字 🚀"),
        (b"caf\xc3\xa9 \xff", "café �"),
        ("[/] [@click=app.quit]x", "[/] [@click=app.quit]x"),
    ],
)
def test_known_cases(raw: str | bytes, shown: str) -> None:
    assert printable(raw) == shown


@given(st.text(st.characters(), max_size=50) | st.binary(max_size=50))
def test_nothing_that_steers_a_terminal_is_left(raw: str | bytes) -> None:
    shown = printable(raw)
    assert printable(shown) == shown
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    shown.encode("utf-8")


def test_every_character_that_hides_or_steers_is_made_visible() -> None:
    steering = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert [f"U+{ord(c):04X}" for c in steering if c in printable(f"a{c}b")] == []
