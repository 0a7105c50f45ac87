"""`cockpit explain`, `diagnose` and `bundle`. Imports at the top stay few: every command line loads this."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cockpit.config import Config, ConfigError

if TYPE_CHECKING:
    from cockpit.diagnosis.log_cause import Explanation

OK, WRONG = 0, 1
_TELL_EVERY_S = 0.5

Common = Callable[[argparse.ArgumentParser], None]
Load = Callable[[argparse.Namespace], tuple[Config, str]]
Subparsers = Any  # argparse keeps the class of its subparsers to itself


def add_diagnose(commands: Subparsers, common: Common, load: Load) -> None:
    """Put the commands below `cockpit`."""
    text = "what a log tells: the first cause, what only follows from it, what to do next"
    explain = commands.add_parser("explain", help="what a log tells of trouble", description=f"Print {text}.")
    explain.add_argument("file", metavar="FILE", help="a log of any size, - for standard input")
    explain.add_argument("--json", action="store_true", help="one JSON object instead of text")
    common(explain)
    explain.set_defaults(run=_explain)


# -- explain


def _explain(arguments: argparse.Namespace) -> int:
    from cockpit.diagnosis.log_report import explanation_json, explanation_lines

    name = "standard input" if arguments.file == "-" else arguments.file
    explained = _explained(arguments.file)
    if arguments.json:
        json.dump(explanation_json(explained, name), sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        from cockpit.text import printable

        print("\n".join(explanation_lines(explained, printable(name))))
    return OK if explained.cause is None else WRONG


def _explained(name: str) -> Explanation:
    """The file read once, from its beginning; raises ConfigError when it cannot be read."""
    from cockpit.diagnosis.log_cause import explain
    from cockpit.formats.log_digest import digest_of

    try:
        if name == "-":
            return explain(digest_of(_with_progress(sys.stdin.buffer, None)))
        with _opened(name) as file:
            return explain(digest_of(_with_progress(file, os.fstat(file.fileno()).st_size)))
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror or error}") from error


def _opened(name: str) -> BinaryIO:
    mode = Path(name).stat().st_mode
    if stat.S_ISDIR(mode):
        raise ConfigError(f"{name}: is a directory; name a file in it")
    return Path(name).open("rb")


def _with_progress(file: BinaryIO, total: int | None) -> Iterator[bytes]:
    """The file's pieces; on a terminal a line tells how far it is."""
    from cockpit.formats.log_digest import chunks_of
    from cockpit.words import size

    told_at, done, shows = time.monotonic(), 0, sys.stderr.isatty()
    told = False
    for chunk in chunks_of(file):
        yield chunk
        done += len(chunk)
        if shows and time.monotonic() - told_at >= _TELL_EVERY_S:
            told_at, told = time.monotonic(), True
            print(f"\rreading, {size(done)}{f' of {size(total)}' if total else ''} … ", end="", file=sys.stderr)
    if told:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
