"""NCCL test results for the command line: JSON, and lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from cockpit.nccl.history import HistoryRun
from cockpit.nccl.models import Judgement, NcclRow, NcclRun, Placement, Verdict
from cockpit.report import SCHEMA, iso
from cockpit.words import MISSING, binary_size, plural

_HANGING: dict[str, Any] = {"initial_indent": "  ", "subsequent_indent": "    ", "break_on_hyphens": False}
Reading = tuple[NcclRun, Verdict]
_BADNESS = [Judgement.PASS, Judgement.UNJUDGED, Judgement.INCOMPLETE, Judgement.WARN, Judgement.FAIL]


def worst(readings: Sequence[Reading]) -> Reading:
    """The reading that counts for a text with several runs."""
    return max(readings, key=lambda reading: _BADNESS.index(reading[1].word))


def reading_json(readings: Sequence[Reading], origin: str, taken_at: float, cluster: str | None) -> dict[str, Any]:
    """One object: the worst run's fields, and `runs` with all of them when the text held several."""
    head = _head(cluster, taken_at) | {"file": origin}
    records = [reading_record(*reading) for reading in readings]
    several = {"runs": records} if len(records) > 1 else {}
    return head | reading_record(*worst(readings)) | several


def _head(cluster: str | None, taken_at: float) -> dict[str, Any]:
    return {"schema": SCHEMA, "cluster": cluster, "taken_at": iso(taken_at), "sources": {}}


def reading_record(run: NcclRun, verdict: Verdict) -> dict[str, Any]:
    """One run and its verdict; what was not told is null."""
    shape, evidence, expected = verdict.shape, run.evidence, verdict.expectation
    return {
        "verdict": verdict.word.value,
        "busbw_large_gbs": verdict.busbw_large_gbs,
        "size_large_bytes": verdict.size_large_bytes,
        "reasons": list(verdict.reasons),
        "flags": list(verdict.flags),
        "collective": shape.collective or None,
        "algorithm": shape.algorithm,
        "ranks": shape.ranks,
        "nodes": shape.nodes,
        "gpus_per_node": shape.gpus_per_node,
        "instance_type": shape.instance_type or None,
        "instance_type_from": shape.type_from or None,
        "hosts": list(run.hosts),
        "complete": run.complete,
        "copies": run.copies,
        "wrong": verdict.wrong,
        "data_checked": verdict.data_checked,
        "average_busbw_gbs": run.footer.average_gbs if run.footer is not None else None,
        "latency_us": verdict.latency_us,
        "pct": verdict.pct,
        "expected": asdict(expected) if expected is not None else None,
        "cap_gbs": verdict.cap_gbs,
        "transport": {
            "kind": evidence.transport or None,
            "proof": evidence.transport_line or None,
            "why_not_efa": evidence.fallback_line or None,
            "protocol": evidence.protocol or None,
            "efa_devices": evidence.nics,
            "gpudirect": evidence.gdr,
        },
        "nvls": {"on": _nvls(verdict, evidence.nvls), "proof": evidence.nvls_line or None},
        "errors": [asdict(error) for error in run.errors],
        "warnings": list(evidence.warnings),
        "exit_code": run.exit_code,
        "versions": {key: value or None for key, value in asdict(run.versions).items()},
        "parameters": dict(run.parameters),
        "settings": dict(evidence.settings),
        "env": dict(run.env),
        "env_hidden": run.env_hidden,
        "rows": [_row_record(row) for row in run.rows],
        "rows_dropped": run.rows_dropped,
    }


def _nvls(verdict: Verdict, told: bool | None) -> bool | None:
    return False if "nvls_off" in verdict.flags else told


