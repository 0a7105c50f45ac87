"""Public output of EFA's programs: each sample gets the reading that its index gives."""

from __future__ import annotations

import pytest

from cockpit.formats.efa_counters import parse_counters, window
from cockpit.formats.efa_tools import (
    parse_efa_table,
    parse_ibv_devinfo,
    parse_installed,
    parse_ls_devices,
    parse_ping,
)
from cockpit.formats.fi_info import parse_fi_info
from tests.formats.slurm_samples import SAMPLES

EFA = SAMPLES.parent / "efa"
pytestmark = [
    pytest.mark.samples,
    pytest.mark.skipif(not EFA.is_dir(), reason="no samples of EFA output here"),
]


def text(name: str) -> str:
    return (EFA / f"{name}.txt").read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize(
    ("name", "devices", "version"),
    [
        ("fi_info_1dev_efa_direct_v201", 1, "2.1"),
        ("fi_info_c5n_efa_direct_v204", 1, "2.4"),
        ("fi_info_rdm_dgram_v120", 1, "1.20"),
        ("fi_info_p4d_rdm_only_v122_first2", 2, "1.22"),
        ("fi_info_p4d_4dev_legacy_fabric_v111", 4, "1.11"),
        ("fi_info_p3dn_1dev_legacy_fabric_v2", 1, ""),
        ("fi_info_legacy_fabric_rdmap_name_v2", 1, ""),
    ],
)
def test_devices_of_fi_info(name: str, devices: int, version: str) -> None:
    told = parse_fi_info(text(name))
    assert (len(told.devices), told.provider_version, told.error) == (devices, version, 0)


def test_no_device() -> None:
    assert parse_fi_info(text("fi_info_no_device_error")).no_device


def test_ibv_devinfo() -> None:
    p5en = parse_ibv_devinfo(text("ibv_devinfo_p5en_16dev"))
    assert len(p5en) == 16
    assert all(device.is_efa and device.hw_version == "0xEFA2" for device in p5en)
    assert {device.node_guid for device in p5en}.isdisjoint({"", "0000:0000:0000:0000"})
    (c5n,) = parse_ibv_devinfo(text("ibv_devinfo_c5n_head"))
    assert (c5n.is_efa, c5n.hw_version, c5n.node_guid) == (True, "0xEFA0", "0000:0000:0000:0000")
    (g7e,) = parse_ibv_devinfo(text("ibv_devinfo_g7e_partial_fields"))
    assert (g7e.name, g7e.is_efa) == ("rdmap49s0", True)


def test_counters() -> None:
    (p4d,) = parse_counters(text("hw_counters_p4d_nonzero_2023")).values()
    assert p4d["rx_drops"] == p4d["rdma_read_wr_err"] == 0
    assert p4d["rx_pkts"] == 1776383627
    assert p4d["recv_wrs"] == 887511660
    assert p4d["rdma_read_wrs"] == 888872032  # together about rx_pkts: operations, no packets of the wire
    same = parse_counters(text("hw_counters_p4d_nonzero_2023"))
    assert not window(same, same, 5.0).has_srd
    assert "lifespan" not in p4d
    for name in ("hw_counters_more_all_zero", "rdma_statistic_show_zero"):
        (zero,) = parse_counters(text(name)).values()
        assert len(zero) >= 16
        assert set(zero.values()) == {0}


def test_pings() -> None:
    both = parse_ping(text("fi_pingpong_2node_default_dgram"))
    assert both.datagrams
    assert len(both.rows) == 8
    assert both.latency_us is not None
    assert 17 <= both.latency_us <= 19
    shared = parse_ping(text("efa_test_sh_localhost_shm"))
    assert (shared.success, shared.shared_memory(100)) == (True, True)
    old = parse_ping(text("efa_test_sh_localhost_old"))
    assert not old.shared_memory(100)
    assert old.largest is not None
    assert old.largest.mb_s == 2359.0


def test_installer_folder_and_table() -> None:
    installed = parse_installed(text("efa_installed_packages_1.7.0_al2"))
    assert installed.version == "1.7.0"
    assert installed.package("efa").startswith("1.4.1")
    assert installed.package("libfabric-aws").startswith("1.8.1amzn1.2")
    assert parse_ls_devices(text("ls_sys_class_infiniband_1dev")) == (("rdmap0s29", "0000:00:1d.0"),)
    assert parse_efa_table(text("aws_describe_instance_types_p4d_table")) == {"p4d.24xlarge": 4}
