"""NCCL tests for tests: what the stand-in prints, read, judged and kept as a real run would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cockpit.demo.nccl_stand_in import Speeds, parse_arguments, whole_run
from cockpit.formats.nccl_tests import NcclReader
from cockpit.nccl.history import History, HistoryRun, baseline, history_record
from cockpit.nccl.shape import shape_of
from cockpit.nccl.verdict import judge, large_rows

PAIR = ("gpu-st-p5-1", "gpu-st-p5-2")


def add_run(history: History, speeds: Speeds, at: float, nodes: Sequence[str] = PAIR, name: str = "") -> HistoryRun:
    """Measure these nodes as fast as `speeds` says, and keep it; `name` is its id, for goldens."""
    reader = NcclReader()
    for line in whole_run(parse_arguments("all_reduce_perf", ["-b1G", "-e8G", "-f2"]), nodes, 8, speeds, debug=True):
        reader.feed(line.encode())
    reader.close()
    (run,) = reader.runs()
    shape = shape_of(run)
    own = baseline(history.load(), shape, large_rows(run)[0].size_bytes)
    record = history_record(run, judge(run, shape, history=own), at=at)
    record = replace(record, id=name or record.id)
    history.append(record)
    return record
