"""The columns of the NCCL tests: what was measured where, how it compares, the trend. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cockpit.cluster import Cluster, View
from cockpit.formats.hostlist import brief
from cockpit.models import Health
from cockpit.report import iso
from cockpit.sources.base import SourceKey
from cockpit.text import printable
from cockpit.words import MISSING, binary_size, moment, plural
from screens.grid_model import Cell, Column
from screens.nccl_book import NcclBook, NcclRow, nccl_book
from screens.pane_spec import PaneSpec
from themes import UNICODE, state_token

# No source of the store: the history on the disk is never stale.
NCCL: SourceKey[tuple[NcclRow, ...]] = SourceKey("nccl")
NOTHING = "no NCCL test of this cluster is kept yet; N runs one"
_HEALTH = {
    "pass": Health.OK,
    "warn": Health.WARN,
    "fail": Health.CRITICAL,
    "incomplete": Health.WARN,
    "unjudged": Health.UNKNOWN,
}
FALL_PCT, BAD_FALL_PCT = -5.0, -10.0  # against the last good one: worth a look, and the catalogue's warning


@dataclass(frozen=True, slots=True)
class NcclTable:
    """Columns and filter fields over runs; `now` is the time on our own clock."""

    now: Callable[[], float]

    def columns(self) -> tuple[Column[NcclRow], ...]:
        """Every column, in order; the narrowest screen keeps when, verdict, bandwidth, per cent and nodes."""
        return (
            Column("when", "when", self._when, lambda r: r.run.at, 5, 12, down_first=True, live=True),
            Column("verdict", "verdict", verdict_cell, lambda r: list(Health).index(health(r)), 6, 12,
                   down_first=True),
            Column("busbw", "GB/s", busbw_cell, lambda r: r.run.busbw_large_gbs, 6, 8, "right", down_first=True,
                   note="bus bandwidth at the largest size"),
            Column("pct", "of expected", expected_cell, lambda r: r.run.pct, 14, 30, drop=1, cut=True,
                   note="share of what is expected"),
            Column("trend", "trend", trend_cell, lambda r: r.trend_pct, 5, 7, "right", drop=3,
                   note="against the last good one of the same shape"),
            Column("collective", "collective", collective, collective, 8, 20, drop=2),
            Column("nodes", "nodes", nodes_text, lambda r: len(r.run.nodes), 15, 40, cut=True, note="that took part"),
            Column("ranks", "ranks", lambda r: _number(r.run.shape.ranks), lambda r: r.run.shape.ranks, 5, 5, "right",
                   drop=5, down_first=True),
            Column("why", "why", why_cell, None, 16, 120, drop=4, cut=True, note="what makes the verdict"),
            Column("type", "type", lambda r: r.run.shape.instance_type or MISSING, lambda r: r.run.shape.instance_type,
                   8, 18, wide=True),
            Column("transport", "transport", lambda r: r.run.transport or MISSING, lambda r: r.run.transport, 4, 9,
                   wide=True),
            Column("nccl", "NCCL", lambda r: r.run.versions.nccl or MISSING, lambda r: r.run.versions.nccl, 5, 10,
                   wide=True),
            Column("size", "size", size_text, lambda r: r.run.size_large_bytes, 5, 8, "right", wide=True),
        )  # fmt: skip

    def fields(self) -> Mapping[str, Callable[[NcclRow], str]]:
        """What `field:value` in a filter may name."""
        return {
            "verdict": lambda r: r.run.verdict,
            "collective": collective,
            "node": lambda r: " ".join(r.run.nodes),
            "type": lambda r: r.run.shape.instance_type,
            "transport": lambda r: r.run.transport,
            "nccl": lambda r: r.run.versions.nccl,
            "flag": lambda r: " ".join(r.run.flags),
            "why": lambda r: " ".join(r.run.reasons),
            "kind": lambda r: r.run.kind,
        }

    def _when(self, row: NcclRow) -> Cell:
        return moment(row.run.at, self.now())


def health(row: NcclRow) -> Health:
    """How bad its verdict is; a verdict of another version is unknown."""
    return _HEALTH.get(row.run.verdict, Health.UNKNOWN)


def verdict_cell(row: NcclRow) -> Cell:
    """Sign and word."""
    return f"{UNICODE.states[health(row)]} {printable(row.run.verdict)}", state_token(health(row))


def busbw_cell(row: NcclRow) -> Cell:
    """GB/s at the largest size; nothing where that was too small to judge by."""
    return MISSING if row.run.busbw_large_gbs is None else f"{row.run.busbw_large_gbs:.1f}"


def expected_cell(row: NcclRow) -> Cell:
    """`94% of 470, usual here`: the share, and what it is a share of."""
    if row.run.pct is None or row.expected is None:
        return MISSING
    whose = {"history": ", usual here", "catalogue": ", catalogue"}.get(row.expected.basis, "")
    return f"{row.run.pct:.0f}% of {row.expected.good_gbs:.0f}{whose}"


def trend_cell(row: NcclRow) -> Cell:
    """`-12 %` against the last good one of the same shape."""
    trend = row.trend_pct
    if trend is None:
        return MISSING
    token = "critical" if trend < BAD_FALL_PCT else "warning" if trend < FALL_PCT else ""
    text = f"{trend:+.0f} %"
    return ("0 %" if text in ("+0 %", "-0 %") else text), token


def collective(row: NcclRow) -> str:
    """`all_reduce`, with its algorithm where that was chosen, or that it is a sweep."""
    words = [row.run.shape.collective or MISSING]
    words += ["ring"] if row.run.shape.algorithm == "ring" else []
    return " ".join([*words, "sweep"] if row.run.kind == "sweep" else words)


def nodes_text(row: NcclRow) -> str:
    """The nodes folded; how many where no name is known."""
    if row.run.nodes:
        return printable(brief(row.run.nodes, 60))
    return MISSING if row.run.shape.nodes is None else plural(row.run.shape.nodes, "node")


def size_text(row: NcclRow) -> str:
    """The size that was judged."""
    return MISSING if row.run.size_large_bytes is None else binary_size(row.run.size_large_bytes)


def why_cell(row: NcclRow) -> Cell:
    """What decided, unless it simply passed."""
    return (row.run.reasons[0] if row.run.reasons else ""), "dim"


def _number(value: int | None) -> str:
    return MISSING if value is None else str(value)


def record(row: NcclRow) -> dict[str, Any]:
    """The whole run, for exports."""
    expected = asdict(row.expected) if row.expected is not None else None
    more = {"at": iso(row.run.at), "expected": expected, "trend_pct": row.trend_pct}
    return {**asdict(row.run), **more, "compared_with": row.before.id if row.before else None}


def nccl_spec(cluster: Cluster) -> PaneSpec:
    """The NCCL tests of a cluster as a pane, newest first."""
    book, table = nccl_book(cluster), NcclTable(cluster.clock.now)
    return PaneSpec(
        id="nccl",
        kind="nccl",
        source=NCCL,
        rows=lambda view: book.rows() or (),
        key=lambda row: row.run.id,
        health=health,
        columns=table.columns(),
        fields=table.fields(),
        record=record,
        copied=lambda keys: _copied(book, keys),
        empty=lambda view: _empty(book, view),
        nodes=lambda row: row.run.nodes,
        command=lambda rows: ("cockpit", "nccl", "history"),
    )


def _copied(book: NcclBook, keys: Sequence[str]) -> str:
    """Each run as one pastes it into a channel."""
    found = [row for row in (book.row(key) for key in keys) if row is not None]
    return "\n".join(
        " · ".join(
            (iso(r.run.at) or "", r.run.verdict, f"{_text(busbw_cell(r))} GB/s", collective(r), nodes_text(r),
             _text(why_cell(r)))
        )
        for r in found
    )  # fmt: skip


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _empty(book: NcclBook, view: View) -> str:
    if book.rows() is None:
        return "reading the history …"
    return f"the history cannot be read: {printable(book.fault)}" if book.fault else NOTHING
