"""What the details of an NCCL test say: why it is judged so, curve, rows, proof, environment. Imports no Textual."""

from __future__ import annotations

from cockpit.cluster import Cluster
from cockpit.nccl.history import changes
from cockpit.nccl.models import Judgement
from cockpit.text import printable
from cockpit.words import binary_size, stamp
from screens import nccl_table
from screens.details.parts import known_nodes, nodes_line
from screens.lines import Line, Piece, fact, facts, section
from screens.nccl_book import NcclRow, nccl_book
from screens.nccl_curve import Curve, curve_lines
from screens.nccl_matrix import matrix_lines
from themes import state_token

_MEANINGS = {
    Judgement.PASS.value: "As fast as it should be, and the data was right.",
    Judgement.WARN.value: "Slower than it should be, or something about it is odd: look before jobs feel it.",
    Judgement.FAIL.value: "Broken: far too slow, wrong data, or an error. Find out why before jobs go there.",
    Judgement.INCOMPLETE.value: "It did not come to its end, so there is nothing to judge.",
    Judgement.UNJUDGED.value: "Nothing fitting is known to compare with, or the sizes were too small to judge by.",
}


def nccl_lines(cluster: Cluster, key: str) -> list[Line]:
    """Everything known of a run."""
    book = nccl_book(cluster)
    row = book.row(key)
    if row is None:
        waits = book.rows() is None
        return [["reading the history …" if waits else "the history has no such test (any more)"]]
    return [
        *_head(row),
        *_reasons(row),
        *_nodes(cluster, row),
        *_matrix(row),
        *_curve(row),
        *_rows(row),
        *_proof(row),
        *_versions(row),
    ]


def explain_nccl(cluster: Cluster, key: str) -> list[Line]:
    """What its verdict means, before everything known of it."""
    row = nccl_book(cluster).row(key)
    if row is None:
        return nccl_lines(cluster, key)
    meaning = _MEANINGS.get(row.run.verdict, "This version does not know that verdict.")
    return [[meaning], [], *nccl_lines(cluster, key)]


def _head(row: NcclRow) -> list[Line]:
    run, shape = row.run, row.run.shape
    busbw = _cell(nccl_table.busbw_cell(row))
    pieces: list[Piece] = [(_cell(nccl_table.verdict_cell(row)), state_token(nccl_table.health(row)))]
    pieces.append((f"  {nccl_table.collective(row)}", "bright"))
    if run.busbw_large_gbs is not None:
        pieces.append((f"  {busbw} GB/s at {nccl_table.size_text(row)}", ""))
    words = [shape.instance_type, _count(shape.nodes, "nodes"), _count(shape.ranks, "ranks")]
    words += [f"job {run.job_id}" if run.job_id is not None else "", f"read from {run.origin}" if run.origin else ""]
    where = " · ".join(word for word in words if word)
    trend = nccl_table.trend_cell(row)
    before = row.before
    told = "" if before is None else f"{_cell(trend)} against {stamp(before.at)} ({before.busbw_large_gbs:g} GB/s)"
    return [
        pieces,
        *facts(
            [
                ("when", stamp(run.at)),
                ("what", where),
                ("of expected", _cell(nccl_table.expected_cell(row))),
                ("small", f"{run.latency_us:g} µs for small messages" if run.latency_us is not None else ""),
            ]
        ),
        *([fact("trend", told, trend[1] if isinstance(trend, tuple) else "")] if told else []),
        *facts([("changed", ", ".join(changes(row.earlier, run)))]),
    ]


def _reasons(row: NcclRow) -> list[Line]:
    sources = row.expected.sources if row.expected else ()
    lines: list[Line] = [[f"  {reason}"] for reason in row.run.reasons]
    lines += [[(f"  source: {printable(source)}", "dim")] for source in sources]
    return [[], section("why"), *lines] if lines else []


def _nodes(cluster: Cluster, row: NcclRow) -> list[Line]:
    lines = nodes_line("nodes", row.run.nodes, known_nodes(cluster.view))
    return [[], *lines] if lines else []


def _matrix(row: NcclRow) -> list[Line]:
    if not row.run.pairs:
        return []
    pairs = {(one, other): busbw for one, other, busbw in row.run.pairs}
    return [[], section("pairs"), *matrix_lines(row.run.nodes, pairs)]


def _curve(row: NcclRow) -> list[Line]:
    curves = [Curve(row.run.curve)]
    curves += [Curve(run.curve, 2) for run in row.earlier[-3:] if run.curve]
    if row.expected is not None:
        start = row.expected.min_size_bytes or row.run.size_large_bytes or 0
        curves.append(Curve(((start, row.expected.good_gbs),), 3))
    lines = curve_lines(tuple(curves)) if row.run.curve else ()
    if not lines:
        return []
    legend: list[Piece] = [("  ● this run", "accent")]
    legend += [("  · earlier good ones", "dim")] if row.earlier else []
    legend += [("  ─ expected", "ok")] if row.expected is not None else []
    return [[], [("bus bandwidth over message size", "bright"), *legend], *lines]


def _rows(row: NcclRow) -> list[Line]:
    lines: list[Line] = [
        [(f"  {binary_size(size):>12}", "dim"), f"  {busbw:>8.2f} GB/s"] for size, busbw in row.run.curve
    ]
    return [[], section("rows (the better of both placements)"), *lines] if lines else []


def _proof(row: NcclRow) -> list[Line]:
    run = row.run
    if not (run.transport or run.proof or run.settings):
        return []
    lines: list[Line] = [fact("transport", run.transport or "no line of the log tells")]
    lines += [[(f"  {line}", "dim")] for line in run.proof]
    if run.settings:
        lines += [[], section("environment"), *_settings(row)]
    return [[], section("the way the data went"), *lines]


def _settings(row: NcclRow) -> list[Line]:
    return [[f"  {name}=", (value, "dim")] for name, value in row.run.settings]


def _versions(row: NcclRow) -> list[Line]:
    v = row.run.versions
    named = (("NCCL", v.nccl), ("nccl-tests", v.nccl_tests), ("OFI plugin", v.plugin), ("libfabric", v.libfabric),
             ("CUDA", v.cuda), ("driver", v.driver), ("EFA", v.efa))  # fmt: skip
    lines = facts(named)
    return [[], section("versions"), *lines] if lines else []


def _count(number: int | None, noun: str) -> str:
    return "" if number is None else f"{number} {noun if number != 1 else noun.removesuffix('s')}"


def _cell(cell: str | tuple[str, str]) -> str:
    return cell if isinstance(cell, str) else cell[0]
