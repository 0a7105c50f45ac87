"""The GPU pane: a heatmap of the whole fleet above, the table of GPUs, worst first, below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import is_
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from cockpit.cluster import Cluster
from cockpit.fleet import GpuRow, gpu_freshness, watch_freshness
from cockpit.gpu_models import GpuSample, known
from cockpit.models import Freshness, Health
from cockpit.view import View
from cockpit.words import MISSING
from screens.heatmap import HeatCell, Heatmap, HeatRow
from screens.keys import bindings
from screens.lines import Subject
from screens.pane import TablePane
from screens.pane_spec import PaneSpec
from screens.waiting import stale_words, waiting_words

COLD_C, HOT_C = 25.0, 90.0
HEAT_SHARE = 0.45  # of the pane's height, at most
HEAT_FRAME = 3  # title, numbers, description
AGAIN_S = 5.0
GPUS_PER_S = 2000  # drawn anew in a heatmap: those of 1,024 nodes every four seconds, or it takes 3% of a core


@dataclass(frozen=True, slots=True)
class Metric:
    """What the heatmap's ramp shows: `share` of the whole (None: no number) and the value in words."""

    name: str
    share: Callable[[GpuSample], float | None]
    text: Callable[[GpuSample], str]
    low: str = "0 %"
    high: str = "100 %"


def _percent(sample: GpuSample) -> float | None:
    util = known(sample.util_pct)
    return None if util is None else util / 100


def _memory(sample: GpuSample) -> float | None:
    used, total = known(sample.mem_used_mib), known(sample.gpu.mem_total_mib)
    return None if used is None or not total else used / total


def _heat(sample: GpuSample) -> float | None:
    temp_c = known(sample.temp_c)
    return None if temp_c is None else (temp_c - COLD_C) / (HOT_C - COLD_C)


def _power(sample: GpuSample) -> float | None:
    power_w, limit_w = known(sample.power_w), known(sample.power_limit_w)
    return None if power_w is None or not limit_w else power_w / limit_w


def _words(name: str, unit: str) -> Callable[[GpuSample], str]:
    def text(sample: GpuSample) -> str:
        value = known(getattr(sample, name))
        return MISSING if value is None else f"{value:.0f}{unit}"

    return text


METRICS = (
    Metric("util", _percent, _words("util_pct", " %")),
    Metric("mem", _memory, _words("mem_used_mib", " MiB")),
    Metric("temp", _heat, _words("temp_c", " °C"), f"{COLD_C:.0f} °C", f"{HOT_C:.0f} °C"),
    Metric("power", _power, _words("power_w", " W"), "0", "limit"),
    Metric("problems", lambda sample: 0.0, lambda sample: "well", "well", "well"),
)


def heat_rows(rows: tuple[GpuRow, ...], metric: Metric, steady: float) -> list[HeatRow]:
    """One row a node, one cell a GPU, in Slurm's order."""
    return [_heat_row(node, tuple(of), metric, steady) for node, of in groupby(rows, lambda row: row.node)]


def _heat_row(node: str, rows: tuple[GpuRow, ...], metric: Metric, steady: float) -> HeatRow:
    told = [gpu_freshness(row, steady) for row in rows]
    # GPUs that were never read have no age: then the node's is that of the row.
    unread = all(one is Freshness.NEVER for one in told)
    stale = Freshness.LIVE not in ([watch_freshness(rows[0].watch, steady)] if unread else told)
    cells = tuple(_cell(row, metric, stale or one is Freshness.LIVE) for row, one in zip(rows, told, strict=True))
    return HeatRow(node, node, cells, stale=stale, unread=unread)


def _cell(row: GpuRow, metric: Metric, current: bool) -> HeatCell:
    """`current`: its value is as old as its row's; an older one has no number among those of now."""
    group = f"job {row.job.label}" if row.job else ""
    who = f" · {row.job.user}" if row.job else ""
    wrong = f" · {row.findings[0].title}" if row.findings else ""
    if row.sample is None or row.sample.taken_at is None:
        return HeatCell(None, f"not read{who}{wrong}", row.health if row.findings else Health.OK, group)
    value = metric.share(row.sample) if current and row.sample.lost is None else None
    text = metric.text(row.sample) if current else "nothing new"
    return HeatCell(value, f"{text}{who}{wrong}", row.health, group)


