"""What the panels of the overview show: the panes' own columns, but few; and how they are arranged. No Textual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cockpit.models import Health
from cockpit.sources.base import SourceKey
from screens.grid_model import Column
from screens.pane_spec import PaneSpec

# The columns of each panel, and how narrow those that may be cut can get.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "nodes": ("node", "state", "gpus", "jobs", "reason"),
    "nccl": ("when", "verdict", "busbw", "pct", "trend", "collective", "nodes"),
    "queue": ("job", "user", "state", "nodes", "elapsed", "name", "where"),
}
_NARROWER = {"reason": 14, "where": 14}

LEAST_WIDTH, LEAST_HEIGHT = 50, 8  # of a panel that stands beside or above another
SINGLE_ROW_FROM = 160  # four panels side by side need this width


def compact(spec: PaneSpec) -> PaneSpec:
    """The same pane with the few columns that a panel has room for."""
    chosen = {column.id: column for column in spec.columns}
    columns = [_narrower(chosen[name]) for name in COLUMNS.get(spec.id, ()) if name in chosen]
    return replace(spec, columns=tuple(columns), settable=False) if columns else spec


def _narrower(column: Column[Any]) -> Column[Any]:
    return replace(column, width=_NARROWER.get(column.id, column.width), wide=False)


def nothing_yet(name: str, words: str) -> PaneSpec:
    """A panel for what this cluster has none of so far: no rows, and the words for why."""
    return PaneSpec(
        id=name,
        kind=name,
        source=SourceKey(name),
        rows=lambda view: (),
        key=str,
        health=lambda row: Health.OK,
        columns=(Column("none", "", str),),
        fields={},
        record=lambda row: {},
        copied="\n".join,
        empty=lambda view: words,
    )


def columns_for(width: int, height: int) -> int:
    """How many panels stand side by side in that room: 2 (two rows of them), 4, or 1 when only one fits."""
    if width >= 2 * LEAST_WIDTH and height >= 2 * LEAST_HEIGHT:
        return 2
    return 4 if width >= SINGLE_ROW_FROM and height >= LEAST_HEIGHT else 1


def problem_lines(count: int, height: int, frame: int) -> int:
    """The lines of the problems: as many as they need with the `frame` above them, at most 40% of the height."""
    return min(count + frame, max(frame + 1, int(height * 0.4)))
