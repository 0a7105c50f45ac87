"""The one place where text from outside becomes text that may be shown."""

from __future__ import annotations

import re

# Invisible or direction-changing characters: they hide text, reorder a line or break column widths. Every format
# character (category Cf) of Unicode 16 is among them; listed, since to ask for all of them takes 0.2 s.
_INVISIBLE = (
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e01ef\u00ad\u180b-\u180f\u034f\u115f\u1160\u3164\uffa0"
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
_UNSAFE = re.compile(f"[\x00-\x1f\x7f-\x9f{_INVISIBLE}\ud800-\udfff]")


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # ␛ for ESC, ␊ for newline, ...
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if code < 0xA0 or 0xD800 <= code < 0xE000 else "·"


def printable(raw: str | bytes) -> str:
    """Return `raw` as one line of harmless text: every control, bidi and zero-width character visible.

    Bytes are read as UTF-8, undecodable ones become U+FFFD. The result holds no ESC, no newline and
    nothing that moves the cursor; it is the same when passed through again.
    """
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_stand_in, text)


def printable_lines(text: str) -> str:
    """A text of several lines, each harmless."""
    return "\n".join(printable(line) for line in text.split("\n"))


def cut(text: str, most: int) -> str:
    """The text, or its first `most` characters and `…`: who names a job with a megabyte must not slow every screen."""
    return text if len(text) <= most else text[:most] + "…"
