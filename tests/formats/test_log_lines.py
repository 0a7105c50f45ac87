"""Lines of output: what is shown of them, and what those mean that tell of trouble."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.catalog.log_patterns import CRITICAL, INFO, WARN, first_error_texts, log_patterns
from cockpit.catalog.reader import load
from cockpit.formats.log_buffer import LogLine, first_error, named_exception
from cockpit.formats.log_lines import LONGEST, shown_line, sign_of

SAMPLES = Path(os.environ.get("COCKPIT_SAMPLES") or Path(__file__).parents[3] / "shared" / "samples") / "logs"
CLASSES = {"hardware", "storage", "memory", "code", "network", "timeout", "launcher", "slurm"}
RANK = "[rank3]:[E810 03:04:10.94 ProcessGroupNCCL.cpp:683] [Rank 3] "
WATCHDOG = (
    f"{RANK}Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, "
    "NumelOut=80, Timeout(ms)=600000) ran for 600057 milliseconds before timing out."
)
LINES = {
    "xid": "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "ecc": "CUDA error: uncorrectable ECC error encountered",
    "gpu-lost": "RuntimeError: No CUDA GPUs: CUDA driver version is insufficient for CUDA runtime version",
    "fabric-manager": "CUDA error: system not yet initialized",
    "no-space": "OSError: [Errno 28] No space left on device: '/fsx/ckpt'",
    "quota": "cp: error writing 'x': Disk quota exceeded",
    "io-error": "OSError: [Errno 116] Stale file handle",
    "lustre": "LustreError: 11-0: fsx-OST0003-osc: operation ost_write to node 10.0.0.9 failed",
    "blocked": "INFO: task python3:4711 blocked for more than 120 seconds.",
    "dev-shm": "node-1:1:2 [0] NCCL WARN Error: failed to extend /dev/shm/nccl-aYb3cD to 33030532 bytes",
    "cuda-oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB.",
    "oom-kill": "slurmstepd: error: Detected 1 oom_kill event in StepId=18835145.batch. Some were OOM Killed.",
    "host-oom": "Out of memory: Killed process 4711 (python3) total-vm:1kB",
    "script-killed": "/var/spool/slurmd/job18/slurm_script: line 46: 2113061 Killed                  python3 train.py",
    "watchdog": WATCHDOG,
    "watchdog-status": f"{RANK}failure detected by watchdog at work sequence id: 78 PG status: last enqueued work: 79",
    "dump-signal": f"{RANK}Received a dump signal due to a collective timeout from  rank 1 and we will try our best",
    "watchdog-ended": f"{RANK}To avoid data inconsistency, we are taking the entire process down.",
    "desync": "     [1] finished collective #2, but didn't join collective #3 (count from 1)",
    "dist-backend": "torch.distributed.DistBackendError: NCCL error in: /pytorch/x.cpp:3690, unhandled system error",
    "gloo": "RuntimeError: [/pytorch/third_party/gloo/pair.cc:547] Connection closed by peer [10.0.0.11]:57000",
    "efa-error": "node-1:194:710 [0] cm() NCCL WARN NET/OFI Request 0x7f completed with error. RC: 103. Error: 4126",
    "plugin-unusable": "node-1:35115:35469 [2] NCCL WARN NET/OFI aws-ofi-nccl initialization failed",
    "net-socket": "node-1:35113:35467 [0] NCCL INFO Using network Socket",
    "peer-refused": "node-1:48:48 [1] socket.h:403 NCCL WARN Connect to 10.0.0.12<56821> failed : Connection refused",
    "kernel-fault": "CUDA error: an illegal memory access was encountered",
    "traceback": "[rank0]: Traceback (most recent call last):",
    "exception": "[rank0]: ValueError: not enough values",
    "port-in-use": "[E socket.cpp:462] [c10d] The server socket has failed to listen on any local network address.",
    "torchrun": "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "time-limit": "slurmstepd: error: *** JOB 42196 ON node-1 CANCELLED AT 2022-04-14T16:17:16 DUE TO TIME LIMIT ***",
    "node-failure": "srun: error: Node failure on node-37",
    "preempted": "slurmstepd: error: *** STEP 557341.0 ON n CANCELLED AT 2025-03-11T13:26:25 DUE TO PREEMPTION ***",
    "cancelled": "[2026-03-28T14:27:13.072] error: *** JOB 5 ON n CANCELLED AT 2026-03-28T14:27:13 DUE to SIGNAL 9",
    "no-step": "srun: error: Unable to create step for job 1930: Invalid generic resource (gres) specification",
    "task-ended": "srun: error: node-44: task 3: Exited with exit code 1",
    "stepd-error": "slurmstepd: error: couldn't chdir to `/x': No such file or directory",
}
ORDINARY = [
    "",
    "step 1200/500000 loss 1.83 grad norm 0.41 tokens/s 412,334",
    "node-1:35113:35467 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 32 nics)",
    "node-1:1:1 [0] NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v10 symbol.",
    "relError: 0.01",
    "no error so far",
    "validation Error rate 0.12",
]


@pytest.mark.parametrize("id_", LINES)
def test_what_a_line_means(id_: str) -> None:
    sign = sign_of(LINES[id_])
    assert sign is not None
    assert sign.id == id_


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_line_means_nothing(line: str) -> None:
    assert sign_of(line) is None


def test_an_xid_tells_what_its_number_means() -> None:
    lost, own = sign_of(LINES["xid"]), sign_of("NVRM: Xid (PCI:0000:53:00): 31, pid=41877, name=python3, MMU Fault")
    assert lost is not None
    assert own is not None
    assert (lost.severity, own.severity) == (CRITICAL, WARN)
    assert lost.title.startswith("Xid 79: ")


def test_the_catalogue_is_complete() -> None:
    sources = set(load("log_patterns")["sources"]) - {"as_of"}
    patterns = log_patterns()
    assert load("log_patterns")["sources"]["as_of"] == "2026-11"
    assert len({pattern.id for pattern in patterns}) == len(patterns)
    for pattern in patterns:
        assert pattern.severity in (CRITICAL, WARN, INFO), pattern.id
        assert pattern.class_ in CLASSES, pattern.id
        assert pattern.source in sources, pattern.id
        assert pattern.find, pattern.id
        assert all(len(text) >= 4 for text in pattern.find), pattern.id
        assert pattern.meaning.endswith("."), pattern.id
        assert pattern.next_step.endswith((".", "?")), pattern.id
    assert "Error:" not in first_error_texts()
    assert all("\n" not in text for text in first_error_texts())


@pytest.mark.samples
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples of logs here")
@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("dmesg_xid31_mmu_fault", None),  # an application's own
        ("efa_unresponsive_receiver_4126_torch", "efa-error"),
        ("nccl_connect_refused", "peer-refused"),
        ("nccl_init_efa_4node_no_gdr_g6e", None),
        ("nccl_init_p4d_1node_rank0", None),
        ("nccl_net_ib_error12", "net-ib"),
        ("nccl_plugin_init_failed_fallback_socket_p4d", "plugin-unusable"),
        ("slurm_gres_invalid", "no-step"),
        ("slurm_node_failure", "node-failure"),
        ("slurm_old_memory_limit", "oom-kill"),
        ("slurm_oom_kill_batch", "script-killed"),
        ("slurm_oom_kill_new_prefix", "oom-kill"),
        ("slurm_preemption", None),
        ("slurm_time_limit", "time-limit"),
        ("slurm_torchrun_port_in_use_cancelled", "port-in-use"),
        ("torch_cuda_out_of_memory", "traceback"),
        ("torch_desync_report_2rank", "watchdog"),
        ("torch_watchdog_8rank_order_mismatch", "watchdog"),
        ("torch_watchdog_checkpoint_enospc", "no-space"),
    ],
)
def test_the_first_error_of_real_logs(name: str, first: str | None) -> None:
    raw = (SAMPLES / f"{name}.txt").read_bytes().split(b"\n")
    lines = [LogLine(text, sign_of(text)) for text in map(shown_line, raw)]
    at = first_error(lines)
    sign = None if at is None else lines[at].sign
    assert (sign and sign.id) == first


def test_a_traceback_that_only_tells_of_others_is_no_first_error() -> None:
    texts = [
        "[rank0]: Traceback (most recent call last):",
        "[rank1]: Traceback (most recent call last):",
        '[rank0]:   File "train.py", line 3, in <module>',
        '[rank1]:   File "train.py", line 9, in <module>',
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited",
        "[rank1]: ValueError: bad batch",
    ]
    lines = [LogLine(text, sign_of(text)) for text in texts]
    assert first_error(lines) == 1
    named = named_exception(lines, 1)
    assert named is not None
    assert named.text == texts[5]


# What is shown.


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain", "plain"),
        (b"\r 10%|#   |\r 20%|##  |", " 20%|##  |"),
        (b"10%\r100%\r", "100%"),
        (b"windows\r", "windows"),
        (b"\x1b[32mINFO\x1b[0m ok\x1b[K", "INFO ok"),
        (b"\x1b]0;title\x07text", "text"),
        (b"a\tb", "a       b"),
        (b"caf\xe9", "caf\ufffd"),
        ("汉字".encode(), "汉字"),
        (b"\x00" * 4096 + b"end", "␀×4,096end"),
        (b"a\x00b", "a␀b"),
        (b"\x1b[2J\x1bPq", "␛Pq"),
    ],
)
def test_what_is_shown_of_a_line(raw: bytes, shown: str) -> None:
    assert shown_line(raw) == shown


@given(st.binary(max_size=400))
def test_whatever_comes_is_harmless(raw: bytes) -> None:
    text = shown_line(raw)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in text)
    sign_of(text)


def test_a_very_long_line_is_cut_and_says_so() -> None:
    text = shown_line(b"x" * (LONGEST + 5))
    assert text.endswith(" … 5 more characters in this line")
