"""Which lines of a kernel's log are one fault, and what the driver wants in the end."""

from __future__ import annotations

from cockpit.catalog.severity import Severity
from cockpit.formats.kernel_fold import fold
from tests.formats.kernel_text import X45, X79, X154, X154_CLEAR, one, timed


def test_the_same_xid_twice_is_two() -> None:
    assert len(timed((0, X45.replace("45,", "31,")), (0.1, X45.replace("45,", "31,")))) == 2
    assert len(fold(timed((0, X45.replace("45,", "31,")), (0.1, X45.replace("45,", "31,"))))) == 2


def test_a_clean_up_folds_into_its_cause() -> None:
    at_61 = X79.replace("05:00", "61:00")
    (incident,) = fold(timed((0, X45), (0.2, at_61), (0.3, X45), (4, X45)))
    assert (incident.head.code, len(incident.others), incident.severity) == (79, 3, Severity.CRITICAL)


def test_what_lies_apart_does_not_fold() -> None:
    other_gpu = timed((0, X79), (1, X45))
    later = timed((0, X79.replace("05:00", "61:00")), (6, X45))
    assert [len(fold(found)) for found in (other_gpu, later)] == [2, 2]
    before, after = timed((0, X79.replace("05:00", "61:00")), boot="a"), timed((1, X45), boot="b")
    assert len(fold((*before, *after))) == 2


def test_the_verdict_of_the_driver_comes_with_its_cause() -> None:
    x95 = X154.split(": 154")[0] + ": 95, pid=1, Uncontained"
    off = "NVRM: GPU 0009:01:00.0: GPU has fallen off the bus."
    (incident,) = fold(timed((0, X154), (1, x95), (2, X154), (2, off)))
    assert (incident.head.code, len(incident.others)) == (95, 3)
    x31 = X154.split(": 154")[0] + ": 31, pid=1, MMU fault"
    (weaker,) = fold(timed((0, x31), (1, X154)))
    assert (weaker.head.code, weaker.severity) == (31, Severity.DRAIN)
    (alone,) = fold(timed((0, X154)))
    assert alone.head.code == 154


def test_the_strongest_is_the_head_and_two_rounds_are_two() -> None:
    names = [X45.replace("45,", code) for code in ("63,", "48,", "94,", "63,", "48,")]
    found = fold(timed(*((0.1 * place, name) for place, name in enumerate(names))))
    assert [incident.head.code for incident in found] == [48, 48]


def test_other_faults_stand_alone() -> None:
    line = "nfs: server 10.0.0.7 not responding, still trying"
    assert len(fold(timed((0, line), (0, line), (0, X79)))) == 3


def test_a_switch_whose_word_is_harmless_is_not_when_a_gpu_suffers() -> None:
    line = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
    x74 = X45.replace(" 45,", " 74,")
    for found, severity in (
        (timed((0, line)), Severity.WARN),
        (timed((0, line), (9, x74)), Severity.WARN),
        (timed((0, line), (2, x74)), Severity.CRITICAL),
        (timed((0, line.replace("12028", "22013")), (2, x74)), Severity.INFO),
    ):
        assert fold(found)[0].severity is severity


def test_an_xid_154_to_none_clears() -> None:
    assert one(X154_CLEAR).clears
    assert one(X154_CLEAR).severity is Severity.INFO
    assert (one(X154).action, one(X154).hint) == (4, "Drain and Reset")


def test_the_last_change_in_a_line_counts() -> None:
    assert one(f"{X154}, {X154_CLEAR.partition('154, ')[2]}").action == 0
