"""Themes that users write: a file that names another theme as its base and other colours for some tokens.

A mistake is one line with file, line and token (ConfigError).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cockpit.config import THEMES, themes_dir
from cockpit.config_file import Place, Reader, one_of, read_block, scalar, section
from themes.spec import ThemeSpec, built_in

if TYPE_CHECKING:
    import yaml

ATTRIBUTES = ("bold", "underline", "reverse", "italic", "dim")
ANSI_NAMES = tuple(
    f"{bright}{name}"
    for bright in ("", "bright_")
    for name in ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
)
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_COLOUR_WORDS = "a colour is #rrggbb, a number of the 256-colour palette from 16 on, or an ANSI name such as bright_red"


def load_user_theme(name: str, folder: Path | None = None) -> ThemeSpec:
    """Read `NAME.yaml` from the user's themes; raises ConfigError, also when it is not there."""
    path = (folder or themes_dir()) / f"{name}.yaml"
    values = read_block(path, _READERS)
    base = built_in(values.get("base", THEMES[0]))
    colours = {**base.colours, **values.get("colours", {})}
    return replace(base, name=name, colours=colours, tokens=_over(base.tokens, values.get("tokens", {})))


def _over(base: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The base's tokens with the user's over them; the twin for the cursor line goes with the one it was made for."""
    kept = {token: style for token, style in base.items() if token.partition("@")[0] not in own}
    return {**{token: base[token] for token in own if token in base}, **kept, **own}


def _style(place: Place, node: yaml.Node) -> str:
    """A style in Rich's spelling, such as `bold #ff0000`, from words, of which one may be a palette number."""
    words, parts = scalar(place, node).split(), []
    for word in words:
        colour = None if word in (*ATTRIBUTES, "on", "default") else _colour_of(word)
        if colour is None and word not in (*ATTRIBUTES, "on", "default"):
            raise place.error(node, f"{word!r} is no colour and none of {', '.join(ATTRIBUTES)}; {_COLOUR_WORDS}")
        parts.append(colour or word)
    _check(place, node, parts)
    return " ".join(parts)


def _cursor(place: Place, node: yaml.Node) -> str:
    """A style of the cursor line: it needs a background, or an attribute that shows without one."""
    style = _style(place, node)
    if "on" not in style.split() and not {"reverse", "underline"} & set(style.split()):
        raise place.error(node, f"must be seen: `on COLOUR`, `reverse` or `underline`, not {style!r}")
    return style


def _check(place: Place, node: yaml.Node, parts: list[str]) -> None:
    from rich.errors import StyleSyntaxError
    from rich.style import Style

    try:
        Style.parse(" ".join(parts))
    except StyleSyntaxError as error:
        raise place.error(node, f"is no style: {error}") from None


def _colour(place: Place, node: yaml.Node) -> str:
    word = scalar(place, node)
    colour = _colour_of(word)
    if colour is None or not colour.startswith("#"):
        raise place.error(node, f"must be #rrggbb or a number of the 256-colour palette from 16 on, not {word!r}")
    return colour


def _colour_of(word: str) -> str | None:
    """The colour in Rich's spelling; None when the word is none."""
    if _HEX.fullmatch(word):
        return word.lower()
    if word in ANSI_NAMES:
        return word
    if word.isascii() and word.isdigit() and len(word) <= 3 and 16 <= int(word) <= 255:
        from rich.color import Color

        return Color.from_ansi(int(word)).get_truecolor().hex
    return None


def _tokens(place: Place, node: yaml.Node) -> dict[str, str]:
    from themes import CURSOR_TOKENS, TOKENS

    readers: dict[str, Reader] = {token: _cursor if token in CURSOR_TOKENS else _style for token in TOKENS}
    readers |= {f"{token}@cursor": _style for token in TOKENS if token not in CURSOR_TOKENS}
    values: dict[str, str] = section(readers)(place, node)
    return values


def _colours(place: Place, node: yaml.Node) -> dict[str, str]:
    read: Callable[[Place, Any], dict[str, str]] = section(dict.fromkeys(built_in(THEMES[0]).colours, _colour))
    return read(place, node)


_READERS: dict[str, Reader] = {"base": one_of(*THEMES), "colours": _colours, "tokens": _tokens}
