"""The details of nodes and GPUs: state and why, jobs, GPUs worst first, events, file systems, EFA, peers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.catalog.severity import Severity
from cockpit.formats.kernel_log import KernelEvent, KernelKind
from cockpit.gpu_models import EfaDevice, MountReading
from cockpit.models import Fault, FaultKind
from screens.detail_registry import details
from screens.lines import Line, Subject
from tests.unit.details_cluster import (
    Change,
    lead,
    leads_to,
    link_texts,
    text,
    texts,
    watched,
    with_events,
    with_gpu,
    with_reading,
    with_text,
)

NODE = "gpu-st-p5-3"


@pytest.fixture(autouse=True)
def _one_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


def of(change: Change, name: str = NODE, kind: str = "node", slot: str = "") -> list[Line]:
    cluster, _, _ = watched({name: change})
    return details(cluster, Subject(kind, f"{name}{slot}"))


def test_a_drained_node_tells_who_when_why_and_what_this_kind_of_cluster_does_about_it() -> None:
    for kind, wanted in (("parallelcluster", "ends the instance"), ("slurm", "until somebody resumes it")):
        cluster, _, _ = watched(kind=kind)
        lines = details(cluster, Subject("node", "gpu-st-p5-6"))
        told = texts(lines)
        assert "INC-4821 NCCL slow on rail 5" in told
        assert "root, 1d02h ago (29 Nov 08:53)" in told
        assert wanted in told
        assert any(kind == "problem" for kind, _ in leads_to(lines))


def test_the_text_of_an_old_drain_is_told_as_old() -> None:
    cluster, head, _ = watched()
    head.sim.nodes[NODE].reason = "old story"
    cluster.read_once()
    assert "of an earlier time" in text(with_text(details(cluster, Subject("node", NODE)), "old story"))


def test_jobs_queues_and_gpus_are_links_and_the_worst_gpu_is_first() -> None:
    lines = of(with_gpu(5, ecc_uncorrected=2.0))
    assert {("job", "48219"), ("queue", "gpu"), ("gpu", f"{NODE}/5")} <= leads_to(lines)
    gpus = [text(line) for line in lines if text(line).startswith("    GPU ")]
    assert gpus[0].startswith("    GPU 5")
    assert len(gpus) == 8
    assert "rank 13" in gpus[0]
    assert "2 uncorrected memory errors" in texts(lines)
    assert "GPU 0-7" in text(with_text(lines, "llama3-405b-pretrain"))


def test_events_are_newest_first_and_lead_to_the_gpu_and_to_what_the_code_means() -> None:
    now = watched()[2].now()
    boot = KernelEvent(KernelKind.HUNG_TASK, Severity.WARN, "task python3 blocked", now - 90_000, boot="before")
    fault = KernelEvent(KernelKind.XID, Severity.CRITICAL, "NVRM: Xid 79", now - 60, "this", 79, "0000:64:00")
    switch = KernelEvent(KernelKind.SXID, Severity.CRITICAL, "SXid 20034", now - 30, "this", 20034, device="nvswitch1")
    lines = of(with_events(boot, fault, switch))
    events = texts(lines).partition("last events")[2].partition("machine")[0]
    places = [events.index(word) for word in ("SXid 20034", "Xid 79  NVRM", "booted", "task python3 blocked")]
    assert places == sorted(places)
    assert "before the last boot" in events
    assert {("xid", "79"), ("sxid", "20034")} <= leads_to(lines)
    assert link_texts(with_text(lines, "NVRM: Xid 79"))[0] == "GPU 1"


def test_a_kernel_log_that_nobody_may_read_is_not_a_log_without_events() -> None:
    lines = of(with_reading(log_source="", not_read={"kernel log": "operation not permitted"}))
    assert "the kernel's log is not readable: operation not permitted" in texts(lines)
    assert "none of the kernel's" not in texts(lines)
    assert "none of the kernel's" in texts(of(with_reading()))


def test_a_probe_that_fails_is_told_with_its_age() -> None:
    fault = Fault(FaultKind.UNREACHABLE, "the probe", "connection refused", "is it up?")
    lines = of(lambda one: replace(one, fault=fault, since=(one.seen_at or 0) - 65, seen_at=(one.seen_at or 0) - 70))
    assert "the probe has failed for 1m: the probe: connection refused" in texts(lines)
    assert "read 1m ago" in texts(lines)


def test_a_file_system_that_hangs_comes_first_then_the_fullest() -> None:
    now = watched()[2].now()
    mounts = (
        MountReading("/", "ext4", total_mib=1000.0, used_mib=100.0, available_mib=900.0),
        MountReading("/scratch", "xfs", total_mib=1000.0, used_mib=950.0, available_mib=50.0),
        MountReading("/fsx", "lustre", "fsx@tcp:/x", hung_since=now - 125),
        MountReading("/home", "nfs4", error="Stale file handle"),
        MountReading("/odd", "tmpfs"),
    )
    lines = of(with_reading(mounts=mounts))
    told = texts(lines).partition("file systems")[2]
    order = [told.index(word) for word in ("does not answer since 2m", "Stale file handle", "95 % of", "10 % of")]
    assert order == sorted(order)
    assert "not read" in text(with_text(lines, "/odd"))


def test_efa_devices_are_counted_and_only_counters_of_trouble_are_told() -> None:
    devices = tuple(EfaDevice(f"rdmap{n}s0", counters={"tx_bytes": 10**12, "rx_drops": 0}) for n in range(31))
    bad = EfaDevice("rdmap99s0", counters={"retrans_timeout_events": 12, "rx_drops": None})
    told = texts(of(with_reading(efa=(*devices, bad))))
    assert "devices      32: rdmap0s0" in told
    assert "retrans_timeout_events 12" in told
    assert "tx_bytes" not in told
    assert "rx_drops" not in told


def test_a_node_that_is_gone_and_nodes_that_were_never_read() -> None:
    cluster, _, _ = watched()
    assert "no longer among Slurm's nodes" in texts(details(cluster, Subject("node", "nope")))
    cluster.view = replace(cluster.view, nodes=None)
    assert "not read yet" in texts(details(cluster, Subject("node", "nope")))


def test_a_gpu_leads_to_its_node_its_job_and_the_peer_that_differs() -> None:
    cluster, _, _ = watched({NODE: with_gpu(5, util_pct=0.0)})
    lines = details(cluster, Subject("gpu", "gpu-st-p5-2/0"))
    assert {("node", "gpu-st-p5-2"), ("job", lead(cluster).key), ("gpu", f"{NODE}/5")} <= leads_to(lines)
    assert "rank 0  pid" in texts(lines)
    assert "against its 23 peers" in texts(lines)


def test_findings_of_a_gpu_lead_to_what_they_mean() -> None:
    lines = of(with_gpu(5, throttle_mask=64.0, throttle=("HW thermal",)), slot="/5", kind="gpu")
    assert ("throttle", "40") in leads_to(lines)
    assert ("problem", f"gpu:{NODE}:throttle:40") not in leads_to(lines)  # its own finding stands there already


def test_old_numbers_of_a_gpu_are_not_held_against_those_of_now() -> None:
    cluster, _, _ = watched({NODE: with_gpu(5, taken_at=0.0)})
    lines = details(cluster, Subject("gpu", f"{NODE}/5"))
    assert "peers" not in texts(lines)
    assert " ago" in text(with_text(lines, "readings of "))
