"""bench.json, docs/BENCH.md and the lines on the screen."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench.budgets import PARTS, ROWS, WHY, Figures, Row

Section = tuple[str, Mapping[str, Figures]]

_INTRO = """# Benches

Written by `make bench`; the numbers are those of its last run. The cockpit runs in a pseudo-terminal (160x48,
truecolor, unless said otherwise) at its usual refresh of 5 s. Absolute times depend on the machine and on what
else it does; ratios, and differences to what was measured in the same run, say more. A budget is missed when
any column is over it. One read is one `sinfo` or one `squeue`, a refresh is one of each.
"""


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "textual": version("textual"),
        "paramiko": version("paramiko"),
        "slurm": _slurm_version(),
        "kernel": platform.release().partition("-")[0],
        "measured": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _slurm_version() -> str:
    try:
        told = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True).stdout
    except OSError:
        return "none"
    return told.split()[-1]


def write_json(path: Path, about: Mapping[str, Any], sections: Sequence[Section]) -> None:
    """Everything that was measured, with each sample's place."""
    found = {title: {name: dict(figures) for name, figures in columns.items()} for title, columns in sections}
    path.write_text(json.dumps({"machine": about, "sections": found}, indent=1) + "\n", encoding="utf-8")


def document(about: Mapping[str, Any], sections: Sequence[Section]) -> str:
    """docs/BENCH.md."""
    told = " · ".join(f"{name.replace('_', ' ')} {value}" for name, value in about.items())
    return "\n".join([_INTRO, told, "", *(line for section in sections for line in _table(*section)), *why(sections)])


def why(sections: Sequence[Section]) -> list[str]:
    """For each budget that is missed anywhere its reason."""
    over = [row for row in ROWS if any(row.missed(f) for _, columns in sections for f in columns.values())]
    if not over:
        return []
    reasons = [f"- {row.title}: {WHY.get(row.figure, 'not known yet').format_map(_parts(sections))}." for row in over]
    return ["## Missed, and why", "", *reasons, ""]


def _parts(sections: Sequence[Section]) -> Mapping[str, str]:
    """What reasons are made of, in words: each figure of PARTS as it is at the last size that has it."""
    columns = [figures for title, columns in sections if title == PARTS for figures in columns.values()]
    found = {name: value for figures in columns for name, value in figures.items()}
    return {row.figure: shown(found.get(row.figure), row.unit) for row in ROWS}


def missed(sections: Sequence[Section]) -> list[str]:
    """One line for each figure that is over its budget."""
    return [
        f"{title}, {name}: {row.title} {shown(figures[row.figure], row.unit)}, budget {_budget(row, figures)}"
        for title, columns in sections
        for name, figures in columns.items()
        for row in ROWS
        if row.missed(figures)
    ]


def shown(value: float | None, unit: str = "") -> str:
    """A figure with three digits that matter; a dash for what was not measured."""
    if value is None:
        return "–"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}".strip()


def _table(title: str, columns: Mapping[str, Figures]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        f"| figure | budget | {' | '.join(columns)} | |",
        "|---|---|" + "---:|" * len(columns) + "---|",
    ]
    for row in ROWS:
        values = [figures.get(row.figure) for figures in columns.values()]
        if any(value is not None for value in values):
            cells = " | ".join(shown(value, row.unit) for value in values)
            lines.append(f"| {row.title} | {_budget(row, {})} | {cells} | {_verdict(row, columns)} |")
    return [*lines, ""]


def _budget(row: Row, figures: Figures) -> str:
    limit = row.limit_of(figures)
    return row.words if limit is None else f"≤ {shown(limit, row.unit)}"


def _verdict(row: Row, columns: Mapping[str, Figures]) -> str:
    if row.limit is None:
        return ""
    return "**missed**" if any(row.missed(figures) for figures in columns.values()) else "met"
