# ruff: noqa: E501 - some lines are as long as the real ones
"""The rounds of a sweep as text: what is written to the keeper, what its lines mean; and the stand-in's output."""

from __future__ import annotations

import getopt
import json
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.demo import nccl_stand_in
from cockpit.demo.nccl_stand_in import Speeds, parse_arguments, whole_run
from cockpit.formats.nccl_tests import NcclReader
from cockpit.nccl.measured import Outcome, Trial
from cockpit.nccl.models import Judgement, NcclRow
from cockpit.nccl.rounds import (
    SweepDriver,
    allocation_of,
    hold_argv,
    keeper_argv,
    lost_nodes,
    outcome_of,
    sweep_request,
)
from cockpit.nccl.run import NcclRequest
from cockpit.nccl.shape import shape_of
from cockpit.nccl.sweep import Sweep, SweepOptions
from cockpit.nccl.sweep_kept import sweep_verdict
from cockpit.nccl.sweep_result import sweep_result
from cockpit.nccl.verdict import judge
from tests.formats import nccl_text as text

REQUEST = sweep_request(NcclRequest(nodes=("n1", "n2", "n3"), binary="/x/all_reduce_perf", partition="gpu"))


def printed(nodes: tuple[str, ...], speeds: Speeds) -> list[str]:
    asked = parse_arguments("all_reduce_perf", ["-b", "1G", "-e", "4G", "-f", "4"])
    return list(whole_run(asked, nodes, 8, speeds, debug=True))


def run_through(sweep: Sweep, speeds: Speeds, seen: list[tuple[Trial, NcclRow]]) -> list[bytes]:
    """Play the keeper: the lines of all steps of a round interleaved, then its end."""
    driver = SweepDriver(sweep, on_row=lambda trial, row: seen.append((trial, row)))
    written = [driver.begin()]
    while not driver.over:
        texts = {trial.number: printed(trial.nodes, speeds) for trial in sweep.open_trials}
        for at in range(max(map(len, texts.values()))):
            for number, lines in texts.items():
                if at < len(lines):
                    assert driver.feed(f"T{number}> 0: {lines[at]}".encode()) == b""
        for number in texts:
            driver.feed(f"T{number}> # cockpit-exit: 0".encode())
        driver.feed(b"T99999> 0: somebody else's")
        driver.feed(b"srun: noise without a mark \xff")
        written.append(driver.feed(b"# cockpit-round-done"))
    return written


def test_rounds_are_written_and_read_line_by_line() -> None:
    sweep, seen = Sweep(("n1", "n2", "n3")), list[tuple[Trial, NcclRow]]()
    written = run_through(sweep, Speeds(network={"n2": 0.5}), seen)
    assert written[0] == b"run 1 1 n1\nrun 2 1 n2\nrun 3 1 n3\ngo\n"
    assert written[-1] == b""
    assert len(seen) == 2 * sweep.jobs
    assert sweep_result(sweep).bad_nodes == ("n2",)


def test_a_broken_stream_blames_nobody() -> None:
    sweep, outcomes = Sweep(("n1", "n2", "n3")), list[Outcome]()
    driver = SweepDriver(sweep, on_outcome=lambda _, outcome: outcomes.append(outcome))
    driver.begin()
    driver.abandon("the connection ended")
    assert driver.over
    assert [outcome.failed for outcome in outcomes] == [False] * 3
    assert sweep_result(sweep).findings == ()


EXPIRED = (
    "srun: error: Slurm job 1 has expired",
    "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 1",
)
HUNG = (
    "srun: forcing job termination",
    "0: slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-30T14:14:57 ***",
    "srun: error: n1: tasks 0-1: Killed",
)


def play(driver: SweepDriver, lines: tuple[str, ...], code: int) -> None:
    """Every step of this round says this and ends so."""
    for trial in driver.sweep.open_trials:
        for line in lines:
            driver.feed(f"T{trial.number}> {line}".encode())
        driver.feed(f"T{trial.number}> # cockpit-exit: {code}".encode())
    driver.feed(b"# cockpit-round-done")


