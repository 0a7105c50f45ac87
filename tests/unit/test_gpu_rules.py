"""Rules over one GPU: what is lost, what only cannot be read, what the kernel's events still mean."""

from __future__ import annotations

import pytest

from cockpit.config import Rules
from cockpit.formats.kernel_lines import KernelLine
from cockpit.formats.kernel_log import KernelEvent, read_lines
from cockpit.gpu_models import Lack, Missing
from cockpit.gpu_rules import Finding, findings
from cockpit.models import Health
from tests.unit.test_fleet import sample

BUS = "0000:00:00"
XID = "NVRM: Xid (PCI:0000:00:00): "
CHANGED = "154, GPU recovery action changed from 0x{} ({}) to 0x{} ({})"


def kernel(*texts: str) -> tuple[KernelEvent, ...]:
    return read_lines(KernelLine(XID + text, float(at), "b-1") for at, text in enumerate(texts)).events


def of_events(*texts: str) -> list[tuple[str, Health]]:
    return [(finding.code, finding.health) for finding in findings(sample(0), kernel(*texts), Rules())]


@pytest.mark.parametrize(
    ("lost", "code", "health"),
    [
        (Missing(Lack.LOST, "GPU is lost", 15), "lost", Health.CRITICAL),
        (Missing(Lack.LOST, "GPU not found", 28), "lost", Health.CRITICAL),
        (Missing(Lack.LOST, "unknown error", 999), "lost", Health.CRITICAL),
        (Missing(Lack.LOST, "reset required", 16), "reset", Health.CRITICAL),
        (Missing(Lack.DENIED, "not permitted"), "not_readable", Health.UNKNOWN),
        (Missing(Lack.UNSUPPORTED, "not supported"), "not_readable", Health.UNKNOWN),
        (Missing(Lack.FAILED, "unreadable row"), "not_readable", Health.WARN),
        (Missing(Lack.FAILED, "not ready", 27), "not_readable", Health.WARN),
    ],
)
def test_only_a_lost_gpu_is_called_lost(lost: Missing, code: str, health: Health) -> None:
    [found] = findings(sample(0, lost=lost), (), Rules())
    assert (found.code, found.health) == (code, health)
    assert ("lost" in found.title.lower()) is (code == "lost")
    assert ("replace the instance" in found.next_step) is (code == "lost")


def test_an_action_that_the_driver_has_taken_back_is_over() -> None:
    asked, done = CHANGED.format("0", "None", "2", "Node Reboot"), CHANGED.format("2", "Node Reboot", "0", "None")
    assert of_events(asked) == [("xid:154", Health.CRITICAL)]
    assert of_events(asked, done) == []
    assert of_events(done, asked) == [("xid:154", Health.CRITICAL)]
    assert of_events("79, GPU has fallen off the bus.", asked, done) == [("xid:79", Health.CRITICAL)]


def test_nvml_tells_the_number_of_a_change_and_not_its_end() -> None:
    first, done = kernel(
        CHANGED.format("0", "None", "2", "Node Reboot"), CHANGED.format("2", "Node Reboot", "0", "None")
    )
    by_nvml = KernelEvent(first.kind, first.severity, "Xid 154 (told by NVML)", 2.0, code=154, bus=BUS)
    assert findings(sample(0), (first, done, by_nvml), Rules()) == ()
    assert [finding.code for finding in findings(sample(0), (by_nvml,), Rules())] == ["xid:154"]


@pytest.mark.parametrize(("mask", "lasting"), [(0x8, True), (0x40, True), (0x80, True), (0x20, False), (0x400, False)])
def test_one_reading_of_held_clocks_is_a_warning_and_tells_whether_lasting_makes_it_worse(
    mask: int, lasting: bool
) -> None:
    [found] = findings(sample(0, throttle_mask=mask), (), Rules())
    assert (found.health, found.lasting) == (Health.WARN, lasting)


def test_other_findings_do_not_wait() -> None:
    found: tuple[Finding, ...] = findings(sample(0, ecc_uncorrected=1, temp_c=91), (), Rules())
    assert [one.lasting for one in found] == [False, False]
