"""The first cause of a log, victims told from causes; real logs read as the notes beside them say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli import main
from cockpit.diagnosis.log_cause import explain
from cockpit.formats.log_digest import digest_of

SAMPLES = Path(os.environ.get("COCKPIT_SAMPLES") or Path(__file__).parents[3] / "shared" / "samples") / "logs"
WATCHDOG = (
    "[rank{rank}]:[E810 {at}.1 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for 600096 ms.\n"
)


def cause(text: str) -> tuple[str, str] | None:
    found = explain(digest_of([text.encode()])).cause
    return None if found is None else (found.id, found.class_)


def watchdog(rank: int, seq: int = 78, op: str = "ALLREDUCE", numel: int = 80, at: str = "03:04:11") -> str:
    return WATCHDOG.format(rank=rank, seq=seq, op=op, numel=numel, at=at)


def test_storage_counts_more_than_a_time_out_that_follows() -> None:
    assert cause(watchdog(3) + "OSError: [Errno 28] No space left on device\n") == ("no-space", "storage")


def test_what_breaks_more_than_a_time_out_later_is_no_cause() -> None:
    late = "2026-08-10 04:30:00 OSError: [Errno 28] No space left on device\n"
    assert cause(watchdog(3) + late) == ("watchdog", "timeout")
    assert cause(watchdog(3) + late.replace("04:30", "03:10")) == ("no-space", "storage")


def test_an_exception_that_tells_only_of_others_is_a_victim() -> None:
    text = (
        "[rank0]: Traceback (most recent call last):\n"
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited\n"
        "[rank1]: Traceback (most recent call last):\n"
        "[rank1]: ValueError: bad batch\n"
    )
    found = explain(digest_of([text.encode()]))
    assert found.cause is not None
    assert (found.cause.id, found.cause.ranks, found.cause.line) == ("traceback", (1,), 3)
    assert "ValueError: bad batch" in found.cause.sentence
    assert [(victim.id, victim.ranks) for victim in found.victims] == [("dist-backend", (0,))]


def test_ranks_that_called_another_operation_are_named() -> None:
    text = "".join(watchdog(rank) for rank in (0, 1, 3)) + watchdog(2, op="BROADCAST")
    found = explain(digest_of([text.encode()])).cause
    assert found is not None
    assert (found.id, found.ranks) == ("collective-mismatch", (2,))
    assert "BROADCAST of 80 as number 78; the others ALLREDUCE" in found.sentence


def test_only_a_cancel_is_told_as_what_it_is() -> None:
    assert cause("slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2026-03-28T14:27:13 ***\n") == ("cancelled", "slurm")
    assert cause("step 1\nstep 2\n") is None


def test_the_application_xids_are_the_program_and_the_others_the_hardware() -> None:
    line = "NVRM: Xid (PCI:0000:53:00): {}, pid=1, name=python3\n"
    assert cause(line.format(31)) == ("xid", "code")
    assert cause(line.format(31) + line.format(79)) == ("xid", "hardware")


# The command.


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["explain", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("fine\nDisk quota exceeded\n")
    code, told = run(capsys, str(log))
    assert (code, told["cause"]["class"], told["findings"][0]["line"]) == (1, "storage", 2)
    log.write_text("fine\n")
    code, told = run(capsys, str(log))
    assert (code, told["cause"], told["findings"], told["victims"]) == (0, None, [], [])
    assert main(["explain", str(log)]) == 0
    assert "no known sign of trouble in 1 line" in capsys.readouterr().out
    assert main(["explain", str(tmp_path / "none")]) == 2
    assert main(["explain", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


def test_standard_input_and_hostile_bytes() -> None:
    argv = [sys.executable, "-m", "cockpit", "explain", "-"]
    raw = b"\x1b[2J\xff\x00 Disk quota exceeded \xe2\x80\xae\n" + b"\x00" * 100_000
    done = subprocess.run(argv, input=raw, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert b"\x1b" not in done.stdout
    assert "\u202e" not in done.stdout.decode()


@pytest.mark.samples
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples of logs here")
@pytest.mark.parametrize(
    ("name", "id_", "class_", "words"),
    [
        ("efa_unresponsive_receiver_4126_torch", "efa-error", "network", "4126"),
        ("nccl_plugin_init_failed_fallback_socket_p4d", "plugin-unusable", "network", "slow, not hung"),
        ("nccl_init_efa_4node_no_gdr_g6e", None, None, ""),
        ("nccl_init_p4d_1node_rank0", None, None, ""),
        ("torch_watchdog_8rank_order_mismatch", "collective-mismatch", "code", "ranks 0,4 never called"),
        ("torch_watchdog_checkpoint_enospc", "no-space", "storage", "no space left"),
        ("torch_desync_report_2rank", "desync", "code", "rank 1 finished"),
        ("torch_cuda_out_of_memory", "cuda-oom", "memory", "rank 3"),
        ("nccl_net_ib_error12", "net-ib", "network", "never meant to be used"),
        ("nccl_connect_refused", "peer-refused", "network", "10.0.0.12<56821>"),
        ("dmesg_xid31_mmu_fault", "xid", "code", "Xid 31"),
        ("slurm_time_limit", "time-limit", "slurm", "time limit"),
        ("slurm_preemption", "preempted", "slurm", "another job"),
        ("slurm_node_failure", "node-failure", "hardware", "node-37 (node-17 only reported it)"),
        ("slurm_oom_kill_batch", "oom-kill", "memory", "18835145.batch"),
        ("slurm_oom_kill_new_prefix", "oom-kill", "memory", "10483536.batch"),
        ("slurm_old_memory_limit", "oom-kill", "memory", ""),
        ("slurm_torchrun_port_in_use_cancelled", "port-in-use", "launcher", "29500"),
        ("slurm_gres_invalid", "no-step", "slurm", "generic resource"),
    ],
)
def test_real_logs(
    name: str, id_: str | None, class_: str | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = run(capsys, str(SAMPLES / f"{name}.txt"))
    found = told["cause"] or {"id": None, "class": None, "sentence": ""}
    assert (found["id"], found["class"]) == (id_, class_)
    assert words in found["sentence"]
    assert code == (1 if id_ else 0)
    if name == "torch_watchdog_8rank_order_mismatch":
        assert found["ranks"] == [0, 4]
        assert {victim["id"]: victim["ranks"] for victim in told["victims"]}["torchrun-root"] == [7]
