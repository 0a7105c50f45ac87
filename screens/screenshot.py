"""The screen as it is now, as SVG and as plain text, with account ids and public addresses hidden on request."""

from __future__ import annotations

import io
import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.segment import Segment, Segments
from textual.app import App

HIDDEN = "x"
_ACCOUNT = re.compile(r"(?<![0-9])[0-9]{12}(?![0-9])")
# Also as AWS writes it into names: ec2-54-12-3-4.compute-1.amazonaws.com.
_FOUR = r"(?:[0-9]{1,3}%s){3}[0-9]{1,3}(?![0-9])"
_ADDRESS = re.compile(rf"(?<![0-9]){_FOUR % '[.]'}|(?<=ec2-){_FOUR % '-'}")


@dataclass(frozen=True, slots=True)
class Picture:
    """Both forms of a screen, and how many numbers were hidden in it."""

    svg: str
    text: str
    redacted: int = 0


def take(app: App[Any], *, redact: bool = False) -> Picture:
    """Everything that is on the screen, dialogs and toasts too. Call it on the UI thread."""
    width, height = app.size
    lines = _lines(app)
    redacted = 0
    if redact:
        hidden = [redacted_line(line) for line in lines]
        lines, redacted = [line for line, _ in hidden], sum(count for _, count in hidden)
    console = Console(
        file=io.StringIO(), record=True, width=width, height=height, force_terminal=True, color_system="truecolor",
        legacy_windows=False, safe_box=False,
    )  # fmt: skip
    flat = [segment for line in lines for segment in (*line, Segment.line())]
    console.print(Segments(flat[:-1]), end="", soft_wrap=True)
    text = "\n".join(line.rstrip() for line in console.export_text(clear=False, styles=False).split("\n"))
    return Picture(console.export_svg(title=app.title), text.rstrip("\n") + "\n", redacted)


def _lines(app: App[Any]) -> list[list[Segment]]:
    """Only here private attributes of Textual are touched: what App.export_screenshot renders, line by line."""
    width, height = app.size
    render = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, legacy_windows=False)
    segments = Segment.filter_control(console.render(render or "", console.options))
    return [list(line) for line in Segment.split_lines(segments)][:height]


def redacted_line(line: Sequence[Segment]) -> tuple[list[Segment], int]:
    """The same line, as wide as before, with digits hidden, and how many numbers that were.

    The whole line is looked at: a number may be drawn in several pieces.
    """
    text = "".join(segment.text for segment in line)
    spans = list(_secrets(text))
    if not spans:
        return list(line), 0
    chars = list(text)
    for start, end in spans:
        chars[start:end] = [HIDDEN if char.isdigit() else char for char in chars[start:end]]
    pieces, at = [], 0
    for segment in line:
        size = len(segment.text)
        pieces.append(Segment("".join(chars[at : at + size]), segment.style))
        at += size
    return pieces, len(spans)


def _secrets(text: str) -> Iterator[tuple[int, int]]:
    for match in _ACCOUNT.finditer(text):
        yield match.span()
    for match in _ADDRESS.finditer(text):
        if _is_public(match[0].replace("-", ".")):
            yield match.span()


def _is_public(address: str) -> bool:
    try:
        return ipaddress.IPv4Address(address).is_global
    except ValueError:  # a version, or 300.1.1.1
        return False
