"""`cockpit efa` on nodes with one fault each: it says exactly that, with evidence, and nothing else."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.catalog.checks import checks_for
from cockpit.checks.facts import Known, below, version_key
from cockpit.checks.models import NodeResult, Verdict
from cockpit.config import CheckSettings
from tests.unit.check_node import FolderNode, found


@pytest.fixture
def node(tmp_path: Path) -> FolderNode:
    return FolderNode(tmp_path)


def test_a_healthy_p5_has_nothing_to_say(node: FolderNode) -> None:
    told = node.check()
    assert found(told) == {}
    assert told.verdict is Verdict.PASS
    assert told.instance_type == "p5.48xlarge"
    assert told.drain_reason == ""
    assert {result.check for result in told.results} == {
        check for check in checks_for("efa") if not check.startswith("aws.")
    }
    assert told.versions["efa"] == "2.17.3"
    assert told.versions["plugin"] == "1.17.2"
    assert told.versions["nccl"] == "2.28.3"


def test_one_device_less_is_one_finding(node: FolderNode) -> None:
    node.lose_device()
    told = node.check()
    assert found(told) == {"efa.devices": "31 of 32 devices"}
    assert told.drain_reason == "EFA devices: 31 of 32 devices"
    bad = told.of("efa.devices")
    assert bad is not None
    assert "replace" in bad.next_step
    assert bad.commands


def test_what_the_cluster_asks_for_goes_before_the_catalogue(node: FolderNode) -> None:
    assert found(node.check(known=Known(expected_efa=16))) == {}
    assert "32 of 48" in found(node.check(known=Known(expected_efa=48)))["efa.devices"]


def test_a_type_that_nobody_knows_makes_no_verdict_of_the_count(node: FolderNode) -> None:
    node.write("sys/devices/virtual/dmi/id/product_name", "Standard PC (i440FX + PIIX, 1996)\n")
    told = node.check()
    assert found(told, Verdict.FAIL, Verdict.WARN) == {}
    assert "not known" in found(told)["efa.devices"]


def test_no_plugin(node: FolderNode) -> None:
    shutil.rmtree(node.folder / "root/opt/amazon/ofi-nccl")
    assert found(node.check()) == {"efa.plugin": "no libnccl-net*.so on the node: NCCL falls back to TCP"}


def test_an_old_installer(node: FolderNode) -> None:
    node.write("root/opt/amazon/efa_installed_packages", "# EFA installer version: 1.28.0\n")
    assert found(node.check()) == {"efa.installer": "1.28.0, p5.48xlarge needs 1.29"}


@pytest.mark.parametrize(
    ("counter", "check", "verdict", "words"),
    [
        ("unresponsive_remote_events", "efa.counters", Verdict.FAIL, "unresponsive remotes"),
        ("impaired_remote_conn_events", "efa.counters", Verdict.FAIL, "impaired connections"),
        ("rdma_read_wr_err", "efa.counters", Verdict.FAIL, "failed RDMA reads"),
        ("retrans_timeout_events", "efa.counters", Verdict.WARN, "time-outs"),
        ("rx_drops", "efa.counters", Verdict.WARN, "receiver drops"),
    ],
)
def test_a_counter_that_rises(node: FolderNode, counter: str, check: str, verdict: Verdict, words: str) -> None:
    file = node.own_device() / counter
    told = _while_rising(file, lambda: node.check(window_s=0.4))
    bad = told.of(check)
    assert bad is not None
    assert bad.verdict is verdict
    assert words in bad.says
    assert "(1 of 32)" in bad.says
    assert list(found(told)) == [check]
    assert counter in bad.evidence[0]


def _while_rising(file: Path, check: Callable[[], NodeResult]) -> NodeResult:
    ended = threading.Event()

    def rise() -> None:
        count = 0
        while not ended.wait(0.01):
            count += 7
            file.with_name("new").write_text(f"{count}\n")
            file.with_name("new").replace(file)

    thread = threading.Thread(target=rise, daemon=True)
    thread.start()
    try:
        return check()
    finally:
        ended.set()
        thread.join()


def test_high_counters_that_stand_still_are_nothing(node: FolderNode) -> None:
    (node.own_device() / "unresponsive_remote_events").write_text("812345\n")
    assert found(node.check()) == {}


def test_a_card_that_does_not_answer_its_driver(node: FolderNode) -> None:
    own = node.own_device()
    counters = own.parents[2] / "hw_counters"
    shared = counters.resolve()
    counters.unlink()
    shutil.copytree(shared, counters)
    (counters / "no_completion_cmds").write_text("2\n")
    assert list(found(node.check(), Verdict.FAIL)) == ["efa.admin"]


def test_the_port_state_is_never_read(node: FolderNode) -> None:
    port = node.own_device().parent
    (port / "state").write_text("1: DOWN\n")
    (port / "phys_state").write_text("3: Disabled\n")
    assert found(node.check()) == {}


def test_without_hardware_there_is_one_finding_and_no_traceback(node: FolderNode) -> None:
    shutil.rmtree(node.folder / "sys/class/infiniband")
    shutil.rmtree(node.folder / "dev/infiniband")
    node.tool("fi_info", "echo 'fi_getinfo: -61 (No data available)'; exit 61")
    told = node.check()
    assert found(told) == {"efa.devices": "no EFA device, p5.48xlarge has 32"}
    assert "interfaces of type efa" in told.results[0].next_step


def test_cards_without_a_driver_are_told_from_no_cards(node: FolderNode) -> None:
    shutil.rmtree(node.folder / "sys/class/infiniband")
    for name, text in (("vendor", "0x1d0f\n"), ("device", "0xefa1\n"), ("class", "0x020000\n")):
        node.write(f"sys/bus/pci/devices/0000:51:00.0/{name}", text)
    told = node.check()
    assert found(told) == {"efa.devices": "no EFA device: 1 on the PCI bus, and no driver serves them"}
    assert "modprobe efa" in told.results[0].next_step


def test_a_type_without_efa_is_not_asked_for_it(node: FolderNode) -> None:
    shutil.rmtree(node.folder / "sys/class/infiniband")
    node.write("sys/devices/virtual/dmi/id/product_name", "g5.xlarge\n")
    told = node.check()
    assert found(told) == {}
    assert told.verdict is Verdict.NA


def test_minus_61_with_devices_looks_at_their_files_and_never_at_security_groups(node: FolderNode) -> None:
    node.tool("fi_info", "echo 'fi_getinfo: -61 (No data available)'; exit 61")
    bad = node.check().of("efa.provider")
    assert bad is not None
    assert (bad.verdict, "-61" in bad.says) == (Verdict.FAIL, True)
    assert "LD_LIBRARY_PATH" in bad.next_step
    assert "security" not in bad.next_step.lower()
    shutil.rmtree(node.folder / "dev/infiniband")
    told = node.check()
    assert set(found(told)) == {"efa.access", "efa.provider"}
    provider = told.of("efa.provider")
    assert provider is not None
    assert "uverbs" in provider.next_step


def test_other_rdma_devices_are_not_counted(node: FolderNode) -> None:
    base = "sys/class/infiniband/mlx5_0"
    node.write(f"{base}/device/vendor", "0x15b3\n")
    node.write(f"{base}/ports/1/hw_counters/rx_drops", "5\n")
    assert found(node.check()) == {}


def test_drivers(node: FolderNode) -> None:
    node.tool("modinfo", "echo 3.0.0")
    assert found(node.check()) == {"efa.driver": "2.17.3 is loaded, 3.0.0 is installed"}
    node.tool("modinfo", "echo 2.10.0")
    node.write("sys/module/efa/version", "2.10.0\n")
    node.write("sys/module/nvidia/version", "580.95.05\n")
    assert list(found(node.check())) == ["efa.gpu_driver"]


def test_gpudirect(node: FolderNode) -> None:
    p2p = node.folder / "parts/efa/p2p"
    p2p.write_text("\n")
    assert list(found(node.check(), Verdict.WARN)) == ["efa.gpudirect"]
    version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20\n"
    node.write("proc/driver/nvidia/version", version)
    told = node.check().of("efa.gpudirect")
    assert told is not None
    assert (told.verdict, "DMA-BUF" in told.says) == (Verdict.PASS, True)


def test_nccl_that_hangs_instead_of_failing(node: FolderNode) -> None:
    (node.folder / "root/usr/lib64/libnccl.so.2.28.3").rename(node.folder / "root/usr/lib64/libnccl.so.2.22.3")
    assert found(node.check()) == {"efa.nccl": "2.22.3 turns errors of EFA into hangs"}


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        ("65536", Verdict.FAIL),
        (str(4 * 2**30), Verdict.WARN),
        (str(16 * 2**30), Verdict.PASS),
        ("unlimited", Verdict.PASS),
    ],
)
def test_locked_memory(node: FolderNode, limit: str, verdict: Verdict) -> None:
    line = f"Max locked memory         {limit}            unlimited            bytes\n"
    node.write("proc/2101/limits", line)
    told = node.check().of("limits.memlock")
    assert told is not None
    assert (told.verdict, "slurmd" in told.says) == (verdict, True)


def test_what_counts_is_the_limit_inside_the_job(node: FolderNode) -> None:
    node.write("proc/4242/stat", f"4242 (python3) S 4241 {'0 ' * 17}900 0 0\n")
    node.write("proc/4242/cgroup", "0::/system.slice/slurmstepd.scope/job_17/step_0/user/task_0\n")
    node.write("proc/4242/limits", "Max locked memory         65536            65536            bytes\n")
    told = node.check().of("limits.memlock")
    assert told is not None
    assert told.verdict is Verdict.FAIL
    assert told.says == "64 KiB for a job's process"
    assert any("job 17" in line for line in told.evidence)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("export FI_PROVIDER=tcp", Verdict.FAIL),
        ("FI_PROVIDER=", Verdict.FAIL),
        ("export FI_PROVIDER=efa", Verdict.PASS),
        ("NCCL_NET_PLUGIN=none", Verdict.FAIL),
        ("NCCL_IB_HCA=mlx5", Verdict.PASS),
        ("NCCL_SOCKET_IFNAME=eth0", Verdict.FAIL),
        ("NCCL_SOCKET_IFNAME=ens", Verdict.PASS),
        ("NCCL_SOCKET_IFNAME=^lo,docker", Verdict.PASS),
        ("export NCCL_NTHREADS=64", Verdict.WARN),
    ],
)
def test_settings(node: FolderNode, line: str, verdict: Verdict) -> None:
    node.write("root/etc/profile.d/nccl.sh", f"#!/bin/sh\nAPI_TOKEN=hunter2\n{line}\n")
    told = node.check().of("efa.settings")
    assert told is not None
    assert told.verdict is verdict
    assert "hunter2" not in str(told)


def test_settings_of_job_scripts(node: FolderNode) -> None:
    known = Known(job_settings=(("script of job 7", "export NCCL_NET=Socket"),))
    told = node.check(known=known).of("efa.settings")
    assert told is not None
    assert told.verdict is Verdict.FAIL
    assert told.evidence[0].startswith("script of job 7: NCCL_NET=Socket")


def test_a_site_moves_thresholds_and_switches_checks_off(node: FolderNode) -> None:
    node.write("proc/2101/limits", "Max locked memory         65536            65536            bytes\n")
    off = CheckSettings(off=("limits.memlock",))
    assert found(node.check(settings=off)) == {}
    lower = CheckSettings(thresholds={"limits.memlock": {"fail_kib": 8, "warn_below_kib": 8}})
    assert found(node.check(settings=lower)) == {}


def test_what_hangs_costs_only_its_own_check(node: FolderNode) -> None:
    node.tool("fi_info", "sleep 600")
    began = time.monotonic()
    told = node.check()
    assert list(found(told)) == ["efa.provider"]
    assert time.monotonic() - began < 60
    assert told.results[0].verdict is Verdict.PASS


def test_half_an_output_and_hostile_text_break_nothing(node: FolderNode) -> None:
    node.tool("fi_info", "printf 'provider: efa\\n  domain: \\033]0;x\\007rdmap1\\n\\377\\376'; kill -9 $$")
    node.write("root/opt/amazon/efa_installed_packages", "\x1b[2J\x00\n" * 50)
    node.write("sys/module/efa/version", "\x1b[31m" + "9" * 5000)
    told = node.check()
    texts = [text for result in told.results for text in (result.says, *result.evidence, result.next_step)]
    assert all(text.isprintable() for text in texts)
    assert not any("could not be judged" in text for text in texts)


def test_devices_that_come_late_are_waited_for(node: FolderNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.write("proc/uptime", "42.00 1.00\n")
    lost = node.devices()[-1]
    link = node.folder / "sys/class/infiniband" / lost
    target = link.readlink()
    link.unlink()
    settings = CheckSettings(thresholds={"efa.devices": {"retry_after_s": 0.6}})
    timer = threading.Timer(0.8, lambda: link.symlink_to(target))
    timer.start()
    told = node.check(settings=settings)
    timer.join()
    assert told.asked_again >= 1
    assert found(told) == {}


def test_versions_are_compared_as_numbers() -> None:
    assert version_key("1.29.1amzn2") == (1, 29, 1)
    assert below("1.9", "1.29")
    assert not below("1.30", "1.30.0")
    assert not below("", "1.0")
