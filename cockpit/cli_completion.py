"""Completion in the shell, by argcomplete: `cockpit completion bash|zsh|fish` prints what the shell has to read."""

from __future__ import annotations

import argparse
import os
from typing import Any

from cockpit.config import ConfigError, config_path

SHELLS = ("bash", "zsh", "fish")
_HOW = """\
bash: echo 'eval "$(cockpit completion bash)"' >> ~/.bashrc
zsh:  echo 'eval "$(cockpit completion zsh)"' >> ~/.zshrc   (after compinit)
fish: cockpit completion fish > ~/.config/fish/completions/cockpit.fish
"""


def add(commands: Any) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "completion",
        help="completion for your shell",
        description="Print what a shell needs to complete commands, options, clusters and scenarios.",
        epilog=_HOW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("shell", choices=SHELLS, help="for which shell")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["cockpit"], shell=arguments.shell).strip())
    return 0


def is_asked() -> bool:
    """Whether it is a shell that asks what could be typed next."""
    return "_ARGCOMPLETE" in os.environ


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell that asks, and end; does nothing when none asks."""
    if not is_asked():
        return
    import argcomplete

    argcomplete.autocomplete(parser)


def complete_with(action: argparse.Action, completer: Any) -> None:
    """Let `completer` give the values of an option."""
    action.completer = completer  # type: ignore[attr-defined]


def cluster_names(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The clusters of the config that the line names so far; none while it cannot be read."""
    from cockpit.config_file import load_config

    try:
        return list(load_config(getattr(parsed_args, "config", None) or config_path()).clusters)
    except ConfigError:
        return []


def scenario_names(**_: object) -> list[str]:
    """The demo's starting conditions."""
    from cockpit.demo.scenarios import SCENARIOS

    return list(SCENARIOS)