class GpusPane(Vertical):
    """Both widgets follow the same view; tab goes from one to the other."""

    scopes = ("grid", "gpus")
    BINDINGS: ClassVar[list[BindingType]] = bindings("gpus")
    DEFAULT_CSS = """
    GpusPane.-no-heat > Heatmap { display: none; }
    """

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(id=f"pane-{spec.id}")
        self.table = TablePane(spec, id=f"table-{spec.id}")
        self.table.state.pinned = True  # nodes answer one after the other: the worst is under the cursor
        self._metric = 0
        self._by_job = False
        self._turns = HeatTurns()
        self._cluster: Cluster | None = None

    def compose(self) -> ComposeResult:
        yield Heatmap("fleet", "no GPU is read yet", id="heat", noun="GPU")
        yield self.table

    @property
    def subject(self) -> Subject | None:
        """The GPU that the cursor is on, in the heatmap or in the table."""
        heat = self.query_one(Heatmap)
        return gpu_under(heat) if heat.has_focus else self.table.subject

    def show_view(self, cluster: Cluster) -> None:
        """Show the cluster as it is known now."""
        self._cluster = cluster
        self.table.show_view(cluster)
        self._show_heat()

    def show_age(self, cluster: Cluster) -> None:
        """Show only how old the data are by now."""
        self.table.show_age(cluster)

    def _show_heat(self) -> None:
        cluster = self._cluster
        if cluster is None or not self.is_mounted:
            return
        metric, heat = METRICS[self._metric], self.query_one(Heatmap)
        if cluster.view.fleet is not None and not self._turns.due(cluster.view, cluster.clock.steady()):
            heat.set_stale(stale_words(cluster, self.table.spec.source))
            return
        rows = heat_rows(cluster.view.gpu_rows, metric, cluster.clock.steady())
        source = self.table.spec.source
        heat.empty = self.table.spec.empty(cluster.view) if cluster.view.fleet else waiting_words(cluster, source)
        heat.set_colour_by("group" if self._by_job else "value")
        heat.styles.height = max(5, min(len(rows) + HEAT_FRAME, int(self.size.height * HEAT_SHARE)))
        heat.show(rows, metric.name, stale_words(cluster, source), low=metric.low, high=metric.high)

    def on_resize(self) -> None:
        """The heatmap has its share of another height."""
        self._turns.again()
        self._show_heat()

    def action_metric(self) -> None:
        """The next metric on the heatmap."""
        self._metric = (self._metric + 1) % len(METRICS)
        self._turns.again()
        self._show_heat()

    def action_colour_by_job(self) -> None:
        """Colour the heatmap by job, or by value again."""
        self._by_job = not self._by_job
        self._turns.again()
        self._show_heat()

    def action_heat(self) -> None:
        """Hide the heatmap, or show it again."""
        self.toggle_class("-no-heat")


class HeatTurns:
    """When a heatmap is drawn anew: when something of it is new, of a large fleet not as often as that.

    After AGAIN_S in any case: that a node has fallen silent is nothing new of it.
    """

    def __init__(self) -> None:
        self.again()

    def again(self) -> None:
        """Draw it at the next look in any case."""
        self._of: tuple[object, ...] = (None, None, None)
        self._next = self._again = 0.0  # steady clock

    def due(self, view: View, steady: float) -> bool:
        """Whether it is to be drawn now."""
        parts = (view.fleet, view.nodes, view.jobs_of_node)
        same = all(map(is_, parts, self._of))
        if steady < (self._again if same else self._next):
            return False
        self._of, self._next = parts, steady + len(view.gpu_rows) / GPUS_PER_S
        self._again = max(self._next, steady + AGAIN_S)
        return True


def gpu_under(heat: Heatmap) -> Subject | None:
    """The GPU under the cursor of a heatmap of nodes."""
    return None if heat.cursor_cell is None else Subject("gpu", f"{heat.cursor_key}/{heat.cursor_column}")
