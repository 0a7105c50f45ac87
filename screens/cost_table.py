"""The cost pane: what runs by queue and type, what of it does nothing and whose it is, and where prices come from.

Pure functions and one small memory; imports no Textual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from cockpit.aws_models import Market
from cockpit.cluster import Cluster, View
from cockpit.cost import CostLine, CostReport, IdleLine, IdleMeter, compute_usd_h
from cockpit.cost_report import LIST_NOTE, cost_of, price_words, usd
from cockpit.formats.hostlist import fold
from cockpit.models import Health
from cockpit.sources.aws import AWS
from cockpit.sources.slurm import NODES
from cockpit.text import printable
from cockpit.words import count, plural, shows_utc, span
from screens.grid_model import Cell, Column
from screens.pane_spec import PaneSpec
from screens.per_cluster import PerCluster
from themes import state_token

AGAIN_S = 15.0  # sums over time are made anew so often when nothing else has changed
LEAST_HOURS = 0.05
NOT_IN_IT = "volumes, file systems, network and licences are not in it"
_IDLE = {
    "allocated": "idle in a job",
    "free": "idle, free",
    "drained": "idle, drained",
    "down": "idle, down",
}


@dataclass(frozen=True, slots=True)
class CostRow:
    """One line. `group`: runs (like machines of a queue), idle (paid for and used by nobody) or note (words)."""

    key: str
    group: str
    what: str
    type: str = ""
    market: str = ""
    machines: int | None = None
    gpus: int | None = None
    usd_h: float | None = None
    each_usd_h: float | None = None
    since_launch_usd: float | None = None
    who: str = ""
    job: str = ""
    nodes: tuple[str, ...] = ()
    about: str = ""
    health: Health = Health.OK


class CostRows:
    """The rows of the last report; the very same objects while they say the same."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._view: View | None = None
        self._made_at = 0.0
        self._rows: tuple[CostRow, ...] | None = None
        self._meter = idle_meter(cluster)
        self.report: CostReport | None = None

    def rows(self) -> tuple[CostRow, ...] | None:
        """Every line, dearest first; None while neither EC2 nor Slurm was read."""
        view, steady = self._cluster.view, self._cluster.clock.steady()
        if view is not self._view or steady - self._made_at >= AGAIN_S:
            self._view, self._made_at = view, steady
            self.report = cost_of(self._cluster)
            made = None if self.report is None else self._made(self.report, steady)
            self._rows = self._rows if made == self._rows else made
        return self._rows

    def _made(self, report: CostReport, steady: float) -> tuple[CostRow, ...]:
        self._meter.add(report, steady)
        return (*cost_rows(self._cluster, report), *hours_rows(self._meter))

    def headline(self) -> str:
        """The sums: now, of that idle, until Monday."""
        self.rows()
        return "" if self.report is None else headline(self.report)


def headline(report: CostReport) -> str:
    """`$165.12/h, compute $165.12/h · idle $110.08/h, 16 GPUs · $3,650 until Mon 09:00 (2d14h)`."""
    total, compute = report.usd_h, compute_usd_h(report)
    now = f"{usd(total)}/h" if total is not None else f"compute {usd(compute)}/h"
    if total is not None and compute is not None and abs(total - compute) >= 0.005:
        now += f", compute {usd(compute)}/h"
    idle = f"idle {usd(report.idle_usd_h)}/h, {plural(report.idle_gpus, 'GPU')}"
    opening = f"Mon 09:00{' local' * shows_utc()}"
    monday = f"{usd(report.until_monday_usd)} until {opening} ({span(report.until_monday_s)})"
    return " · ".join([now, idle, *([monday] if report.until_monday_usd is not None else [])])


def cost_rows(cluster: Cluster, report: CostReport) -> Iterator[CostRow]:
    """What is idle first, since that can be ended; then everything that runs, then where the numbers come from."""
    yield from map(_idle_row, report.idle)
    yield from map(_run_row, report.lines)
    yield from _notes(cluster, report)


def _idle_row(line: IdleLine) -> CostRow:
    job = f", job {line.job}" if line.job else ""
    return CostRow(
        f"idle:{line.why}:{line.who}:{line.job}",
        "idle",
        _IDLE.get(line.why, line.why),
        machines=len(line.nodes),
        gpus=line.gpus,
        usd_h=line.usd_h,
        who=printable(line.who),
        job=line.job,
        nodes=line.nodes,
        about=printable(f"{fold(line.nodes)}{job}"),
        health=Health.WARN,
    )


idle_meter = PerCluster(lambda cluster: IdleMeter())


def hours_rows(meter: IdleMeter) -> Iterator[CostRow]:
    """What was idle for as long as the pane was looked at, most first: whom to ask, and what it adds up to."""
    told = sorted(meter.gpu_hours().items(), key=lambda item: -item[1])
    for (why, who), hours in told:
        if hours >= LEAST_HOURS:
            words = f"{hours:,.1f} GPU-hours {_IDLE.get(why, why)}, in {span(meter.watched_s)} with this pane open"
            yield CostRow(f"hours:{why}:{who}", "note", "idle so far", who=printable(who), about=words)


def _run_row(line: CostLine) -> CostRow:
    unknown = line.count - line.priced
    ahead = line.market is Market.CAPACITY_BLOCK
    about = "paid in advance" if ahead else "no price is known: not counted"
    about = price_words(line.price) if line.price else about
    if line.price and unknown:
        about += f"; {unknown} without a price not counted"
    return CostRow(
        f"runs:{line.queue}:{line.type}:{line.market.value if line.market else ''}",
        "runs",
        printable(line.queue) or "no queue",
        printable(line.type) or "unknown type",
        line.market.value if line.market else "",
        line.count,
        None,
        line.usd_h,
        line.price.usd_h if line.price else None,
        line.since_launch_usd,
        about=about,
        health=Health.OK if line.price or ahead else Health.UNKNOWN,
    )


