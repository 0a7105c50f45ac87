"""Which theme and which signs to draw with, by config, command line, environment and terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.config import ANSI_THEME, AUTO_THEME, PLAIN_THEME, THEMES, ConfigError, theme_names
from themes.spec import find, remember


@dataclass(frozen=True, slots=True)
class Look:
    """How everything is drawn. `encoding` is the terminal's, for texts from outside that it cannot show."""

    theme: str = THEMES[0]
    ascii: bool = False
    encoding: str = "utf-8"


def choose(colours: int | None, *, no_color: bool = False, wanted: str | None = None) -> str:
    """Pick a theme's name: NO_COLOR needs the plain one, 16 colours the ANSI one; else the one wanted, else dark.

    `colours` is how many the terminal has, None when not known. A wanted theme that uses no more colours than
    there are is taken on a poor terminal too.
    """
    spec = find(wanted) if wanted else None
    if no_color:
        return spec.name if spec is not None and spec.colourless else PLAIN_THEME
    if colours is not None and colours < 256 and not (spec is not None and spec.ansi):
        return ANSI_THEME
    return spec.name if spec is not None else THEMES[0]


def choose_look(
    theme: str = AUTO_THEME,
    *,
    ascii: bool = False,  # noqa: A002 - the word of the config and of the option
    environ: Mapping[str, str] = os.environ,
    encoding: str | None = None,
) -> Look:
    """The look for this terminal; `theme` is `auto` or a name. Raises ConfigError for an unknown or a broken theme."""
    encoding = encoding or terminal_encoding()
    if theme != AUTO_THEME:
        load(theme, environ)
    wanted = None if theme == AUTO_THEME else theme
    name = choose(terminal_colours(), no_color="NO_COLOR" in environ, wanted=wanted)
    if not passes_unicode(environ):
        encoding = "ascii"
    return Look(name, ascii or not is_unicode(encoding), encoding)


def load(name: str, environ: Mapping[str, str] = os.environ) -> None:
    """Make a theme known by its name, reading the user's file if it is one of theirs; raises ConfigError."""
    from cockpit.config import themes_dir
    from themes.user import load_user_theme

    if name in THEMES:
        return
    known = theme_names(environ)
    if name not in known:
        raise ConfigError(f"no theme named {name!r}; known: {AUTO_THEME}, {', '.join(known)}")
    remember(load_user_theme(name, themes_dir(environ)))


def is_unicode(encoding: str) -> bool:
    """Whether every sign of ours can be sent in that encoding."""
    return "utf" in encoding.lower()


def passes_unicode(environ: Mapping[str, str]) -> bool:
    """False when a multiplexer between us and the terminal shows `_` or `?` for every sign that is not ASCII.

    They go by the locale they were started with, which over SSH often names no encoding. Python itself then takes
    UTF-8, and says so in LC_CTYPE, so that only tmux knows; GNU screen cannot be asked.
    """
    named = environ.get("LC_ALL") or environ.get("LC_CTYPE", "").replace("C.UTF-8", "") or environ.get("LANG", "")
    if "utf" in named.lower():
        return True
    return _tmux_passes_unicode() if environ.get("TMUX") else not environ.get("STY")


def _tmux_passes_unicode() -> bool:
    """What tmux tells of the terminal it is attached to; True when it does not tell."""
    import subprocess  # only here: most starts need none

    argv = ["tmux", "display-message", "-p", "#{client_utf8}"]
    try:
        told = subprocess.run(argv, capture_output=True, text=True, timeout=1, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return True
    return told.stdout.strip() != "0"


def terminal_encoding() -> str:
    """The encoding of the stream that Textual draws to."""
    return getattr(sys.__stderr__, "encoding", None) or "utf-8"


def terminal_colours() -> int | None:
    """How many colours the terminal has by its environment, None when that is not told."""
    from rich.console import Console

    system = Console(stderr=True).color_system
    return {"standard": 16, "256": 256, "truecolor": 2**24}.get(system or "")
