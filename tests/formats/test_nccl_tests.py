# ruff: noqa: E501 - the lines are as long as the real ones
"""Every layout of nccl-tests' output, the launchers' labels, rows that log lines split, and hostile text."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.nccl_tests import NcclReader
from cockpit.nccl.models import NcclRow, NcclRun
from tests.formats import nccl_text as text


def read(content: str | bytes) -> NcclRun:
    runs = NcclReader().feed_all(content.splitlines()).runs()
    assert len(runs) == 1
    return runs[0]


def only_row(content: str) -> NcclRow:
    (row,) = read(content).rows
    return row


def test_2017_counts_in_milliseconds_and_forgets_the_hash_of_its_footer() -> None:
    run = read(text.V1_2017)
    row = run.rows[-1]
    assert (row.size_bytes, row.count, row.redop, row.root) == (2**30, 2**28, "sum", None)
    assert row.out_of_place is not None
    assert row.out_of_place.time_us == 40_000
    assert (row.out_of_place.busbw_gbs, row.out_of_place.error, row.wrong) == (46.98, 2e-07, None)
    assert run.complete
    assert run.footer is not None
    assert run.footer.average_gbs == 46.4


@pytest.mark.parametrize(
    ("content", "redop", "root", "busbw"),
    [
        (text.OLD_ALL_REDUCE, "sum", None, 230.81),
        (text.OLD_BROADCAST, "", 0, 0.0),
        (text.OLD_REDUCE, "sum", 3, 27.47),
        (text.OLD_ALL_GATHER, "", None, 2.37),
        (text.HEAD + text.ROW_2G, "sum", -1, 443.72),
        (text.ROW_2G, "sum", -1, 443.72),  # somebody cut the head off
        (text.WITH_STAMP, "sum", -1, 440.96),
        (text.PER_ITERATION, "sum", -1, 440.96),
        (text.PER_ITERATION.splitlines()[-1], "sum", -1, 440.96),
        (text.CPU_TIME, "sum", -1, 440.96),
        (text.ALLTOALL, "none", -1, 83.89),
        (text.EXPONENT, "sum", -1, 2.68),
    ],
)
def test_every_layout(content: str, redop: str, root: int | None, busbw: float) -> None:
    row = only_row(content)
    assert (row.redop, row.root, row.busbw_gbs) == (redop, root, busbw)


def test_columns_that_come_with_options() -> None:
    assert only_row(text.WITH_STAMP).stamp == "2026-11-04 03:12:07"
    half = only_row(text.PER_ITERATION).in_place
    assert half is not None
    assert half.iterations is not None
    assert (half.iterations.min_us, half.iterations.p99_us, half.iterations.cv_pct) == (4550.0, 4599.0, 0.33)
    assert only_row(text.EXPONENT).wrong == 1_500_000
    row = only_row(text.ALLTOALL)
    assert row.in_place is not None
    assert row.in_place.wrong is None  # by design of alltoall
    assert row.wrong == 0


def test_header_devices_versions_and_footer() -> None:
    run = read(text.whole(log=text.EFA_LOG))
    assert run.collective == "all_reduce"
    assert run.parameters["maxBytes"] == 2**31
    assert run.parameters["warmup iters"] == 5
    assert run.parameters["step factor"] == 2
    assert run.hosts == text.HOSTS
    assert len(run.ranks) == 16
    assert run.ranks[9].gpu == "NVIDIA H100 80GB HBM3"
    assert (run.versions.nccl_tests, run.versions.nccl, run.versions.plugin) == ("2.17.9", "2.29.3", "1.18.0")
    assert run.complete
    evidence = run.evidence
    assert (evidence.transport, evidence.nics, evidence.gdr, evidence.nvls) == ("efa", 32, True, True)
    assert (evidence.ranks, evidence.nodes, evidence.protocol) == (16, 2, "RDMA")


@pytest.mark.parametrize("label", ["0: ", " 0: ", "[1,0]<stdout>:", "[1,0]<stderr>:", "[default0]:", "\x1b[32m0: "])
def test_labels_of_launchers(label: str) -> None:
    plain = read(text.whole())
    labelled = read("".join(f"{label}{line}\n" for line in text.whole().splitlines()))
    assert [row.busbw_gbs for row in labelled.rows] == [row.busbw_gbs for row in plain.rows]
    assert labelled.footer == plain.footer
    assert len(labelled.ranks) == 16
    assert labelled.copies == 1


LOG = "node-1:25:25 [0] NCCL INFO Launch mode Parallel"


@pytest.mark.parametrize("cut", [58, 68, 76, 84, 92])
@pytest.mark.parametrize("label", ["", "0: "])
def test_a_row_that_a_log_line_splits_is_put_together(cut: int, label: str) -> None:
    row = text.ROW_2G.rstrip("\n")
    while not row[cut].isspace():
        cut -= 1
    lines = [f"{label}{row[:cut]}{LOG}", f"{label}{LOG}", f"{label}{row[cut:]}"]
    reader = NcclReader()
    completed = [reader.feed(line) for line in (*text.HEAD.splitlines(), *lines)]
    assert [len(rows) for rows in completed[-3:]] == [0, 0, 1]
    assert reader.rows[0].busbw_gbs == 443.72
    assert reader.rows[0].wrong == 0


@pytest.mark.parametrize("head", [text.HEAD, ""])
@pytest.mark.parametrize("row", [text.ROW_2G, text.ALLTOALL, text.EXPONENT], ids=["sum", "none", "exponent"])
def test_a_row_is_read_wherever_srun_unbuffered_cuts_it(row: str, head: str) -> None:
    line = row.rstrip("\n")
    whole = only_row(f"{text.HEAD}{line}\n")
    for cut in range(1, len(line) - len(line.split()[-1]) + 1):
        lines = [*head.splitlines(), text.ROW_8, line[:cut], line[cut:], row, *text.FOOTER.splitlines()]
        read_again = read("".join("0: " + each.rstrip("\n") + "\n" for each in lines)).rows
        assert [replace(each, task="") for each in read_again[1:]] == [whole, whole], line[:cut]


def test_a_number_by_itself_is_no_beginning_of_the_row_behind_it() -> None:
    content = f"0: 0\n0: {text.ROW_8}0: 12 34\n0: {text.ROW_2G}0: {text.FOOTER}"
    assert [row.size_bytes for row in read(text.HEAD + content).rows] == [8, 2**31]


def test_a_number_glued_to_a_host_name_is_given_back() -> None:
    halves = "  2147483648     536870912     float     sum      -1   9074.5  236.65  443.72    "
    for number, host, wrong in (
        ("0", "node-1", 0),
        ("7", "ip-10-0-0-1", 7),
        ("0", "10-0-0-1", 0),
        ("N/A", "node-1", None),
    ):
        run = read(f"{halves}{number}{host}:25:25 [0] NCCL INFO x\n   9108.5  235.77  442.06      0\n")
        half = run.rows[0].out_of_place
        assert half is not None
        assert half.wrong == wrong


def test_rows_come_as_they_are_printed() -> None:
    reader, seen = NcclReader(), []
    for line in text.whole().splitlines():
        seen += [row.size_bytes for row in reader.feed(line)]
        runs = reader.runs()
        assert [row.size_bytes for row in (runs[0].rows if runs else ())] == seen
    assert seen == [8, 2**31]


def test_half_a_row_counts_only_at_the_end() -> None:
    reader = NcclReader()
    half = text.ROW_2G[:86]
    assert reader.feed(half) == ()
    assert not reader.runs() or not reader.runs()[0].rows
    (row,) = reader.close()
    assert (row.busbw_gbs, row.in_place) == (443.72, None)


def test_text_that_breaks_off_is_not_complete() -> None:
    lines = text.whole().splitlines()
    for end in range(1, len(lines) - 1):
        runs = NcclReader().feed_all(lines[:end]).runs()
        assert all(not run.complete for run in runs)
    assert NcclReader().feed_all([]).runs() == ()


def test_copies_without_mpi() -> None:
    one = text.header() + text.device_list(1, 1) + text.HEAD + text.row(2**20, 0.0, 2) + text.row(2**21, 0.0, 2)
    lines = one.splitlines()
    both = [line for line in lines for _ in range(2)]
    assert read("\n".join(both)).copies == 2
    labelled = [f"{task}: {line}" for line in lines for task in (0, 1, 2)]
    assert read("\n".join(labelled)).copies == 3


def test_sizes_that_repeat_in_cycles_are_no_copies() -> None:
    cycle = text.row(2**30, 440) + text.row(2**31, 444)
    assert read(text.HEAD + cycle * 3).copies == 1
    mixed = text.row(8, 0) + text.row(16, 0) + text.row(32, 0) + text.row(8, 0) + text.row(64, 0) + text.row(16, 0)
    assert read(text.HEAD + mixed).copies == 2


def test_several_runs_in_one_text() -> None:
    runs = NcclReader().feed_all((text.whole(444) + text.whole(400)).splitlines()).runs()
    assert [run.rows[-1].busbw_gbs for run in runs] == [444, 400]
    assert all(run.complete for run in runs)
    no_header = (text.HEAD + text.ROW_2G + text.FOOTER) * 2
    assert len(NcclReader().feed_all(no_header.splitlines()).runs()) == 2


def test_a_run_after_one_that_failed_is_a_run_of_its_own() -> None:
    failed = (
        text.header()
        + "node-1: Test CUDA failure common.cu:941 'out of memory'\n .. node-1 pid 1: Test failure common.cu:8\n"
    )
    runs = NcclReader().feed_all((failed + text.whole()).splitlines()).runs()
    assert [(len(run.errors), run.complete) for run in runs] == [(1, False), (0, True)]


@pytest.mark.parametrize(
    ("line", "kind", "cause"),
    [
        ("node-1: Test NCCL failure all_reduce.cu:44 'remote process exited or there was a network error / '", "nccl", "another rank"),
        ("node-1: Test CUDA failure common.cu:941 'system not yet initialized'", "cuda", "fabricmanager"),
        ("node-1: Test timeout (300s) common.cu:100", "timeout", ""),
        (" .. node-1 pid 17: Test failure common.cu:404", "data", ""),
        (".. node-1: Test failure common.cu:404", "data", ""),
        ("Invalid number of GPUs: 16 requested but only 8 were found.", "launch", "more GPUs"),
        ("srun: error: node-1: tasks 0-7: Killed", "launch", "killed"),
        ("slurmstepd: error: *** STEP 12.0 ON node-1 CANCELLED AT 2026-11-04T03:00:00 DUE TO TIME LIMIT ***", "timeout", "limit"),
        ("slurmstepd: error: *** JOB 12 ON node-1 CANCELLED AT 2026-11-04T03:00:00 ***", "cancelled", "cancelled"),
        ("slurmstepd: error: execve(): all_reduce_perf: No such file or directory", "launch", "not there"),
        ("slurmstepd: error: execve(): /fsx/all_reduce_perf: Permission denied", "launch", "may not be run"),
        ("slurmstepd: error: pyxis:     [ERROR] URL https://x/v2/ returned error code: 401 Unauthorized", "launch", "container"),
        ("slurmstepd: error: pyxis: failed to import docker image", "launch", "container"),
        ("srun: error: Task launch for StepId=12.0 failed on node gpu-2: Communication connection failure", "launch", "on that node"),
        ("srun: error: gpu-[1-2]: tasks 0-15: Out Of Memory", "launch", "memory limit"),
        ("srun: error: Slurm job 1 has expired", "cancelled", "has ended"),
        ("srun: error: gpu-2: tasks 8-15: Exited with exit code 127", "launch", ""),
        ("all_reduce_perf: error while loading shared libraries: libmpi.so.40: cannot open", "launch", "library"),
        ("srun: error: node-1: task 3: Exited with exit code 7", "data", ""),
        ("# error: Cuda failure 'out of memory'", "nccl", "too large"),
    ],
)  # fmt: skip
def test_failures(line: str, kind: str, cause: str) -> None:
    run = read(text.header() + f"0: {line}\n")
    assert [error.kind for error in run.errors] == [kind]
    assert cause in run.errors[0].cause
    assert not run.complete


def test_the_warning_of_nccl_explains_the_error_below_it() -> None:
    warning = "\n[2026-03-12 14:17:56] n:1:1 [0] enqueue.cc:1694 NCCL WARN Cuda failure 'named symbol not found'\n"
    run = read(text.header() + warning + "n: Test NCCL failure a.cu:44 'unhandled cuda error / '\n")
    assert "architecture" in run.errors[0].cause
    harmless = "n:1:1 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]\n"
    assert read(text.header() + harmless).evidence.warnings == ()


def test_a_chain_below_a_real_failure_is_no_wrong_data() -> None:
    call = "n: Test CUDA failure c.cu:9 'out of memory'\n"
    assert [error.kind for error in read(call + " .. n pid 1: Test failure c.cu:8\n").errors] == ["cuda"]


@pytest.mark.parametrize(
    ("lines", "transport"),
    [
        (["NET/OFI Selected Provider is efa", "Using network AWS Libfabric"], "efa"),
        (["Using network Socket"], "socket"),
        (["Assigned NET plugin Socket to comm"], "socket"),
        (["Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0"], "socket"),
        (["Using network Libfabric", "Using network Socket"], "mixed"),
        (["Using network IB"], "ib"),
        (["NET/OFI Selected provider is tcp, fabric is x (found 1 nics)", "Using network Libfabric"], "tcp"),
        (["Bootstrap: Using ens5:10.0.0.1<0>"], ""),
    ],
)
def test_transport_is_told_by_log_lines(lines: list[str], transport: str) -> None:
    log = "".join(f"n:1:1 [0] NCCL INFO {line}\n" for line in lines)
    evidence = read(text.whole(log=log)).evidence
    assert evidence.transport == transport
    assert not transport or evidence.transport_line


def test_settings_that_sound_like_secrets_are_hidden() -> None:
    log = "n:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\nn:1:1 [0] NCCL INFO NCCL_AUTH_TOKEN set by environment to abc\n"
    settings = read(text.whole(log=log)).evidence.settings
    assert settings == {"NCCL_ALGO": "Ring", "NCCL_AUTH_TOKEN": "(hidden)"}


def test_hostile_names_are_made_harmless() -> None:
    evil = "#  Rank  0 Group  0 Pid      1 on evil\x1b]52;c;eA==\x07host device  0 [0000:53:00] GPU\x07\u202e\x9b31m\n"
    run = read(text.header() + evil + "ev\x1bil: Test CUDA failure a.cu:1 'b\x07ad\u202e'\n")
    shown = " ".join(
        [*(rank.gpu + rank.host for rank in run.ranks), *(error.text + error.host for error in run.errors)]
    )
    assert shown
    assert all(char.isprintable() for char in shown)


@pytest.mark.parametrize(
    "line",
    [
        "1" * 5000 + " 2 float sum -1 " + "9" * 400 + " 1 1 0 1 1 1 0",
        "8 2 float sum -1 nan inf -nan N/A 1e999 -1e999 0 0",
        "# Avg bus bandwidth    : nan",
        "# Out of bounds values : " + "9" * 400,
        "#" * 200_000,
        "8 2 float" * 50_000,
        "\x00\xff\x1b" * 5000,
        "[1,0]<stdout>:" * 10_000,
    ],
)
def test_hostile_lines_break_nothing(line: str) -> None:
    run = NcclReader().feed_all([line, *text.whole().splitlines()]).runs()[-1]
    assert run.rows[-1].size_bytes == 2**31
    assert run.complete


@given(st.lists(st.binary(max_size=200), max_size=30))
def test_any_bytes_can_be_fed(lines: list[bytes]) -> None:
    reader = NcclReader()
    for line in lines:
        reader.feed(line)
    reader.close()
    assert len(reader.runs()) <= len(lines) + 1


def test_memory_is_bounded() -> None:
    reader, row = NcclReader(), text.ROW_2G.encode()
    log = b"node-1:25:25 [0] NCCL WARN something " + b"x" * 300
    tracemalloc.start()
    for at in range(30_000):
        reader.feed(row)
        reader.feed(b"task%d: node-%d: Test CUDA failure a.cu:1 'x%d'" % (at, at, at))
        reader.feed(b"%d: 8 2 float sum -1" % at)
        reader.feed(log)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    run = reader.runs()[0]
    assert len(run.rows) == 20_000
    assert run.rows_dropped > 0
    assert len(run.errors) <= 50
    assert peak < 60 * 2**20