def test_a_job_that_somebody_cancelled_blames_nobody_and_is_no_whole_sweep() -> None:
    sweep = Sweep(("n1", "n2", "n3", "n4"), SweepOptions(alone=False))
    driver = SweepDriver(sweep)
    driver.begin()
    play(driver, (HUNG[1],), 143)
    assert sweep.rounds == 2
    play(driver, EXPIRED, 1)
    assert driver.over
    assert "ended" in driver.broken_off
    result = sweep_result(sweep, finished=not driver.broken_off)
    assert (result.bad_nodes, result.pairs_measured) == ((), 0)
    assert "all nodes are alike" not in result.summary
    assert sweep_verdict(result) is Judgement.INCOMPLETE


def test_a_step_that_hangs_until_its_time_is_up_is_the_nodes_doing() -> None:
    """nccl-tests' own time-out does not cover the making of the communicator: there a node hangs that is cut off."""
    for said in (HUNG, HUNG[2:]):  # which of them comes first is a matter of luck
        sweep = Sweep(("n1", "n2"), SweepOptions(alone=False))
        driver = SweepDriver(sweep)
        driver.begin()
        play(driver, said, 124)
        (outcome,) = sweep.measured.outcomes.values()
        assert (outcome.failed, outcome.busbw_gbs) == (True, None)
        assert "hung" in outcome.text


def test_nodes_that_are_down_are_lost_and_their_partners_excused() -> None:
    sweep = Sweep(("n1", "n2", "n3"), SweepOptions(alone=False))
    driver = SweepDriver(sweep, gone=lambda: {"n1": "is down"})
    driver.begin()
    for trial in sweep.open_trials:
        driver.feed(f"T{trial.number}> srun: error: Unable to create step for job 5: Requested node is down".encode())
        driver.feed(f"T{trial.number}> # cockpit-exit: 1".encode())
    driver.feed(b"# cockpit-round-done")
    assert set(sweep.measured.lost) == {"n1"}
    failed = [outcome.failed for trial, outcome in sweep.measured.outcomes.items() if "n1" in trial.nodes]
    assert not any(failed)


@pytest.mark.parametrize(
    ("content", "code", "busbw", "failed"),
    [
        (text.whole(444), 0, 444, False),
        (text.whole(444, wrong="3"), 7, None, True),
        (text.whole(444, footer=""), 0, None, False),
        (text.whole(444, footer=""), 1, None, True),
        (text.whole(444, size=2**20), 0, None, False),
        (text.header() + "n: Test CUDA failure c.cu:1 'out of memory'\n", 2, None, True),
        (text.header() + "slurmstepd: error: *** STEP 1.0 ON n CANCELLED AT 2026-11-04T03:00:00 ***\n", 1, None, False),
        (text.header() + "srun: error: Node failure on n2\n", 1, None, False),
    ],
)
def test_what_a_step_says_of_its_nodes(content: str, code: int, busbw: float | None, failed: bool) -> None:
    outcome = outcome_of(NcclReader().feed_all(content.splitlines()).runs()[-1], code)
    assert (outcome.busbw_gbs, outcome.failed) == (busbw, failed)


def test_a_step_without_any_output() -> None:
    assert outcome_of(None, None) == Outcome(text="no output")
    assert outcome_of(None, 1).failed


def test_the_nodes_that_slurm_lost() -> None:
    run = NcclReader().feed_all([text.header(), "srun: error: Node failure on gpu-[1-2]."]).runs()[-1]
    assert lost_nodes(run) == ("gpu-1", "gpu-2")
    assert lost_nodes(None) == ()
    odd = NcclReader().feed_all([text.header(), "srun: error: Node failure on gpu-[1"]).runs()[-1]
    assert lost_nodes(odd) == ()


def test_one_job_holds_the_nodes() -> None:
    argv = hold_argv(REQUEST, "cockpit-sweep-1", 20)
    assert argv[:3] == ("salloc", "--no-shell", "--no-kill")
    assert {"--nodelist=n[1-3]", "--time=20", "--partition=gpu", "--exclusive", "--immediate=15"} <= set(argv)
    assert allocation_of("salloc: Pending job allocation 12\nsalloc: Granted job allocation 12\n") == 12
    assert allocation_of("salloc: error: Unable to allocate resources: Immediate execution impossible") is None
    with pytest.raises(ValueError, match="no name of a sweep"):
        hold_argv(REQUEST, "train", 20)


