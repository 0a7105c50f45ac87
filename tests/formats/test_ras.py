"""NCCL's RAS reports in every form; samples read as the notes beside them say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.formats.errors import FormatError
from cockpit.formats.ras import RasReport, parse_event, parse_ras

SAMPLES = Path(os.environ.get("COCKPIT_SAMPLES") or Path(__file__).parents[3] / "shared" / "samples") / "ras"
STRAGGLER = b"""Communicators... (0.002s)
=============

Group     Comms      Nodes     Ranks     Ranks     Ranks   Status  Errors
    #  in group   per comm  per node  per comm  in group
    0         1          2       3-4         8         8  RUNNING  INCOMPLETE, MISMATCH

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 77 on node n2 managing GPU 3

#0-0 (1bdb83b038775869) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 7 -- GPU 3 (NVML 5) managed by process 77 on node n2

Warnings
========

#0-0 (1bdb83b038775869) MISMATCH
  Communicator ranks have different AllReduce operation counts
  6 ranks have launched up to operation 64
  Rank 2 has launched up to operation 60 -- GPU 2 managed by process 70 on node n1
"""


def test_a_report_with_everything() -> None:
    told = parse_ras(STRAGGLER)
    assert told.groups[0].errors == ("INCOMPLETE", "MISMATCH")
    assert told.groups[0].status == "RUNNING"
    assert [(each.pid, each.node) for each in told.incomplete] == [(77, "n2")]
    assert told.missing_ranks == (7,)
    counts = told.counts[0]
    assert (counts.operation, counts.counts) == ("AllReduce", ((60, 1), (64, 6)))
    assert [(process.rank, process.pid, number) for process, number in counts.rows] == [(2, 70, 60)]


def test_json_of_versions_that_forget_a_comma() -> None:
    rank = '{"rank": 0, "host": "h", "pid": 1, "cuda_dev": 0, "nvml_dev": 0, "collective_counts": {"AllReduce": 3}}'
    missing = '{"rank": 1, "host": "h", "pid": 2, "cuda_dev": 1, "nvml_dev": 1\n "status": {"considered_dead": true}}'
    text = (
        '{"nccl_version": "2.28.7", "communicators": [{"hash": "0xa", "size": 2, '
        f'"ranks": [{rank}], "missing_ranks": [{missing}]}}], "ras": {{"timeouts_count": 1}}}}'
    )
    told = parse_ras(text.encode())
    assert [(each.pid, each.rank) for each in told.dead] == [(2, 1)]
    assert told.by_rank == {("0xa", 0): {"AllReduce": 3}}
    assert told.timeouts == 1


@pytest.mark.parametrize("raw", [b"", b"ERROR: Unknown command", b"{", b'{"communicators": [1]}', b"hello\n" * 9])
def test_what_is_no_report(raw: bytes) -> None:
    with pytest.raises(FormatError):
        parse_ras(raw)


def sample(name: str) -> RasReport:
    return parse_ras((SAMPLES / f"{name}.txt").read_bytes())


@pytest.mark.samples
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples of RAS reports here")
def test_samples() -> None:
    assert sample("doc_communicators_ok").groups[0].comms == 8
    assert sample("doc_communicators_ok").groups[0].errors == ()
    assert sample("doc_table_mismatch").groups[0].errors == ("MISMATCH",)
    old = sample("doc_warning_mismatch_v224").counts[0]
    assert (old.operation, old.counts, len(old.rows)) == ("", ((6649, 6), (6650, 26)), 6)
    assert sample("doc_teardown_mixed_status").transitional
    stopped = sample("doc_incomplete_stopped_process")
    assert (stopped.took_s, stopped.timeouts, stopped.missing_ranks) == (2.05, 2, (21,))
    assert stopped.incomplete[0].pid == 3487984
    dead = sample("doc_dead_process")
    assert (dead.dead[0].node, dead.dead[0].gpus, dead.missing_ranks) == ("10.0.64.213", "5", (21,))
    healthy = sample("v2.30.7_healthy")
    assert (healthy.version, healthy.groups[0].errors, healthy.counts) == ("2.30.7", (), ())
    exited = sample("v2.30.7_incomplete_process_exited")
    assert (exited.incomplete[0].pid, exited.missing_ranks) == (3748990, (7,))
    gone = sample("v2.30.7_dead_no_communicators")
    assert (gone.no_data, gone.dead[0].pid) == (True, 3748990)
    straggler = sample("v2.30.7_mismatch_straggler").counts[0]
    assert straggler.counts == ((60, 1), (64, 7))
    assert straggler.rows[0][0].rank == 7
    assert sample("doc_job_summary_4node") == RasReport()
    told = parse_ras((SAMPLES / "doc_status_json_v2291.json").read_bytes())
    assert (told.version, told.missing_ranks, told.incomplete[0].pid) == ("2.29.1", (1,), 1524345)
    events = [
        parse_event((SAMPLES / name).read_bytes())
        for name in ("doc_monitor_event_text.txt", "doc_monitor_event_json.json", "doc_monitor_banner.txt")
    ]
    assert events[0] == events[1]
    assert events[0] is not None
    assert (events[0].event, events[2]) == ("PEER_DEAD", None)
