"""Colours by meaning: tokens read from YAML, once per theme. Importing this loads neither Textual nor YAML.

Normal is uncoloured; only what deviates has a colour, and each of the five states also has a sign and a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cockpit.models import Health
from themes.glyphs import ASCII, UNICODE, WORDS, Signs, signs

if TYPE_CHECKING:
    from rich.style import Style
    from textual.app import App
    from textual.theme import Theme

__all__ = [
    "ASCII",
    "DEFAULT",
    "GROUP_TOKENS",
    "RAMP_TOKENS",
    "STATE_TOKENS",
    "STYLESHEET",
    "THEMES",
    "TOKENS",
    "UNICODE",
    "WORDS",
    "Signs",
    "choose",
    "signs",
    "theme",
    "token_styles",
    "variable",
]

FOLDER = Path(__file__).parent
STYLESHEET = FOLDER / "cockpit.tcss"
THEMES = ("cockpit-dark", "cockpit-light", "cockpit-ansi")
DEFAULT = THEMES[0]
ANSI = THEMES[2]

# A heatmap's steps from least to most, and the colours of jobs, which start again after the last.
RAMP_TOKENS = tuple(f"ramp-{step}" for step in range(1, 9))
GROUP_TOKENS = tuple(f"group-{number}" for number in range(1, 7))

# What every theme file has to define, no more and no less.
TOKENS = (
    *("ok", "warning", "critical", "drained", "unknown"),
    *("text", "dim", "bright", "accent", "header", "rule", "mark", "stale", "production", "armed"),
    *("cursor", "cursor-blurred", "cursor-cell"),
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


def choose(colours: int | None, *, no_color: bool = False, wanted: str | None = None) -> str:
    """Pick a theme's name: 16 colours or NO_COLOR need the ANSI one; else the one wanted, else the dark one.

    `colours` is how many the terminal has, None when not known.
    """
    if no_color or (colours is not None and colours < 256):
        return ANSI
    return wanted if wanted in THEMES else DEFAULT


def theme(name: str = DEFAULT) -> Theme:
    """Build the Textual theme of that name; its variables hold the colour of every token."""
    from textual.theme import Theme

    spec, styles = _spec(name), token_styles(name)
    variables = {str(key): str(value) for key, value in spec.get("variables", {}).items()}
    variables |= {variable(token): _css_colour(token, styles[token]) for token in TOKENS}
    return Theme(name=name, dark=spec["dark"], ansi=spec["ansi"], variables=variables, **spec["colours"])


def token_styles(source: str | App[Any]) -> Mapping[str, Style]:
    """Rich styles by token, for code that draws segments. `source` is a theme's name or the running app.

    Besides TOKENS there is `""`, the normal style, and for a token that would be hard to read on the cursor
    line a twin named `TOKEN@cursor`. An app with a theme that is not ours gets the dark one's.
    """
    name = source if isinstance(source, str) else source.theme
    return _styles(name if name in THEMES else DEFAULT)


@cache
def _styles(name: str) -> Mapping[str, Style]:
    from rich.style import Style

    tokens: dict[str, str] = _spec(name)["tokens"]
    plain_names = {token.partition("@")[0] for token in tokens}
    if plain_names != set(TOKENS):
        raise ValueError(f"theme {name}: tokens {sorted(plain_names ^ set(TOKENS))} missing or unknown")
    return MappingProxyType({"": Style(), **{token: Style.parse(text) for token, text in tokens.items()}})


@cache
def _spec(name: str) -> dict[str, Any]:
    import yaml

    text = (FOLDER / f"{name.removeprefix('cockpit-')}.yaml").read_text(encoding="utf-8")
    spec: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    return spec


def _css_colour(token: str, style: Style) -> str:
    """A Rich colour in CSS's spelling: hex stays, the 16 ANSI names get Textual's prefix."""
    colour = style.bgcolor if token.startswith("cursor") else style.color
    if colour is None or colour.is_default:
        return "ansi_default"
    return colour.name if colour.name.startswith("#") else f"ansi_{colour.name}"
