"""fi_info, counters, fi_pingpong and the rest around EFA, in every form in which they are seen."""

from __future__ import annotations

import pytest

from cockpit.formats.efa_counters import Window, counters_of_rows, parse_counters, window
from cockpit.formats.efa_tools import (
    parse_efa_table,
    parse_ibv_devinfo,
    parse_installed,
    parse_ls_devices,
    parse_ping,
    size_of,
)
from cockpit.formats.fi_info import libfabric_version, parse_fi_info, parse_fi_version


def entry(device: str, fabric: str = "efa", version: str = "122.0", indent: str = "    ") -> str:
    return f"provider: efa\n{indent}fabric: {fabric}\n{indent}domain: {device}\n{indent}version: {version}\n"


def test_a_device_with_several_entries_is_one() -> None:
    text = entry("rdmap47s0-rdm", "efa-direct", "201.0") + entry("rdmap47s0-rdm", version="201.0")
    told = parse_fi_info(text + entry("rdmap47s0-dgrm", version="201.0"))
    assert told.devices == ("rdmap47s0",)
    assert told.entries == 3
    assert told.fabrics == ("efa-direct", "efa")
    assert told.provider_version == "2.1"


def test_old_output_without_indentation_counts_the_same() -> None:
    text = "".join(entry(f"efa_{n}-rdm", f"EFA-fe80::{n}", "111.0", "") for n in range(4))
    assert parse_fi_info(text).devices == ("efa_0", "efa_1", "efa_2", "efa_3")


def test_the_error_is_read_as_no_device() -> None:
    told = parse_fi_info("fi_getinfo: -61 (No data available)\n")
    assert (told.no_device, told.error, told.error_text) == (True, -61, "No data available")
    assert not parse_fi_info("fi_getinfo: -22 (Invalid argument)").no_device


@pytest.mark.parametrize(
    ("word", "version"), [("111.0", "1.11"), ("120.0", "1.20"), ("204.0", "2.4"), ("2.0", ""), ("x", "")]
)
def test_versions_of_the_provider(word: str, version: str) -> None:
    assert libfabric_version(word) == version


def test_the_version_of_libfabric() -> None:
    assert (
        parse_fi_version("fi_info: 1.22.0amzn4.0\nlibfabric: 1.22.0amzn4.0\nlibfabric api: 1.22\n") == "1.22.0amzn4.0"
    )
    assert parse_fi_version("bash: fi_info: not found") == ""


PATH = "/sys/class/infiniband/rdmap1s0/ports/1/hw_counters"


def test_counters_in_three_printed_forms() -> None:
    grep = (
        f"{PATH}/lifespan:12\n{PATH}/tx_bytes:84417311044934\n/sys/class/infiniband/rdmap1s0/hw_counters/cmds_err:3\n"
    )
    more = (
        f"::::::::::::::\n{PATH}/lifespan\n::::::::::::::\n12\n:::::\n{PATH}/tx_bytes\n::::::::::::::\n84417311044934\n"
    )
    rdma = "link rdmap1s0/1 \n    tx_bytes 84417311044934 \n"
    assert parse_counters(grep) == {"rdmap1s0": {"tx_bytes": 84417311044934, "dev.cmds_err": 3}}
    assert parse_counters(more) == parse_counters(rdma) == {"rdmap1s0": {"tx_bytes": 84417311044934}}
    assert parse_counters("nonsense\n\x1b[2J\n") == {}


def rows(**values: int | None) -> dict[str, dict[str, int | None]]:
    return dict(counters_of_rows([["a", "gid", list(values), list(values.values())]]))  # type: ignore[arg-type]


def test_a_window_counts_only_what_grew() -> None:
    before = rows(tx_bytes=100, retrans_timeout_events=5, rx_drops=9)
    told = window(before, rows(tx_bytes=350, retrans_timeout_events=5, rx_drops=9), 5.0)
    assert told.total == {"tx_bytes": 250}
    assert told.growth("retrans_timeout_events", "rx_drops") == {}
    assert told.has_srd


def test_a_counter_that_fell_is_a_reset_and_no_growth() -> None:
    told = window(rows(tx_bytes=100, rx_drops=1), rows(tx_bytes=5, rx_drops=2), 5.0)
    assert told.reset == ("a",)
    assert told.grown == {}


def test_old_cards_have_no_retransmission_counters() -> None:
    assert not window(rows(tx_bytes=1), rows(tx_bytes=1), 1.0).has_srd
    assert Window(1.0).total == {}
    assert window({}, rows(tx_bytes=7), 1.0).grown == {}  # nothing to compare with
    assert window(rows(tx_bytes=None), rows(tx_bytes=7), 1.0).grown == {}


PING = """bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      10      =10      1.2k        0.00s      1.77      36.25       0.03
256     10      =10      5k          0.00s     14.80      17.30       0.06
1m      10      =10      20m         0.01s   2359.00     444.50       0.00
"""


def test_pings() -> None:
    told = parse_ping(PING)
    assert [row.size_bytes for row in told.rows] == [64, 256, 2**20]
    assert told.largest is not None
    assert told.largest.mb_s == 2359.0
    assert told.latency_us == 17.30  # the first size also counts the set-up
    assert not told.datagrams
    assert not told.shared_memory(100)
    assert parse_ping(PING.replace("=10", "-8", 1)).rows[0].complete is False


def test_a_ping_that_failed_keeps_its_words() -> None:
    told = parse_ping("fi_pingpong: util/pingpong.c:1: ret=-113 (No route to host)\n")
    assert told.rows == ()
    assert "No route to host" in told.errors[0]


def test_sizes_of_pings() -> None:
    assert [size_of(word) for word in ("64", "1k", "64k", "1m", "1g")] == [64, 1024, 65536, 2**20, 2**30]


def test_the_installers_note() -> None:
    rpm = parse_installed(
        "# EFA installer version: 1.7.0\n# Debug packages installed: no\n# Packages installed:\n"
        "efa-1.4.1-1.amzn2.x86_64 libfabric-aws-1.8.1amzn1.2-1.amzn2.x86_64\n"
    )
    assert (rpm.version, rpm.package("efa"), rpm.package("libfabric-aws")[:10]) == (
        "1.7.0",
        "1.4.1-1.amzn2.x86_64",
        "1.8.1amzn1",
    )
    assert parse_installed("").version == ""
    assert parse_installed("# EFA installer version: \x1b[31m9\n").version.isprintable()


def test_devices_of_ibv_devinfo() -> None:
    text = "hca_id:\tefa_0\n\tvendor_part_id:\t61344\n\thw_ver:\t0xEFA0\nhca_id: mlx5_0\n\tvendor_part_id: 4124\n"
    efa, other = parse_ibv_devinfo(text)
    assert (efa.name, efa.is_efa, efa.hw_version) == ("efa_0", True, "0xEFA0")
    assert not other.is_efa


def test_the_folder_of_devices() -> None:
    line = (
        "lrwxrwxrwx. 1 root root 0 Jan 7 09:10 rdmap0s29 -> ../../devices/pci0000:00/0000:00:1d.0/infiniband/rdmap0s29"
    )
    assert parse_ls_devices(f"total 0\n{line}\n") == (("rdmap0s29", "0000:00:1d.0"),)


def test_ec2s_table() -> None:
    text = "|  EfaSupported | InstanceType | MaxEfaInterfaces |\n|  True | p4d.24xlarge | 4 |\n"
    assert parse_efa_table(text) == {"p4d.24xlarge": 4}
    assert parse_efa_table("An error occurred") == {}
