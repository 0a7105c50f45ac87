from __future__ import annotations

import os
from datetime import timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.catalog.severity import Severity
from cockpit.formats.kernel_fold import fold
from cockpit.formats.kernel_lines import KernelLine, kernel_lines
from cockpit.formats.kernel_log import KernelKind, bus_id, health_of, parse_kernel_log, read_lines
from cockpit.models import Health
from cockpit.text import printable
from tests.formats.kernel_text import AT, BOOT, X45, X79, X94, X149, X154, events, journal, one

BESIDE = Path(__file__).parents[3] / "shared" / "samples"
SAMPLE = Path(os.environ.get("COCKPIT_SAMPLES") or BESIDE) / "logs" / "dmesg_xid31_mmu_fault.txt"


# -- Xids


def test_an_xid_with_a_process() -> None:
    event = one(X45)
    assert (event.kind, event.code, event.bus) == (KernelKind.XID, 45, "0000:61:00")
    assert (event.pid, event.name, event.severity) == (1496200, "python", Severity.INFO)
    assert event.text == X45


def test_an_xid_of_nobody() -> None:
    event = one(X79)
    assert (event.code, event.pid, event.name, event.severity) == (79, None, "", Severity.CRITICAL)


def test_an_xid_of_a_mig_instance() -> None:
    event = one(X94)
    assert (event.bus, event.mig, event.pid, event.name) == ("0000:01:00", "GPU-I:05 GPU-CI:02", 7194, "")
    assert one(X94.replace(" GPU-CI:02", "")).mig == "GPU-I:05"


def test_the_old_shape() -> None:
    event = one("NVRM: Xid (0000:03:00): 14, Channel 00000001")
    assert (event.code, event.bus, event.pid) == (14, "0000:03:00", None)


def test_nothing_after_the_code() -> None:
    assert one("NVRM: Xid (PCI:0000:03:00): 62").severity is Severity.CRITICAL


def test_an_unknown_code_is_a_warning() -> None:
    assert one("NVRM: Xid (PCI:0000:03:00): 4711, whatever").severity is Severity.WARN


@pytest.mark.parametrize("text", ["NVRM: Xid (PCI:0000:61:00): many", "NVRM: Xid (", "NVRM: Xid (PCI:zz): 79, x"])
def test_an_xid_that_cannot_be_read_is_not_dropped(text: str) -> None:
    event = one(text)
    assert (event.kind, event.code, event.severity) == (KernelKind.XID, None, Severity.WARN)
    assert event.hint == "this line cannot be read"


def test_nvlink5_by_sub_code_and_word() -> None:
    event = one(X149)
    assert (event.code, event.bus, event.link, event.severity) == (149, "0008:01:00", 8, Severity.DRAIN)
    assert event.hint == "look at the link's signal"
    assert one(X149.replace("i0", "i1")).severity is Severity.INFO
    assert one(X149.replace("0x00000000", "0x80000000")).severity is Severity.INFO
    odd = "NVRM: Xid (PCI:0008:01:00): 144, pid=5, name=a, NEW_UNIT  {} XC0 i0 Link -1 (0x00000000 0x00000000)"
    assert one(odd.format("Fatal")).severity is Severity.DRAIN
    assert one(odd.format("Nonfatal")).severity is Severity.WARN
    assert one(odd.format("Nonfatal")).link == -1
    assert one("NVRM: Xid (PCI:0008:01:00): 149, half a li").severity is Severity.WARN


def test_off_the_bus_without_a_number() -> None:
    event = one("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.")
    assert (event.kind, event.code, event.bus) == (KernelKind.OFF_BUS, 79, "0000:18:00")
    assert one("NVRM: GPU 18:00.0: GPU has fallen off the bus.").bus == "0000:18:00"


