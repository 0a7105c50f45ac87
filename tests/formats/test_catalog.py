"""The catalogues of GPU faults and instance types are complete and say what their sources say."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.catalog.gpu_codes import ReturnKind, nvml_return, recovery_action, throttle_reasons
from cockpit.catalog.instances import instance_type, known_instance_types
from cockpit.catalog.reader import load
from cockpit.catalog.severity import Remedy, Severity, expand, worst
from cockpit.catalog.xids import NVLINK5, known_sxids, known_xids, nvlink5, sub_code_of, sxid, xid

SOURCES = {"nvidia", "gpud", "adt", "eks", "nhc", "gcm"}
COLON = ": "
NCCL = ("nccl_expected", "nccl_errors", "nccl_env")


@pytest.mark.parametrize("name", ["xids", "sxids", "nvlink5", "gpu_codes", "instance_types", *NCCL])
def test_every_catalogue_names_its_sources_and_their_date(name: str) -> None:
    sources = load(name)["sources"]
    assert sources["as_of"] == "2026-11"
    assert len(sources) > 1


@pytest.mark.parametrize("code", known_xids())
def test_every_xid_is_complete(code: int) -> None:
    fact = xid(code)
    assert fact.known
    assert fact.title
    assert fact.meaning.endswith(".")
    assert fact.next_step.endswith(".")
    told = dict(fact.told)
    assert {"nvidia", "adt", "eks", "nhc", "gcm"} <= set(told) <= SOURCES
    assert all(told.values())
    # What may be the job's own fault never takes a node out by itself.
    if fact.app_fault:
        assert fact.severity in (Severity.INFO, Severity.WARN)


def test_no_code_is_told_twice() -> None:
    for table, key in (("xids", "xids"), ("sxids", "classes")):
        counts = Counter(code for entry in load(table)[key] for code in expand(entry["codes"]))
        assert [code for code, count in counts.items() if count > 1] == []


def test_every_listed_code_has_an_entry() -> None:
    lists = load("xids")["lists"]
    assert {code for codes in lists.values() for code in expand(codes)} <= set(known_xids())
    assert set(range(1, 174)) == set(known_xids())


def test_only_known_keys() -> None:
    keys = {key for entry in load("xids")["xids"] for key in entry}
    assert keys == {
        *("codes", "title", "severity", "do", "means", "next", "nvidia", "gpud", "adt"),
        *("app", "repeats", "again", "folds", "hangs", "nvlink5", "verdict"),
    }


@pytest.mark.parametrize(
    ("code", "severity", "app", "remedy"),
    [
        (13, Severity.WARN, True, Remedy.RESTART_APP),
        (31, Severity.WARN, True, Remedy.RESTART_APP),
        (43, Severity.WARN, True, Remedy.RESTART_APP),
        (45, Severity.INFO, True, Remedy.LOOK),
        (48, Severity.CRITICAL, False, Remedy.RESET),
        (54, Severity.REPLACE, False, Remedy.REPLACE),
        (63, Severity.WARN, False, Remedy.RESET_LATER),
        (64, Severity.CRITICAL, False, Remedy.REPLACE),
        (74, Severity.DRAIN, False, Remedy.RESET),
        (79, Severity.CRITICAL, False, Remedy.REPLACE),
        (94, Severity.WARN, False, Remedy.RESET_LATER),
        (95, Severity.CRITICAL, False, Remedy.RESET),
        (109, Severity.DRAIN, False, Remedy.RESET),
        (151, Severity.DRAIN, False, Remedy.REBOOT),
        (162, Severity.INFO, False, Remedy.LOOK),
    ],
)
def test_well_known_xids(code: int, severity: Severity, app: bool, remedy: Remedy) -> None:
    fact = xid(code)
    assert (fact.severity, fact.app_fault, fact.remedy) == (severity, app, remedy)


def test_what_the_sources_say() -> None:
    assert dict(xid(79).told) == {
        "nvidia": "RESTART_BM",
        "gpud": "fatal: reboot, hardware inspection",
        "adt": "reboot",
        "eks": "fatal",
        "nhc": "bad",
        "gcm": "critical",
    }
    told = dict(xid(63).told)
    assert (told["eks"], told["gcm"], told["gpud"]) == ("fatal", "warning", f"fatal{COLON}reboot, hardware inspection")
    assert dict(xid(57).told)["nhc"] == "bad"
    assert dict(xid(60).told)["gpud"] == "fatal: reboot"
    assert "gpud" not in dict(xid(70).told)
    assert (xid(119).driver_hangs, xid(79).driver_hangs) == (True, False)
    assert (xid(13).repeats, xid(48).again) == (Severity.CRITICAL, Severity.REPLACE)


@given(st.integers(min_value=174))
def test_an_unknown_xid_is_told_as_unknown(code: int) -> None:
    fact = xid(code)
    assert (fact.code, fact.known, fact.severity, fact.told) == (code, False, Severity.WARN, ())


@pytest.mark.parametrize("code", known_sxids())
def test_every_sxid_is_complete(code: int) -> None:
    fact = sxid(code)
    assert fact.known
    assert fact.title
    assert fact.meaning.endswith(".")
    assert fact.next_step.endswith(".")
    assert dict(fact.told).keys() == {"nvidia", "gpud"}
    assert sxid(code, True).severity.rank >= fact.severity.rank


@pytest.mark.parametrize(
    ("code", "fatal", "severity"),
    [
        (12020, None, Severity.CRITICAL),
        (23009, None, Severity.CRITICAL),
        (20034, True, Severity.CRITICAL),
        (12028, False, Severity.WARN),
        (12028, True, Severity.CRITICAL),
        (11022, None, Severity.INFO),
        (20001, None, Severity.INFO),
        (10003, None, Severity.WARN),
        (99999, None, Severity.WARN),
        (99999, True, Severity.CRITICAL),
    ],
)
def test_sxids(code: int, fatal: bool | None, severity: Severity) -> None:
    assert sxid(code, fatal).severity is severity


def test_more_of_sxids() -> None:
    assert (sxid(20001).growing, sxid(10004).growing) == (Severity.WARN, Severity.CRITICAL)
    assert dict(sxid(12030).told)["gpud"] == "warning"
    assert not sxid(99999).known
    assert set(load("sxids")["names"]) <= set(known_sxids())


def test_sub_codes() -> None:
    assert (sub_code_of(0x004505C6), sub_code_of(0x021425C6)) == (4, 33)


@pytest.mark.parametrize(
    ("code", "unit", "first", "status", "verdict", "severity"),
    [
        (144, "SAW_MVB", 0, 0x10, "reset", Severity.DRAIN),
        (144, "SAW_MVB", 0, 0x8, "ignore", Severity.INFO),
        (145, "RLW_REMAP", 0, 0x8, "wait", Severity.WARN),
        (145, "RLW_TAGSTATE", 0, 0x20000, "reset", Severity.DRAIN),
        (145, "RLW_RXPIPE", 0, 0x2, "watch", Severity.WARN),
        (145, "RLW_RXPIPE", 0, 0x800, "ignore", Severity.INFO),
        (146, "TLW_RX_PIPE0", 0, 0x4, "reset", Severity.DRAIN),
        (147, "TREX", 0, 0x1, "ignore", Severity.INFO),
        (149, "NETIR_LINK_DOWN", 33 << 20, 0, "reset", Severity.DRAIN),
        (149, "NETIR_LINK_EVT", 40 << 20, 0, "ignore", Severity.INFO),
        (149, "NETIR_INT", 0, 0, "reset", Severity.DRAIN),
        (149, "NETIR_BER_EVENT", 0, 0, "ignore", Severity.INFO),
        (150, "MSE_WATCHDOG", 0, 0x80000000, "ignore", Severity.INFO),
        (150, "MSE_WATCHDOG", 0, 0x1, "reset", Severity.DRAIN),
    ],
)
def test_nvlink5(code: int, unit: str, first: int, status: int, verdict: str, severity: Severity) -> None:
    found = nvlink5(code, unit, first, status, fatal=True)
    assert (found.verdict, found.severity, found.known) == (verdict, severity, True)


@pytest.mark.parametrize("code", sorted(NVLINK5))
def test_where_no_rule_fits_the_word_decides(code: int) -> None:
    if code not in (147, 148):  # every unit of these is covered
        assert nvlink5(code, "NEW", 0, 0, fatal=True).verdict == "reset"
        assert not nvlink5(code, "NEW", 0, 0, fatal=False).known


def test_return_codes() -> None:
    assert {code: nvml_return(code).kind for code in (0, 3, 4, 9, 10, 15, 19, 14, 999)} == {
        0: ReturnKind.OK,
        3: ReturnKind.UNSUPPORTED,
        4: ReturnKind.DENIED,
        9: ReturnKind.NODE,
        10: ReturnKind.TIMEOUT,
        15: ReturnKind.GPU,
        19: ReturnKind.RETRY,
        14: ReturnKind.HARDWARE,
        999: ReturnKind.GPU,
    }
    assert (nvml_return(77).kind, nvml_return(77).known) == (ReturnKind.RETRY, False)


def test_every_return_code_of_the_bindings_is_there() -> None:
    import pynvml

    codes = {value for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")}
    assert codes <= {entry["code"] for entry in load("gpu_codes")["returns"]}


def test_throttle_reasons() -> None:
    assert throttle_reasons(0) == ()
    assert [reason.word for reason in throttle_reasons(0x4 | 0x48)] == ["power cap", "HW slowdown", "HW thermal"]
    assert worst(reason.severity for reason in throttle_reasons(0x105)) is Severity.INFO
    assert worst(reason.severity for reason in throttle_reasons(0x20)) is Severity.WARN
    assert all(reason.lasting for reason in throttle_reasons(0xC8))
    odd = throttle_reasons(1 << 40)[0]
    assert (odd.known, odd.severity) == (False, Severity.WARN)


def test_recovery_actions() -> None:
    assert [recovery_action(action).word for action in range(8)] == [
        *("None", "GPU Reset", "Node Reboot", "Drain P2P", "Drain and Reset", "Recover IMEX domain"),
        *("Bus reset", "System reboot"),
    ]
    assert recovery_action(0).severity is Severity.INFO
    assert (recovery_action(4).remedy, recovery_action(2).remedy) == (Remedy.RESET_LATER, Remedy.REBOOT)
    assert not recovery_action(8).known


def test_severities_have_an_order() -> None:
    assert worst([]) is Severity.INFO
    assert worst([Severity.WARN, Severity.REPLACE, Severity.CRITICAL]) is Severity.REPLACE


@pytest.mark.parametrize("name", known_instance_types())
def test_every_instance_type(name: str) -> None:
    found = instance_type(name)
    assert found is not None
    assert found.count > 0
    assert found.vcpus
    assert found.efa is not None
    assert (found.mem_mib is None) == name.startswith("trn2.")
    if found.accelerator in ("A10G", "L4", "L40S"):
        assert found.link_gb_s == 0


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "mem_mib", "vcpus", "efa"),
    [
        ("p4d.24xlarge", "A100", 8, 40960, 96, 4),
        ("p5.48xlarge", "H100", 8, 81920, 192, 32),
        ("p5en.48xlarge", "H200", 8, 144384, 192, 16),
        ("p6-b200.48xlarge", "B200", 8, 183359, 192, 8),
        ("p6-b300.48xlarge", "B300", 8, 275040, 192, 16),
        ("g5.48xlarge", "A10G", 8, 22888, 192, 1),
        ("g5.16xlarge", "A10G", 1, 22888, 64, 1),
        ("g6e.24xlarge", "L40S", 4, 45776, 96, 2),
        ("trn1.32xlarge", "Trainium", 16, 32768, 128, 8),
        ("inf2.48xlarge", "Inferentia2", 12, 32768, 192, 0),
    ],
)
def test_instance_types(name: str, accelerator: str, count: int, mem_mib: int, vcpus: int, efa: int) -> None:
    found = instance_type(name)
    assert found is not None
    assert (found.accelerator, found.count, found.mem_mib, found.vcpus, found.efa) == (
        *(accelerator, count, mem_mib, vcpus),
        efa,
    )


def test_an_unknown_type_is_none() -> None:
    assert instance_type("p7.48xlarge") is None
