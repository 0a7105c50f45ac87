"""Writing what a table shows to files that only the user can read."""

from __future__ import annotations

import csv
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from cockpit.config import state_dir

_MARKUP = re.compile(r"([\\`*_\[\]<>|~#])")
_ESCAPED = r"\\\1"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def private_dir(path: Path) -> Path:
    """Create the directory, with every level that is missing, readable by its owner alone.

    The cockpit's own levels, from the state directory down, are made so when they are too open. Raises OSError,
    also when such a level belongs to somebody else.
    """
    ours = state_dir()
    for level in (*reversed(path.parents), path):
        if not level.exists():
            level.mkdir(mode=0o700, exist_ok=True)
        if level.is_relative_to(ours) and level.stat().st_mode & 0o077:
            level.chmod(0o700)
    return path


def open_private(path: Path) -> TextIO:
    """A new file with mode 0600; raises FileExistsError rather than following what lies there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="")


def open_private_binary(path: Path) -> BinaryIO:
    """The same for bytes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    return os.fdopen(descriptor, "wb")


def write_private(path: Path, text: str) -> None:
    """Write a new file as open_private makes it; nothing is left of one that could not be written whole."""
    with _all_or_none(path) as (file,):
        file.write(text)


def new_stem(name: str) -> str:
    """NAME-TIME-PID-..., which no other file of ours has."""
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6:06d}"


def file_word(text: str) -> str:
    """A text as a part of a file's name: letters and digits, all else a dash."""
    return "".join(char if char.isalnum() else "-" for char in text)


def inert(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return "'" + cell if cell.startswith(_FORMULA) else cell


def markdown_row(cells: Iterable[str]) -> str:
    """One row of a table; names from outside are no markup in it."""
    return f"| {' | '.join(_MARKUP.sub(_ESCAPED, cell) for cell in cells)} |"


def markdown_rule(aligned: Iterable[str]) -> str:
    """The line under the header; `aligned` says left or right for each column."""
    return f"| {' | '.join('---:' if side == 'right' else '---' for side in aligned)} |"


def export_table(
    directory: Path,
    name: str,
    header: Sequence[str],
    rows: Iterable[tuple[Sequence[str], Mapping[str, Any]]],
) -> tuple[Path, Path, Path, Path]:
    """Write NAME-TIME.csv and .md (cells as shown), .json and .jsonl (the full models); returns the paths.

    `rows` gives cells and model of each row; they are written as they come, never held together. Raises OSError,
    and then leaves none of the files behind.
    """
    private_dir(directory)
    stem = new_stem(name)
    paths = table, words, full, lines = tuple(directory / f"{stem}.{kind}" for kind in ("csv", "md", "json", "jsonl"))
    with _all_or_none(*paths) as (csv_file, md_file, json_file, jsonl_file):
        writer = csv.writer(csv_file)
        writer.writerow(header)
        md_file.write(f"{markdown_row(header)}\n{markdown_rule('left' for _ in header)}\n")
        before = "[\n"
        for cells, record in rows:
            writer.writerow([inert(cell) for cell in cells])
            md_file.write(markdown_row(cells) + "\n")
            text = json.dumps(record, ensure_ascii=False)
            json_file.write(before + text)
            jsonl_file.write(text + "\n")
            before = ",\n"
        json_file.write("[]\n" if before == "[\n" else "\n]\n")
    return table, words, full, lines


@contextmanager
def _all_or_none(*paths: Path) -> Iterator[tuple[TextIO, ...]]:
    """Open new private files; when anything fails, none of them stays."""
    made: list[Path] = []
    with ExitStack() as stack:
        # Closing writes the rest, so that too may find the disk full.
        stack.push(lambda kind, error, trace: _remove(made) if error is not None else None)
        files = []
        for path in paths:
            files.append(stack.enter_context(open_private(path)))
            made.append(path)
        yield tuple(files)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()