def test_off_the_bus_over_several_lines() -> None:
    found = events(
        "NVRM: The NVIDIA GPU 0000:18:00.0",
        "NVRM: (PCI ID: 10de:2330) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    )
    assert [(event.kind, event.code, event.bus) for event in found] == [(KernelKind.OFF_BUS, 79, "0000:18:00")]
    assert events("NVRM: The NVIDIA GPU 0000:18:00.0", "NVRM: is fine") == ()
    assert events("NVRM: fallen off the bus and is not responding to commands.") == ()


def test_uuids_by_bus() -> None:
    line = "NVRM: GPU at PCI:0000:91:00: GPU-b6c3a0f1-0c31-4cfb-8ea8-4a0e51e6f7d2"
    assert read_lines([KernelLine(line)]).uuids == {"0000:91:00": "GPU-b6c3a0f1-0c31-4cfb-8ea8-4a0e51e6f7d2"}


# -- SXids


def test_an_sxid_and_its_follow_ups_are_one() -> None:
    found = events(
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 60 Sub-engine instance 00",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Data {0x10000000, 0x10000000}",
    )
    (event,) = found
    assert (event.kind, event.code, event.device, event.link) == (KernelKind.SXID, 20034, "nvidia-nvswitch1", 48)
    assert (event.bus, event.severity, event.hint) == ("0000:06:00", Severity.CRITICAL, "LTSSM fault up")
    assert len(event.more) == 2


def test_follow_ups_without_their_head_do_not_count() -> None:
    assert events("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Data {0x10000000}") == ()


def test_the_word_of_an_sxid_decides_where_the_code_does_not() -> None:
    line = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, {}, Link 32 egress non-posted PRIV error"
    assert one(line.format("Non-fatal")).severity is Severity.WARN
    assert one(line.format("Fatal")).severity is Severity.CRITICAL
    without_link = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 22013, Non-fatal, Minion Link DLREQ interrupt"
    assert (one(without_link).severity, one(without_link).link) == (Severity.INFO, None)


# -- what is not about GPUs


@pytest.mark.parametrize(
    ("text", "kind", "severity", "device", "pid", "name"),
    [
        (
            "infiniband rdmap16s27: The device didn't send any completion for admin cmd CREATE_QP(1) status 0",
            *(KernelKind.EFA, Severity.REPLACE, "rdmap16s27", None, ""),
        ),
        ("efa 0000:51:00.0: Admin queue is closed", KernelKind.EFA, Severity.REPLACE, "0000:51:00.0", None, ""),
        ("efa 0000:51:00.0: Reading register timed out.", KernelKind.EFA, Severity.REPLACE, "0000:51:00.0", None, ""),
        (
            "infiniband efa_0: Failed to process command ALLOC_PD (opcode 14) comp_status 3 err -12",
            *(KernelKind.EFA, Severity.WARN, "efa_0", None, ""),
        ),
        (
            "Out of memory: Killed process 4242 (python3) total-vm:1kB, anon-rss:1kB",
            *(KernelKind.OOM, Severity.WARN, "", 4242, "python3"),
        ),
        (
            "Memory cgroup out of memory: Killed process 77 (pt_main_thread) total-vm:5kB",
            *(KernelKind.OOM, Severity.WARN, "", 77, "pt_main_thread"),
        ),
        ("python3 invoked oom-killer: gfp_mask=0x1100cca", KernelKind.OOM, Severity.WARN, "", None, "python3"),
        (
            "INFO: task kworker/u96:1:311 blocked for more than 120 seconds.",
            *(KernelKind.HUNG_TASK, Severity.CRITICAL, "", 311, "kworker/u96:1"),
        ),
        (
            "watchdog: BUG: soft lockup - CPU#12 stuck for 22s! [nvidia-smi:991]",
            *(KernelKind.LOCKUP, Severity.CRITICAL, "", 991, "nvidia-smi"),
        ),
        ("nfs: server 10.0.0.7 not responding, still trying", KernelKind.NFS, Severity.WARN, "10.0.0.7", None, ""),
        (
            "Lustre: fsx-OST0003-osc-ffff: Connection to fsx-OST0003 (at 10.0.1.9@tcp) was lost; in progress",
            *(KernelKind.LUSTRE, Severity.WARN, "fsx-OST0003", None, ""),
        ),
        (
            "LustreError: 167-0: fsx-MDT0000-mdc-ffff: This client was evicted by fsx-MDT0000; in progress",
            *(KernelKind.LUSTRE, Severity.WARN, "fsx-MDT0000", None, ""),
        ),
        ("nvme nvme3: I/O 12 QID 4 timeout, reset controller", KernelKind.DISK, Severity.DRAIN, "nvme3", None, ""),
        ("EXT4-fs (nvme0n1): Remounting filesystem read-only", KernelKind.DISK, Severity.DRAIN, "nvme0n1", None, ""),
    ],
)
def test_host_faults(text: str, kind: KernelKind, severity: Severity, device: str, pid: int | None, name: str) -> None:
    event = one(text)
    assert (event.kind, event.severity, event.device, event.pid, event.name) == (kind, severity, device, pid, name)


def test_a_card_is_known_by_its_bus_too() -> None:
    assert one("efa 0000:51:00.0: Admin queue is closed").bus == "0000:51:00"


def test_servers_that_are_back_clear() -> None:
    assert one("nfs: server 10.0.0.7 OK").clears
    assert one("Lustre: fsx-OST0003-osc: Connection restored to fsx-OST0003 (at 10.0.1.9@tcp)").clears
    assert not one("nfs: server 10.0.0.7 not responding, timed out").clears


def test_who_asked_and_who_was_killed_is_one() -> None:
    found = events(
        "python3 invoked oom-killer: gfp_mask=0x1100cca",
        "CPU: 3 PID: 1 Comm: python3",
        "Out of memory: Killed process 4242 (train.py) total-vm:1kB",
        "Out of memory: Killed process 4243 (train.py) total-vm:1kB",
    )
    assert [(event.pid, len(event.more)) for event in found] == [(4242, 1), (4243, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "ena 0000:00:05.0: Admin queue is closed",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05",
        "Lustre: Mounted fsx-client",
        "usb 1-1: new device",
        "nvidia-nvswitch0: SXid",
        "",
    ],
)
def test_what_is_no_fault(text: str) -> None:
    assert events(text) == ()


# -- times and forms


@pytest.mark.parametrize(
    ("line", "at"),
    [
        (f"2026-11-29T19:51:20+0000 node kernel: {X45}", 1795981880.0),
        (f"2026-11-29T20:51:20.250000+01:00 node kernel: {X45}", 1795981880.25),
        (f"2026-11-29T14:51:20-05:00 node kernel: {X45}", 1795981880.0),
        (f"2026-11-29T19:51:20Z node kernel: {X45}", 1795981880.0),
        (f"[Sun Nov 29 21:51:20 2026] {X45}", 1795981880.0),
        (f"[   50.500000] {X45}", AT + 50.5),
        (f"6,1234,50500000,-;{X45}", AT + 50.5),
        (f"Nov 29 19:51:20 node kernel: [   50.500000] {X45}", None),
        (X45, None),
    ],
)
def test_forms(line: str, at: float | None) -> None:
    reading = parse_kernel_log(line.encode() + b"\n", tz=timezone(timedelta(hours=2)), booted_at=AT)
    (event,) = reading.events
    assert (event.at, event.code, event.text) == (at, 45, X45)


def test_without_the_time_of_boot_there_is_no_time() -> None:
    assert [line.at for line in kernel_lines(f"[   50.500000] {X45}\n6,1,50,-;x".encode())] == [None, None]


@pytest.mark.parametrize("line", ["[Sun Foo 29 19:51:20 2026] x", "2026-13-45T19:51:20+0000 n kernel: x"])
def test_impossible_times_are_none(line: str) -> None:
    assert [found.at for found in kernel_lines(line.encode())] == [None]


def test_journal_json() -> None:
    reading = parse_kernel_log(journal(MESSAGE=X45))
    (event,) = reading.events
    assert (event.at, event.boot, event.pid) == (1796000000.123456, BOOT, 1496200)


def test_a_message_of_bytes() -> None:
    raw = X45.replace("python", "py").encode() + b"\xff\x1b[2J"
    (event,) = parse_kernel_log(journal(MESSAGE=list(raw))).events
    assert event.code == 45
    assert event.text.endswith("\ufffd␛[2J")


@pytest.mark.parametrize(
    "line",
    [
        journal(MESSAGE=X79)[:-20],
        journal(MESSAGE=None),
        journal(MESSAGE=["x", 999, None]),
        journal(),
        journal(MESSAGE=X79, _TRANSPORT="syslog"),
        b"[" * 50_000,
        b'{"a":' * 50_000,
        b"{}\n",
        b"-- Boot 0123 --\n",
        f"2026-11-29T19:51:20+0000 node mallory[7]: {X79}\n".encode(),
    ],
)
def test_broken_lines_and_foreign_programs_give_nothing(line: bytes) -> None:
    assert parse_kernel_log(line).events == ()


def test_strange_journal_fields_leave_the_message() -> None:
    (event,) = parse_kernel_log(journal(MESSAGE=X79, __REALTIME_TIMESTAMP="soon", _BOOT_ID=7)).events
    assert (event.at, event.boot, event.code) == (None, "", 79)


def test_an_empty_log_is_told_apart_from_a_quiet_one() -> None:
    assert parse_kernel_log(b"").lines == 0
    assert parse_kernel_log(b"[    1.000000] Linux version 6.1\n").lines == 1


# -- small things


@pytest.mark.parametrize(
    ("text", "bus"),
    [
        ("0000:61:00", "0000:61:00"),
        ("00000000:A1:00.0", "0000:a1:00"),
        ("61:00.0", "0000:61:00"),
        ("0008:01:00.0", "0008:01:00"),
        ("00010000:01:00.0", "10000:01:00"),
        ("", ""),
        ("GPU-1", ""),
        ("1:2:3:4", ""),
    ],
)
def test_bus_ids(text: str, bus: str) -> None:
    assert bus_id(text) == bus


def test_health_on_the_screen() -> None:
    assert [health_of(severity) for severity in Severity] == [
        *(Health.OK, Health.WARN, Health.CRITICAL, Health.CRITICAL, Health.CRITICAL)
    ]


LINES = [X45, X79, X94, X149, X154, "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 x"]


@given(st.lists(st.one_of(st.binary(max_size=200), st.sampled_from([line.encode() for line in LINES])), max_size=30))
def test_nothing_raises_and_everything_may_be_shown(pieces: list[bytes]) -> None:
    reading = parse_kernel_log(b"\n".join(pieces))
    for event in reading.events:
        for text in (event.text, event.name, event.device, event.mig, event.hint, event.bus, *event.more):
            assert text == printable(text)
            assert len(text) <= 500
    assert sum(1 + len(incident.others) for incident in fold(reading.events)) == len(reading.events)


@given(st.sampled_from(LINES), st.integers(0, 120), st.text(max_size=8))
def test_a_line_with_junk_in_it(line: str, place: int, junk: str) -> None:
    for event in events(line[:place] + junk + line[place:]):
        assert event.text == printable(event.text)


def test_a_giant_line_is_cut() -> None:
    (event,) = parse_kernel_log((X79 + "x" * 5_000_000).encode()).events
    assert (event.code, len(event.text)) == (79, 500)


def test_many_continued_lines_are_cut() -> None:
    (event,) = parse_kernel_log((X79 + "\n  more" * 500).encode()).events
    assert len(event.more) == 20


@pytest.mark.samples
@pytest.mark.skipif(not SAMPLE.is_file(), reason="no samples of logs here")
def test_two_page_faults_of_a_public_log() -> None:
    found = parse_kernel_log(SAMPLE.read_bytes()).events
    assert [(event.code, event.bus, event.pid, event.name) for event in found] == [
        (31, "0000:18:00", 1847919, "sendrecv_perf"),
        (31, "0000:18:00", 2048399, "sendrecv_perf"),
    ]
    assert all("FAULT_PDE" in event.more[-1] for event in found)
    assert len(fold(found)) == 2
