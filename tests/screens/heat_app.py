"""A small app around one Heatmap, and rows to fill it with; run as a program it changes them by keys."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from textual.app import ComposeResult
from textual.geometry import Region
from textual.message import Message

import themes
from screens.heatmap import HeatCell, Heatmap, HeatRow
from screens.heatmap_core import ColourBy
from screens.last_steps import LookApp


def cell(share: float, **changes: Any) -> HeatCell:
    """A healthy GPU."""
    return replace(HeatCell(share, f"{share:.0%}"), **changes)


def heat_rows(count: int, share: float = 0.5, cells: int = 8) -> list[HeatRow]:
    """Nodes gpu-st-p5-1, -2, ... whose GPUs all have that value."""
    return [HeatRow(f"k{i}", f"gpu-st-p5-{i}", (cell(share),) * cells) for i in range(1, count + 1)]


def random_rows(count: int, seed: int = 1) -> list[HeatRow]:
    """The same with another value in each cell, which is the worst for the terminal."""
    chance = random.Random(seed)
    return [replace(row, cells=tuple(cell(chance.random()) for _ in row.cells)) for row in heat_rows(count)]


def fleet_rows(count: int, seed: int = 1) -> list[HeatRow]:
    """A fleet at work: jobs of four nodes whose GPUs all do about the same, some of them idle."""
    chance, rows = random.Random(seed), []
    for place, row in enumerate(heat_rows(count)):
        if place % 4 == 0:
            base, job = chance.choice((0.0, 0.55, 0.85, 0.92, 0.97)), f"job {48200 + place // 4} maria"
        cells = [cell(min(1.0, base + chance.uniform(0.0, 0.06)), group=job if base else "") for _ in row.cells]
        rows.append(replace(row, cells=tuple(cells)))
    return rows


def with_cell(rows: Sequence[HeatRow], place: int, column: int, new: HeatCell) -> list[HeatRow]:
    """The rows with one cell replaced."""
    cells = list(rows[place].cells)
    cells[column] = new
    return [replace(row, cells=tuple(cells)) if i == place else row for i, row in enumerate(rows)]


class CountingHeatmap(Heatmap):
    """Notes which regions it had repainted; None stands for the whole widget."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.repainted: list[Region | None] = []

    def refresh(self, *regions: Region, **kwargs: Any) -> Any:
        """Note it and do it."""
        if hasattr(self, "repainted"):
            self.repainted += regions or [None]
        return super().refresh(*regions, **kwargs)


class HeatApp(LookApp[None]):
    """One heatmap in the cockpit's own look. `c` changes one value, `n` all of them."""

    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [("c", "change"), ("n", "new")]  # noqa: RUF012 - Textual's own way

    def __init__(
        self,
        rows: Sequence[HeatRow] | None = None,
        *,
        theme: str = themes.DEFAULT,
        title: str = "GPUs",
        ascii_only: bool = False,
        colour_by: ColourBy = "value",
    ) -> None:
        super().__init__(themes.Look(theme, ascii_only))
        self.rows = rows
        self.messages: list[Message] = []
        self.heat = CountingHeatmap(title, "no GPUs", "heat", colour_by=colour_by)

    def compose(self) -> ComposeResult:
        """Nothing but the heatmap."""
        yield self.heat

    def on_mount(self) -> None:
        """Focus the heatmap and fill it, unless the test wants it unread."""
        self.heat.focus()
        if self.rows is not None:
            self.heat.show(self.rows, "util")

    def action_change(self) -> None:
        """Another value in the cell under the cursor."""
        assert self.rows is not None
        place = self.heat.state.cursor
        self.rows = with_cell(self.rows, place, self.heat.cursor_column, cell(0.11, group="job CHANGED"))
        self.heat.show(self.rows, "util")

    def action_new(self) -> None:
        """Other values in all cells."""
        assert self.rows is not None
        rows = fleet_rows(len(self.rows), seed=2)
        self.heat.show(with_cell(rows, 0, 0, cell(0.5, group="job NEW")), "util")

    def heard(self, kind: type[Message]) -> list[Any]:
        """The messages of one kind that the heatmap sent, oldest first."""
        return list(dict.fromkeys(message for message in self.messages if type(message) is kind))


if __name__ == "__main__":
    HeatApp(fleet_rows(int(sys.argv[1]))).run()
