"""What one theme is: its colours and the styles of its tokens, from our own files or made from a user's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from cockpit.config import THEMES

FOLDER = Path(__file__).parent
PREFIX = "cockpit-"


@dataclass(frozen=True, eq=False)
class ThemeSpec:
    """`ansi`: it uses the terminal's own 16 colours; `colourless`: it uses none at all.

    `colours` and `variables` are what Textual's Theme takes; `tokens` are Rich style definitions by token.
    """

    name: str
    dark: bool
    ansi: bool
    colours: Mapping[str, str]
    tokens: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    colourless: bool = False


@cache
def built_in(name: str) -> ThemeSpec:
    """One of our own themes."""
    import yaml

    text = (FOLDER / f"{name.removeprefix(PREFIX)}.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    return ThemeSpec(name, **values)


# Themes of the user's that were read, by name: styles are asked for by the name that the app's theme has.
_users: dict[str, ThemeSpec] = {}


def remember(spec: ThemeSpec) -> None:
    """Make a theme of the user's known under its name."""
    _users[spec.name] = spec


def find(name: str) -> ThemeSpec | None:
    """The theme of that name: one of ours, or one of the user's that was read before."""
    return built_in(name) if name in THEMES else _users.get(name)
