"""Colours by meaning: tokens read from YAML, once per theme. Importing this loads neither Textual nor YAML.

Normal is uncoloured; only what deviates has a colour, and each of the five states also has a sign and a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cockpit.config import ANSI_THEME, PLAIN_THEME, THEMES
from cockpit.models import Health
from themes.glyphs import ASCII, UNICODE, WORDS, Signs, signs
from themes.look import Look, choose, choose_look
from themes.spec import FOLDER, ThemeSpec, find

if TYPE_CHECKING:
    from rich.style import Style
    from textual.app import App
    from textual.theme import Theme

__all__ = [
    "ANSI",
    "ASCII",
    "CURSOR_TOKENS",
    "DEFAULT",
    "FOLDER",
    "GROUP_TOKENS",
    "PLAIN",
    "RAMP_TOKENS",
    "STATE_TOKENS",
    "STYLESHEET",
    "THEMES",
    "TOKENS",
    "UNICODE",
    "WORDS",
    "Look",
    "Signs",
    "choose",
    "choose_look",
    "signs",
    "spec_of",
    "theme",
    "token_styles",
    "variable",
]

STYLESHEET = FOLDER / "cockpit.tcss"
DEFAULT = THEMES[0]
ANSI, PLAIN = ANSI_THEME, PLAIN_THEME

# A heatmap's steps from least to most, and the colours of jobs, which start again after the last.
RAMP_TOKENS = tuple(f"ramp-{step}" for step in range(1, 9))
GROUP_TOKENS = tuple(f"group-{number}" for number in range(1, 7))

# What is laid over a whole line or cell.
CURSOR_TOKENS = ("cursor", "cursor-blurred", "cursor-cell")

# What every theme file has to define, no more and no less.
TOKENS = (
    *("ok", "warning", "critical", "drained", "unknown"),
    *("text", "dim", "bright", "accent", "header", "rule", "mark", "stale", "production", "armed"),
    *CURSOR_TOKENS,
    *RAMP_TOKENS,
    *GROUP_TOKENS,
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


def state_token(health: Health) -> str:
    """The style of something in that state: "" for OK, since what is normal has no colour."""
    return "" if health is Health.OK else STATE_TOKENS[health]


def variable(token: str) -> str:
    """The name, without `$`, of a token's colour in CSS and Content styles; KeyError for an unknown one."""
    if token not in TOKENS:
        raise KeyError(token)
    return f"cockpit-{token}"


def spec_of(name: str) -> ThemeSpec:
    """The theme of that name; the default one for a name that is none of ours, such as one of Textual's own."""
    found = find(name) or find(DEFAULT)
    assert found is not None
    return found


def theme(name: str = DEFAULT) -> Theme:
    """Build the Textual theme of that name; its variables hold the colour of every token."""
    from textual.theme import Theme

    found, styles = spec_of(name), token_styles(name)
    variables = {**found.variables, **{variable(token): _css_colour(token, styles[token]) for token in TOKENS}}
    colours: dict[str, Any] = dict(found.colours)
    return Theme(name=found.name, dark=found.dark, ansi=found.ansi, variables=variables, **colours)


def token_styles(source: str | App[Any]) -> Mapping[str, Style]:
    """Rich styles by token, for code that draws segments. `source` is a theme's name or the running app.

    Besides TOKENS there is `""`, the normal style, and for a token that would be hard to read on the cursor
    line a twin named `TOKEN@cursor`. An app with a theme that is not ours gets the dark one's.
    """
    return _styles(spec_of(source if isinstance(source, str) else source.theme))


@cache
def _styles(found: ThemeSpec) -> Mapping[str, Style]:
    from rich.style import Style

    plain_names = {token.partition("@")[0] for token in found.tokens}
    if plain_names != set(TOKENS):
        raise ValueError(f"theme {found.name}: tokens {sorted(plain_names ^ set(TOKENS))} missing or unknown")
    return MappingProxyType({"": Style(), **{token: Style.parse(text) for token, text in found.tokens.items()}})


def _css_colour(token: str, style: Style) -> str:
    """A Rich colour in CSS's spelling: hex stays, the 16 ANSI names get Textual's prefix."""
    colour = style.bgcolor if token.startswith("cursor") else style.color
    if colour is None or colour.is_default:
        return "ansi_default"
    return colour.name if colour.name.startswith("#") else f"ansi_{colour.name}"
