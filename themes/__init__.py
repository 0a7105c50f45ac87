"""Colours and signs by meaning: tokens read from YAML, once per theme. Importing this costs nothing.

Normal is uncoloured; only what deviates has a colour, and each of the five states also has a sign and a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cockpit.models import Health

if TYPE_CHECKING:
    from rich.style import Style
    from textual.app import App
    from textual.theme import Theme

FOLDER = Path(__file__).parent
THEMES = ("cockpit-dark", "cockpit-light", "cockpit-ansi")
DEFAULT = THEMES[0]
STYLESHEET = FOLDER / "cockpit.tcss"

# What a theme file has to say; every one of them is checked when the file is read.
TOKENS = (
    *("ok", "warning", "critical", "drained", "unknown"),
    *("text", "dim", "bright", "accent", "header", "rule", "mark", "stale", "production", "armed"),
    *("cursor", "cursor-blurred"),
)

STATE_TOKENS: Mapping[Health, str] = MappingProxyType(
    {
        Health.OK: "ok",
        Health.WARN: "warning",
        Health.CRITICAL: "critical",
        Health.DRAINED: "drained",
        Health.UNKNOWN: "unknown",
    }
)
WORDS: Mapping[Health, str] = MappingProxyType(
    {
        Health.OK: "ok",
        Health.WARN: "warn",
        Health.CRITICAL: "crit",
        Health.DRAINED: "drain",
        Health.UNKNOWN: "?",
    }
)


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters that carry meaning or draw lines; each is one cell wide."""

    states: Mapping[Health, str]
    up: str
    down: str
    left: str
    right: str
    rule: str
    mark: str
    thumb: str
    cut: str
    dot: str


UNICODE = Signs(
    MappingProxyType(dict(zip((*Health,), "●○◆▲✖", strict=True))), "▲", "▼", "‹", "›", "─", "▌", "┃", "…", "·"
)
ASCII = Signs(
    MappingProxyType(dict(zip((*Health,), "*?#^x", strict=True))), "^", "v", "<", ">", "-", "+", "|", "~", "-"
)


def signs(app: object) -> Signs:
    """The signs to draw with: ASCII where the app was told so (`app.ascii_only`)."""
    return ASCII if getattr(app, "ascii_only", False) else UNICODE


def variable(token: str) -> str:
    """The name, without `$`, under which a token's colour stands in CSS and in Content styles."""
    if token not in TOKENS:
        raise KeyError(token)
    return f"cockpit-{token}"


def choose(colours: int | None, *, no_color: bool = False, wanted: str | None = None) -> str:
    """Pick the theme: 16 colours or NO_COLOR need the ANSI one; else the one wanted, else the dark one.

    `colours` is how many the terminal has, None when not known.
    """
    if no_color or (colours is not None and colours < 256):
        return "cockpit-ansi"
    return wanted if wanted in THEMES else DEFAULT


def theme(name: str = DEFAULT) -> Theme:
    """Build the Textual theme of that name; its variables hold the colour of every token."""
    from textual.theme import Theme

    spec = _spec(name)
    variables = {key: str(value) for key, value in spec.get("variables", {}).items()}
    for token in TOKENS:
        style = token_styles(name)[token]
        colour = style.bgcolor if token.startswith("cursor") else style.color
        variables[variable(token)] = _css_colour(None if colour is None else colour.name)
    return Theme(
        name=name, dark=spec["dark"], ansi=spec.get("ansi", False), variables=variables, **spec["colours"]
    )


@lru_cache(maxsize=None)
def token_styles(name: str | App[Any]) -> Mapping[str, Style]:
    """Rich styles by token, for code that draws segments. `name` is a theme's name or the running app.

    `""` is the normal style. `cursor` and `cursor-blurred` lie over the others; a token that would be hard to
    read under the cursor has a twin named `token@cursor`.
    """
    raise NotImplementedError
