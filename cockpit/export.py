"""Writing what a table shows to files that only the user can read."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cockpit.config import state_dir

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


def write_private(path: Path, text: str) -> None:
    """Write a new file with mode 0600; raises FileExistsError rather than following what lies there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def as_csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """CSV whose cells no spreadsheet takes for a formula."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows([[_inert(cell) for cell in row] for row in rows])
    return out.getvalue()


def _inert(cell: str) -> str:
    return "'" + cell if cell.startswith(_FORMULA) else cell


def export_table(
    directory: Path,
    name: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    records: Sequence[Mapping[str, Any]],
) -> tuple[Path, Path]:
    """Write NAME-TIME.csv (cells as shown) and NAME-TIME.json (the full models); returns both paths."""
    private_dir(directory)
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6:06d}"
    table, full = directory / f"{stem}.csv", directory / f"{stem}.json"
    write_private(table, as_csv(header, rows))
    write_private(full, json.dumps(list(records), ensure_ascii=False, indent=1))
    return table, full