def _notes(cluster: Cluster, report: CostReport) -> Iterator[CostRow]:
    told = []
    if any("list" in price.source for price in report.prices):
        told.append(("prices", LIST_NOTE))
    told.append(("not counted", NOT_IN_IT))
    if report.paid_ahead:
        told.append(("not counted", f"{plural(report.paid_ahead, 'instance')} of capacity blocks, paid in advance"))
    if not report.sees_idle_jobs:
        told.append(("not seen", "jobs that hold GPUs and use none: GPUs are not watched"))
    if report.basis == "slurm":
        told.append(("by Slurm", "EC2 was not read: head and login nodes are not in it"))
    told += [("not read", words) for words in _faults(cluster)]
    for number, (what, words) in enumerate(told):
        yield CostRow(f"note:{number}", "note", what, about=printable(words))


def _faults(cluster: Cluster) -> list[str]:
    """Why AWS or its prices could not be asked, each with what to do about it."""
    view, state = cluster.view, cluster.store.state(AWS)
    faults = [state.error] if state.error else []
    if view.aws is not None and view.aws.instances.fault:
        faults.append(view.aws.instances.fault)
    faults += view.prices.faults if view.prices else ()
    told = [fault.line() for fault in faults]
    return told if cluster.aws.wanted else ["AWS is not asked: the config names no region"]


@dataclass(frozen=True, slots=True)
class CostTable:
    """Columns and filter fields over lines of cost."""

    def columns(self) -> tuple[Column[CostRow], ...]:
        """Every column, in order; the narrowest screen keeps what, how many, what it costs and what about it."""
        return (
            Column("what", "what", _what, lambda r: r.what, 8, 22),
            Column("type", "type", lambda r: r.type, lambda r: r.type or None, 8, 20, drop=3),
            Column("machines", "n", lambda r: _count(r.machines), lambda r: r.machines, 2, 6, "right", down_first=True,
                   note="how many"),
            Column("usd", "$/h", _money, lambda r: r.usd_h, 8, 12, "right", down_first=True,
                   note="all of the line by the hour"),
            Column("gpus", "gpus", lambda r: _count(r.gpus), lambda r: r.gpus, 4, 6, "right", 2, down_first=True),
            Column("who", "who", lambda r: r.who, lambda r: r.who or None, 6, 16, drop=1, cut=True),
            Column("each", "each", lambda r: _usd(r.each_usd_h), lambda r: r.each_usd_h, 6, 10, "right", 4,
                   note="one of them by the hour"),
            Column("market", "market", lambda r: r.market, lambda r: r.market or None, 4, 14, drop=6,
                   note="on demand, spot, reserved"),
            Column("since", "since launch", lambda r: _usd(r.since_launch_usd), lambda r: r.since_launch_usd, 8, 12,
                   "right", 5, down_first=True),
            Column("about", "nodes, prices", lambda r: (r.about, "dim"), None, 34, 140, cut=True,
                   note="which nodes, whose prices"),
        )  # fmt: skip

    def fields(self) -> Mapping[str, Callable[[CostRow], str]]:
        """What `field:value` in a filter may name."""
        return {
            "what": lambda r: f"{r.group} {r.what}",
            "queue": lambda r: r.what if r.group == "runs" else "",
            "type": lambda r: r.type,
            "market": lambda r: r.market,
            "who": lambda r: r.who,
            "job": lambda r: r.job,
            "node": lambda r: " ".join(r.nodes),
        }


def _what(row: CostRow) -> Cell:
    return row.what, "dim" if row.group == "note" else state_token(row.health)


def _money(row: CostRow) -> Cell:
    return "" if row.group == "note" else usd(row.usd_h)


def _usd(amount: float | None) -> str:
    return "" if amount is None else usd(amount)


def _count(number: int | None) -> str:
    return "" if number is None else count(number)


def cost_spec(cluster: Cluster) -> PaneSpec:
    """What a cluster costs, as a pane."""
    kept, table = CostRows(cluster), CostTable()
    return PaneSpec(
        id="cost",
        kind="cost",
        source=AWS if cluster.aws.wanted else NODES,
        rows=lambda view: kept.rows(),
        key=lambda row: row.key,
        health=lambda row: row.health,
        columns=table.columns(),
        fields=table.fields(),
        record=asdict,
        copied=lambda keys: "\n".join(line_of(row) for row in kept.rows() or () if row.key in set(keys)),
        empty=lambda view: "nothing is known to run",
        nodes=lambda row: row.nodes,
        headline=lambda view: kept.headline(),
    )


def line_of(row: CostRow) -> str:
    """A line as one pastes it into a channel."""
    money = f"{usd(row.usd_h)}/h" if row.group != "note" else ""
    machines = plural(row.machines, "machine") if row.machines is not None else ""
    return " · ".join(word for word in (row.what, row.type, machines, money, row.who, row.about) if word)


def find_row(cluster: Cluster, key: str) -> CostRow | None:
    """The line of that key by what is known now; None when it is over."""
    report = cost_of(cluster)
    found = (*cost_rows(cluster, report), *hours_rows(idle_meter(cluster))) if report else ()
    return next((row for row in found if row.key == key), None)
