"""The last steps before a line goes to the terminal: signs into ASCII, no colours, exact colours of the palette.

They work on everything that is drawn, frames and toasts of Textual's included, so no screen has to ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ReturnType
from textual.color import Color as CssColour
from textual.driver import Driver
from textual.filter import LineFilter

from screens.on_terminal import drawn_on_terminal
from themes import Look, spec_of, theme
from themes.ascii_text import ascii_text


class AsciiSigns(LineFilter):
    """Our own signs in ASCII; what comes from outside stays where the terminal can show it."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    def apply(self, segments: list[Segment], background: CssColour) -> list[Segment]:
        return [Segment(ascii_text(text, self._encoding), style, control) for text, style, control in segments]


class NoColours(LineFilter):
    """Not one colour, also not the terminal's default one by name."""

    def apply(self, segments: list[Segment], background: CssColour) -> list[Segment]:
        return [Segment(text, style and style.without_color, control) for text, style, control in segments]


class ExactPalette(LineFilter):
    """For 256 colours: an entry of the palette is sent as that entry. Rich takes another grey for half of the greys."""

    def apply(self, segments: list[Segment], background: CssColour) -> list[Segment]:
        return [Segment(text, style and _exact(style), control) for text, style, control in segments]


@lru_cache(2048)
def _exact(style: Style) -> Style:
    entries = _palette()
    color, bgcolor = (
        entries.get(colour.triplet, colour) if colour is not None and colour.triplet is not None else colour
        for colour in (style.color, style.bgcolor)
    )
    return style + Style(color=color, bgcolor=bgcolor)


@cache
def _palette() -> Mapping[object, Color]:
    """The entries of the 256-colour palette by their colour; not the first 16, which each terminal has its own of."""
    entries = [Color.from_ansi(number) for number in range(16, 256)]
    return {entry.get_truecolor(): entry for entry in reversed(entries)}


class LookApp(App[ReturnType]):
    """An app that draws everything as its Look says."""

    def __init__(self, look: Look | None = None) -> None:
        self.look = look or Look()
        super().__init__(ansi_color=spec_of(self.look.theme).ansi)
        self.ascii_only = self.look.ascii
        self._ascii, self._colourless, self._exact = AsciiSigns(self.look.encoding), NoColours(), ExactPalette()
        self.use_theme(self.look.theme)

    def get_driver_class(self) -> type[Driver]:
        """Also with `2>file` the screen goes to the terminal."""
        return drawn_on_terminal(super().get_driver_class())

    def use_theme(self, name: str) -> None:
        """Draw in a theme that is known (ours, or read by `themes.look.load`) from now on."""
        self.register_theme(theme(name))
        self.ansi_color = spec_of(name).ansi
        self.theme = name

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's own, then the last steps."""
        steps: list[LineFilter] = [*super().get_line_filters()]
        if self.ascii_only:
            steps.append(self._ascii)
        if spec_of(self.theme).colourless:
            steps.append(self._colourless)
        elif self.console.color_system == "256":
            steps.append(self._exact)
        return steps
