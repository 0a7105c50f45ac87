"""Every public sample of nccl-tests' output reads as the index beside it says, by the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cockpit.cli import main
from tests.formats.slurm_samples import SAMPLES as SLURM_SAMPLES

SAMPLES = SLURM_SAMPLES.parent / "nccl"
pytestmark = [
    pytest.mark.samples,
    pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples of nccl-tests' output here"),
]

# file: verdict, GB/s at the largest size from 1 GiB on, average as printed, words that a reason must hold
EXPECTED: dict[str, tuple[str, float | None, float | None, tuple[str, ...]]] = {
    "256gpu_allreduce_oldformat_NA_excerpt": ("incomplete", 72.73, None, ("no footer", "not checked")),
    "a100_1node_allreduce_8gpu": ("pass", 231.72, 210.99, ()),
    "a100_2node_allreduce_pairwise": ("unjudged", 182.8, 150.209, ("another network",)),
    "allgather_oldformat_no_redop_column": ("unjudged", None, 6.6972, ("too small",)),
    "alltoall_2node_efa_inplace_NA_excerpt": ("incomplete", None, None, ("too small",)),
    "alltoall_2node_slow_inplace_NA_excerpt": ("incomplete", None, None, ("falls with size", "in place and out of")),
    "bfloat16_redop_none_excerpt": ("incomplete", None, None, ("too small",)),
    "fail_2node_efa_missing_gpu_arch_with_info": ("fail", None, None, ("architecture", "over EFA")),
    "fail_fabricmanager_down_1node": ("fail", None, None, ("nvidia-fabricmanager",)),
    "fail_internal_error_mpirun_tag_no_pid": ("fail", None, None, ("NCCL_ALGO or NCCL_PROTO",)),
    "fail_mpirun_not_enough_slots": ("fail", None, None, ("did not start", "no node is at fault")),
    "fail_unhandled_cuda_error_after_header": ("fail", None, None, ("unhandled cuda error",)),
    "fail_wrong_data_sendrecv_exit7": ("fail", None, None, ("wrong data on node-a, node-b",)),
    "h100_1node_allreduce_g8_singleprocess": ("pass", 476.53, 439.369, ()),
    "h100_2node_allreduce_nocheck_NA_srun_label": ("fail", 155.57, 142.735, ("not checked", "something is broken")),
    "h100_2node_allreduce_ring_nocheck_NA_srun_label": ("fail", 89.9, 85.5294, ("ring", "not checked")),
    "header_v2.19.6_2node_b200_truncated": ("incomplete", None, None, ("before the first row",)),
    "header_v2.20.0_2node_gb10_truncated": ("incomplete", None, None, ("no footer after the row of 64 KiB",)),
    "linear_step_sizes_excerpt": ("unjudged", None, 84.8558, ("too small",)),
    "p3dn_2node_allreduce_oldformat_excerpt": ("incomplete", None, None, ("too small",)),
    "p4d_1to4node_allreduce_oldformat_rows": ("incomplete", None, None, ("1: 230.8, 2: 57.2, 3: 31.8, 4: 29.6",)),
    "p4d_2node_allreduce_oldformat_mpirun_tag_with_info": ("warn", 43.81, 11.2432, ("over EFA", "NCCL 2.9.9")),
    "p4de_2node_allreduce_srun_label": ("incomplete", 78.33, None, ("107 % of the 73",)),
    "p5_1node_allreduce_mpirun_tag": ("pass", 483.35, 156.742, ()),
    "p5_2node_allreduce_mpirun_tag_excerpt": ("pass", 437.89, 52.9753, ("dots",)),
    "p5_2node_allreduce_srun_label": ("incomplete", 487.26, None, ("no footer", "113 % of the 430")),
    "p5en_multinode_allreduce_elided": ("pass", 369.86, 84.0569, ("16 x p5en",)),
    "p6b200_2node_allreduce_small_sizes_excerpt": ("incomplete", None, None, ("too small",)),
    "p6b300_2node_allreduce_rows_healthy_vs_socket": ("fail", 829.41, None, ("row 3", "socket fall-back")),
    "two_copies_interleaved_no_mpi_excerpt": ("unjudged", None, None, ("not one job", "MPI")),
    "v100_2node_broadcast_oldformat_root_NA_with_warn": ("incomplete", None, None, ("not checked",)),
    "v2.18.0_2rank_socket_mpirun_tag_stderr_noise": ("unjudged", None, 1.57614, ("share one GPU", "too small")),
}


def reading(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["nccl", "read", str(SAMPLES / f"{name}.txt"), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", EXPECTED)
def test_reads_as_the_index_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    verdict, busbw, average, words = EXPECTED[name]
    code, found = reading(name, capsys)
    assert (found["verdict"], found["busbw_large_gbs"], found["average_busbw_gbs"]) == (verdict, busbw, average)
    assert code == (1 if verdict == "fail" else 0)
    told = " | ".join(found["reasons"])
    assert all(word in told for word in words), told


def test_every_sample_is_expected() -> None:
    assert {path.stem for path in SAMPLES.glob("*.txt")} == set(EXPECTED)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("p4d_2node_allreduce_oldformat_mpirun_tag_with_info", {"collective": "all_reduce", "ranks": 16, "nodes": 2}),
        ("p5en_multinode_allreduce_elided", {"ranks": 128, "nodes": 16}),
        ("v100_2node_broadcast_oldformat_root_NA_with_warn", {"collective": "broadcast", "nodes": 2, "warnings": []}),
        ("fail_wrong_data_sendrecv_exit7", {"collective": "sendrecv", "exit_code": 7}),
        ("two_copies_interleaved_no_mpi_excerpt", {"copies": 2}),
        ("fail_2node_efa_missing_gpu_arch_with_info", {"instance_type": "g7e.8xlarge", "rows": []}),
    ],
)
def test_what_else_the_index_tells(name: str, values: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    _, found = reading(name, capsys)
    assert {key: found[key] for key in values} == values


def test_the_network_of_the_old_p4d_run_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = reading("p4d_2node_allreduce_oldformat_mpirun_tag_with_info", capsys)
    assert found["transport"]["kind"] == "efa"
    assert "Selected Provider is efa" in found["transport"]["proof"]
    assert found["transport"]["gpudirect"] is True
