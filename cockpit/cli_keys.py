"""`cockpit keys`: every key with its id, as the config has changed them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from cockpit.config import config_path


def add(commands: Any, common: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command to the command line."""
    keys = commands.add_parser("keys", help="every key and its id", description="Print every key and its id.")
    common(keys)
    keys.add_argument("--markdown", action="store_true", help="as docs/KEYS.md")
    keys.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the key table with the config's changes; a machine without a config has the keys as they come."""
    from cockpit.config_file import load_config
    from screens.key_sheet import markdown, sheet
    from screens.keymap import DEFAULT, read_keymap

    path = arguments.config or config_path()
    without_file = arguments.config is None and not path.exists()
    keymap = DEFAULT if without_file else read_keymap(load_config(path).keys)
    print(markdown(keymap) if arguments.markdown else "\n".join(sheet(keymap)), end="" if arguments.markdown else "\n")
    return 0
