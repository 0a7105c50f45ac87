"""Reading an exec request: which simulated program it calls, behind which wrappers, with what environment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.demo.programs.registry import is_simulated

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_SHELL_ONLY = re.compile(r"[;|&<>\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """A command line that is nothing but one call of a simulated program."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    sudo: bool = False


def interpret(line: str, environ: Mapping[str, str]) -> SimulatedCall | None:
    """The simulated call that a command line makes, or None when a shell has to run it.

    `timeout`, `env`, `sudo -n` and leading assignments are understood. Nothing in the arguments is
    evaluated. A line with a pipe, a list or a redirection goes to the shell, which finds the programs too.
    """
    if _SHELL_ONLY.search(_QUOTED.sub("", line)):
        return None
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    env, sudo = dict(environ), False
    while words:
        name = words[0].rsplit("/", 1)[-1]
        if _ASSIGNMENT.match(words[0]):
            _assign(env, words.pop(0))
        elif name == "timeout":
            words = _after_timeout(words[1:])
        elif name == "env":
            words = _after_env(words[1:], env)
        elif name == "sudo":
            if "-l" in words[1:3]:
                return None  # it asks what may be run, and runs nothing
            words, sudo = _after_sudo(words[1:]), True
        else:
            break
    if not words or not is_simulated(words[0]):
        return None
    return SimulatedCall(tuple(words), env, sudo)


def _assign(env: dict[str, str], word: str) -> None:
    name, _, value = word.partition("=")
    env[name] = value


def _after_timeout(words: list[str]) -> list[str]:
    """What follows `timeout [-k N] [-s SIG] [--...] DURATION`; simulated programs answer at once."""
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in ("-k", "-s", "--kill-after", "--signal") else words[1:]
    return words[1:]


def _after_env(words: list[str], env: dict[str, str]) -> list[str]:
    """What follows `env [-i] [-u X]... [K=V]...`; `env` itself is changed."""
    while words:
        word = words[0]
        if word in ("-u", "--unset"):
            env.pop("".join(words[1:2]), None)
            words = words[2:]
        elif word.startswith(("-u", "--unset=")):
            env.pop(word.removeprefix("--unset=").removeprefix("-u"), None)
            words = words[1:]
        elif word in ("-i", "-", "--ignore-environment"):
            env.clear()
            words = words[1:]
        elif "=" in word and not word.startswith("-"):
            _assign(env, word)
            words = words[1:]
        else:
            break
    return words[1:] if words[:1] == ["--"] else words


def _after_sudo(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in ("-u", "-g") else words[1:]
    return words