def test_the_keeper_is_a_shell_program_that_cancels_its_job(tmp_path: Path) -> None:
    for name, says in (("srun", 'echo "ran $*"'), ("scancel", f'echo "$*" >"{tmp_path}/cancelled"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{says}\n")
        (tmp_path / name).chmod(0o755)
    argv = keeper_argv(REQUEST, 7, slurm_dir=str(tmp_path))
    done = subprocess.run(argv, input=b"run 4 2 n1,n2\ngo\n", capture_output=True, timeout=20, check=False)
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("T4> ran --jobid=7 --overlap --nodelist=n1,n2 --nodes=2 --ntasks=16 ")
    assert any(
        line.endswith("/x/all_reduce_perf -b 1073741824 -e 4294967296 -f 4 -g 1 -c 1 -w 5 -n 20 -T 300")
        for line in lines
    )
    assert lines[-2:] == ["T4> # cockpit-exit: 0", "# cockpit-round-done"]
    assert (tmp_path / "cancelled").read_text() == "7\n"


# -- the stand-in


def test_the_stand_in_prints_what_the_reader_reads() -> None:
    lines = printed(("gpu-1", "gpu-2"), Speeds())
    (run,) = NcclReader().feed_all(lines).runs()
    verdict = judge(run, shape_of(run))
    assert (verdict.word, run.hosts, run.evidence.transport) == (Judgement.PASS, ("gpu-1", "gpu-2"), "efa")
    assert verdict.busbw_large_gbs == pytest.approx(470, rel=0.02)
    slow = NcclReader().feed_all(printed(("gpu-1", "gpu-2"), Speeds(sockets=True))).runs()[0]
    assert "socket_fallback" in judge(slow, shape_of(slow)).flags
    wrong = NcclReader().feed_all(printed(("gpu-1",), Speeds(wrong={"gpu-1": 5}))).runs()[0]
    assert judge(wrong, shape_of(wrong)).wrong == 20


def test_the_stand_ins_columns_are_those_of_the_real_one() -> None:
    head = next(line for line in printed(("a", "b"), Speeds()) if "busbw" in line)
    assert head == (
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong "
    )
    row = nccl_stand_in.table_row(parse_arguments("all_reduce_perf", []), 2**31, [828, 830], 16)
    assert row.startswith("  2147483648     536870912     float     sum      -1  ")
    assert len(row) == len(
        "  2147483648     536870912     float     sum      -1  4866.61  441.27  827.38       0  4854.84  442.34  829.38       0"
    )


def test_the_stand_in_as_a_program(tmp_path: Path) -> None:
    speeds = tmp_path / "speeds.json"
    speeds.write_text(json.dumps({"failing": ["gpu-2"]}))
    env = {"NCCL_STAND_IN": str(speeds), "NCCL_STAND_IN_NAME": "all_gather_perf", "SLURM_NTASKS": "2"}

    def task(**more: str) -> subprocess.CompletedProcess[bytes]:
        argv = [sys.executable, "-I", "-S", nccl_stand_in.__file__, "-b", "1G", "-e", "1G"]
        return subprocess.run(argv, env={**env, **more}, capture_output=True, timeout=20, check=False)

    good = task(SLURM_STEP_NODELIST="gpu-[1,3]", SLURM_PROCID="0", SLURMD_NODENAME="gpu-1")
    assert good.returncode == 0
    assert NcclReader().feed_all(good.stdout.splitlines()).runs()[0].collective == "all_gather"
    assert task(SLURM_STEP_NODELIST="gpu-[1,3]", SLURM_PROCID="1").stdout == b""
    bad = task(SLURM_STEP_NODELIST="gpu-[1-2]", SLURM_PROCID="1", SLURMD_NODENAME="gpu-2", SLURM_LOCALID="0")
    assert bad.returncode == 2
    assert b"gpu-2: Test CUDA failure" in bad.stdout
    with pytest.raises(getopt.GetoptError):
        parse_arguments("all_reduce_perf", ["--nonsense"])