def _row_record(row: NcclRow) -> dict[str, Any]:
    return {
        "size_bytes": row.size_bytes,
        "count": row.count,
        "type": row.dtype,
        "redop": row.redop or None,
        "root": row.root,
        "algbw_gbs": max((half.algbw_gbs for half in row.placements if half.algbw_gbs is not None), default=None),
        "busbw_gbs": row.busbw_gbs,
        "wrong": row.wrong,
        "out_of_place": asdict(row.out_of_place) if row.out_of_place is not None else None,
        "in_place": asdict(row.in_place) if row.in_place is not None else None,
        "label": row.label or None,
    }


def reading_lines(readings: Sequence[Reading], width: int = 0) -> Iterator[str]:
    """Every run for a person: the verdict, why, what was measured, the rows; reasons wrapped where width is given."""
    for at, (run, verdict) in enumerate(readings):
        if at:
            yield ""
        yield f"{verdict.word.value.upper()}  {_measured(verdict)}"
        for reason in verdict.reasons:
            yield from wrap(reason, max(40, width), **_HANGING) if width else [f"  {reason}"]
        versions = ", ".join(f"{key.replace('_', '-')} {value}" for key, value in asdict(run.versions).items() if value)
        if versions:
            yield f"  versions: {versions}"
        if run.footer is not None and run.footer.average_gbs is not None:
            yield f"  the average over all sizes, {run.footer.average_gbs:g} GB/s, says nothing about the bandwidth"
        yield from _table(run)


def _measured(verdict: Verdict) -> str:
    shape = verdict.shape
    parts = [
        shape.collective or "unknown collective",
        "ring" if shape.algorithm == "ring" else "",
        plural(shape.ranks, "rank") if shape.ranks else "",
        f"on {plural(shape.nodes, 'node')}" if shape.nodes else "",
        shape.instance_type,
        f"· {verdict.latency_us:g} µs for small messages" if verdict.latency_us is not None else "",
    ]
    return " ".join(part for part in parts if part)


def _table(run: NcclRun) -> Iterator[str]:
    if not run.rows:
        return
    yield f"  {'size':>14}  {'out of place':>14}  {'in place':>14}  {'wrong':>11}   (busbw in GB/s)"
    for row in run.rows:
        size = f"{row.label + ': ' if row.label else ''}{binary_size(row.size_bytes)}"
        wrong = "not checked" if row.wrong is None else str(row.wrong)
        yield f"  {size:>14}  {_busbw(row.out_of_place):>14}  {_busbw(row.in_place):>14}  {wrong:>11}"
    if run.rows_dropped:
        yield f"  and {run.rows_dropped:,} rows more"


def _busbw(half: Placement | None) -> str:
    return MISSING if half is None or half.busbw_gbs is None else f"{half.busbw_gbs:.2f}"


def history_json(runs: Sequence[HistoryRun], cluster: str, taken_at: float, skipped: int) -> dict[str, Any]:
    """The runs of a cluster, oldest first."""
    records = [asdict(run) | {"at": iso(run.at), "good": run.good} for run in runs]
    return _head(cluster, taken_at) | {"runs": records, "unreadable_lines": skipped}


def history_lines(runs: Sequence[HistoryRun]) -> Iterator[str]:
    """A table for a person, oldest first."""
    yield f"{'time (UTC)':<20}  {'verdict':<10}  {'GB/s':>8}  {'%':>4}  {'nodes':>5}  {'collective':<14}  type, nodes"
    for run in runs:
        busbw = MISSING if run.busbw_large_gbs is None else f"{run.busbw_large_gbs:.1f}"
        pct = MISSING if run.pct is None else f"{run.pct:.0f}"
        ring = " ring" if run.shape.algorithm == "ring" else ""
        nodes = run.shape.nodes if run.shape.nodes is not None else MISSING
        what = f"{run.shape.collective or MISSING}{ring}"
        names = f"{run.shape.instance_type or MISSING} {', '.join(run.nodes[:4])}{' …' if len(run.nodes) > 4 else ''}"
        yield f"{iso(run.at) or MISSING:<20}  {run.verdict:<10}  {busbw:>8}  {pct:>4}  {nodes:>5}  {what:<14}  {names}"
