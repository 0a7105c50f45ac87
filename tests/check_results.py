"""Check results as a p5 cluster would have them, made by hand: one node short of a device, one silent, drift."""

from __future__ import annotations

from cockpit.catalog.checks import checks_for
from cockpit.checks.history import CheckHistory
from cockpit.checks.models import CheckRun, NodeResult, Result, Verdict
from cockpit.checks.place import history_path
from cockpit.models import Fault, FaultKind
from tests.still import NOON

VERSIONS = {
    "kernel": "6.1.134-150.224.amzn2023.x86_64",
    "nvidia": "570.133.20",
    "efa": "2.17.3",
    "installer": "1.44.0",
    "libfabric": "2.3.1amzn1.0",
    "plugin": "1.17.2",
    "nccl": "2.28.3",
}
SHORT = Result(
    "efa.devices",
    Verdict.FAIL,
    "31 of 32 devices",
    ("rdmap79s0, rdmap82s0, rdmap85s0, 28 more", "up for 18d16h"),
    "Look at the kernel's messages about efa; then stop and start, or replace, the instance.",
    ("grep -H . /sys/class/infiniband/*/device/vendor",),
)
RISING = Result(
    "efa.counters",
    Verdict.WARN,
    "retransmissions rise: 412 packets in 5 s",
    ("rdmap82s0 retrans_pkts +412",),
    "Run it again while the job runs, then compare the nodes.",
    ("grep -H . /sys/class/infiniband/*/ports/1/hw_counters/*, twice, 5 s apart",),
)
SILENT = Fault(FaultKind.TIMEOUT, "node gpu-st-p5-5", "gave no answer within 85 s", "log in there by hand")
_NOT_HERE = ("aws.interfaces", "aws.security_group", "aws.zone", "aws.placement", "efa.admin", "efa.pair")


def node(
    name: str,
    *bad: Result,
    kind: str = "efa",
    at: float = NOON - 180,
    fault: Fault | None = None,
    **versions: str,
) -> NodeResult:
    """One node whose other checks are all fine; `versions` are those it has otherwise than the rest."""
    if fault is not None:
        return NodeResult(name, at, 85.0, fault=fault, queue="gpu")
    found = {result.check: result for result in bad}
    checks = [check for check in checks_for(kind) if check not in _NOT_HERE or check in found]
    results = tuple(found.get(check) or Result(check, Verdict.PASS, "as it should be", (), "", ()) for check in checks)
    return NodeResult(name, at, 6.04, results, None, "gpu", "p5.48xlarge", VERSIONS | versions)


def nodes(at: float = NOON - 180) -> tuple[NodeResult, ...]:
    """Seven nodes of the still cluster."""
    return (
        node("gpu-st-p5-1", at=at),
        node("gpu-st-p5-2", at=at, efa="2.15.0"),
        node("gpu-st-p5-3", RISING, at=at),
        node("gpu-st-p5-4", at=at),
        node("gpu-st-p5-5", at=at, fault=SILENT),
        node("gpu-st-p5-6", at=at),
        node("gpu-st-p5-7", SHORT, RISING, at=at),
    )


def keep(
    *found: NodeResult, kind: str = "efa", at: float = NOON - 200, run_id: str = "r", cluster: str = "still"
) -> None:
    """A run as another cockpit would have kept it."""
    CheckHistory(history_path(cluster)).append(CheckRun(run_id, kind, at, 6.0, found))
