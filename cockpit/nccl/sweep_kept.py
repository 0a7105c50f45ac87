"""What is kept of a sweep in the history: its findings as reasons, its pairs; it is no measure for later runs."""

from __future__ import annotations

from cockpit.kept_lines import run_id
from cockpit.nccl.history import HistoryRun
from cockpit.nccl.models import Judgement, Shape
from cockpit.nccl.run import NcclRequest
from cockpit.nccl.sweep import Sweep
from cockpit.nccl.sweep_result import SweepResult, pair_matrix

_BAD = ("slow_node", "failing_node", "slow_pair", "failing_pair", "slow_group", "common_failure")


def sweep_verdict(result: SweepResult) -> Judgement:
    """Fail where something certain was found, warn where something is odd."""
    if not result.finished:
        return Judgement.INCOMPLETE
    if any(
        finding.kind in _BAD and (finding.certain or finding.kind == "common_failure") for finding in result.findings
    ):
        return Judgement.FAIL
    return Judgement.WARN if result.findings else Judgement.PASS


def sweep_record(
    sweep: Sweep, result: SweepResult, request: NcclRequest, *, at: float, job_id: int | None = None
) -> HistoryRun:
    """The sweep as one entry; without a curve, so nothing is ever compared with it."""
    nodes = sweep.measured.nodes
    texts = [
        text for finding in result.findings for text in (finding.text, *(f"  {each}" for each in finding.evidence))
    ]
    cost = f"{result.jobs} tests in {result.rounds} rounds, {result.pairs_measured} of {result.pairs_possible} pairs"
    usual = result.usual_pair_gbs
    return HistoryRun(
        id=run_id(at),
        at=at,
        verdict=sweep_verdict(result).value,
        shape=Shape(nodes=len(nodes), ranks=len(nodes) * request.gpus_per_node, gpus_per_node=request.gpus_per_node,
                    collective=request.collective, algorithm=request.algorithm),
        nodes=nodes,
        busbw_large_gbs=None if usual is None else round(usual, 2),
        size_large_bytes=request.max_bytes,
        reasons=(*(texts or [result.nothing]), cost),
        flags=tuple(dict.fromkeys(finding.kind for finding in result.findings)),
        kind="sweep",
        job_id=job_id,
        pairs=tuple((one, other, busbw) for (one, other), busbw in pair_matrix(sweep).items()),
    )  # fmt: skip
