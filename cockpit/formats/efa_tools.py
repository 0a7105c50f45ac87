"""Programs around EFA: ibv_devinfo, fi_pingpong, efa_test.sh; the installer's list, the device folder, EC2's table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cockpit.text import printable

_INSTALLER = re.compile(r"EFA installer version: ?(\S{1,40})")
_PACKAGE = re.compile(r"([A-Za-z][\w.+-]*?)[-_](\d[\w.+~-]*)")
_ROW = re.compile(
    r"(?:\[[^\]]{0,40}\] |\s*\d+: )?(\d+[kmg]?)\s+(\d+)\s+([=+-])(\d+)\s+\S+\s+[\d.]+s"
    r"\s+([\d.]+)\s+([\d.]+)\s+[\d.]+\s*"
)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_EFA_PART = range(0xEFA0, 0xEFB0)


@dataclass(frozen=True, slots=True)
class IbDevice:
    """One device of ibv_devinfo. Zero GUIDs, firmware 0.0.0.0 and unspecified transport are normal for EFA."""

    name: str
    vendor_part_id: int | None = None
    hw_version: str = ""
    node_guid: str = ""

    @property
    def is_efa(self) -> bool:
        return self.vendor_part_id in _EFA_PART


def parse_ibv_devinfo(text: str) -> tuple[IbDevice, ...]:
    """Every device, in order; the port state is left out, since the driver of EFA makes it up."""
    found: list[dict[str, str]] = []
    for line in text.splitlines():
        key, mark, value = line.strip().partition(":")
        if key == "hca_id":
            found.append({"name": printable(value.strip()[:64])})
        elif mark and found:
            found[-1].setdefault(key, printable(value.strip()[:64]))
    return tuple(
        IbDevice(
            each["name"],
            int(part) if (part := each.get("vendor_part_id", "")).isdecimal() and len(part) < 10 else None,
            each.get("hw_ver", ""),
            each.get("node_guid", ""),
        )
        for each in found
    )


@dataclass(frozen=True, slots=True)
class PingRow:
    """One size of fi_pingpong: bytes, messages sent and acknowledged, MB/s, µs a transfer (one way)."""

    size_bytes: int
    sent: int
    acknowledged: int
    mb_s: float
    latency_us: float
    complete: bool


@dataclass(frozen=True, slots=True)
class Ping:
    """What fi_pingpong measured. `success` is efa_test.sh's own last word, None when it has none."""

    rows: tuple[PingRow, ...] = ()
    success: bool | None = None
    errors: tuple[str, ...] = ()

    @property
    def largest(self) -> PingRow | None:
        return max(self.rows, key=lambda row: row.size_bytes, default=None)

    @property
    def latency_us(self) -> float | None:
        """Of small messages after the first, which also counts the set-up; None without any."""
        small = [row.latency_us for row in self.rows if 64 < row.size_bytes <= 4096]
        return min(small, default=None)

    @property
    def datagrams(self) -> bool:
        """Whether it looks like the default endpoint, which ends at 4k: no bandwidth test."""
        return bool(self.rows) and max(row.size_bytes for row in self.rows) <= 4096

    def shared_memory(self, nic_gbps: float) -> bool:
        """Whether the data cannot have gone over a device of this rate: it proves the software, not the wire."""
        return any(row.mb_s > nic_gbps * 125 for row in self.rows)


def parse_ping(text: str | Iterable[str]) -> Ping:
    """Rows of the client or of both sides; a `[rank N]` before them is passed over."""
    rows: list[PingRow] = []
    errors: list[str] = []
    success: bool | None = None
    for line in (text.splitlines() if isinstance(text, str) else list(text))[:2000]:
        if found := _ROW.fullmatch(line.rstrip()):
            acks = int(found[2]) + {"=": 0, "+": int(found[4]), "-": -int(found[4])}[found[3]] * (found[3] != "=")
            rows.append(
                PingRow(size_of(found[1]), int(found[2]), acks, float(found[5]), float(found[6]), found[3] != "-")
            )
        elif "SUCCESS" in line:
            success = True
        elif re.search(r"error|fail|timed? ?out|refused|unreachable|fi_\w+\(\)|-\d+ \(", line, re.IGNORECASE):
            errors.append(printable(line.strip()[:200]))
    return Ping(tuple(rows), success, tuple(errors[:20]))


def size_of(word: str) -> int:
    """`64k` of fi_pingpong's size column, which counts in 1024s (its other columns in 1000s)."""
    unit = word[-1:] if word[-1:] in "kmg" else ""
    return int(word.removesuffix(unit)) * _UNITS[unit]


@dataclass(frozen=True, slots=True)
class Installed:
    """/opt/amazon/efa_installed_packages: the installer's version, and the packages that count."""

    version: str = ""
    packages: tuple[tuple[str, str], ...] = ()  # (name, version with release)

    def package(self, *starts: str) -> str:
        """The version of the first package that begins so; "" without one."""
        return next((version for start in starts for name, version in self.packages if name == start), "")


def parse_installed(text: str) -> Installed:
    """The file as the installer writes it; rpm and deb names alike."""
    lines = text.splitlines()
    version = next((found[1] for line in lines if (found := _INSTALLER.search(line))), "")
    words = [word for line in lines if not line.startswith("#") for word in line.split()]
    pairs = (found.groups() for word in words[:500] if (found := _PACKAGE.fullmatch(word)))
    return Installed(printable(version), tuple((printable(name), printable(number)) for name, number in pairs))


_LINK = re.compile(r"l[rwx-]{9}\S* .* (\S+) -> (\S+)")
_ADDRESS = re.compile(r"/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/infiniband/")


def parse_ls_devices(text: str) -> tuple[tuple[str, str], ...]:
    """`ls -l /sys/class/infiniband`: (device, PCI address or "")."""
    found = (link.groups() for line in text.splitlines() if (link := _LINK.fullmatch(line.strip())))
    return tuple(
        (printable(name), address[1] if (address := _ADDRESS.search(target)) else "") for name, target in found
    )


def parse_efa_table(text: str) -> dict[str, int]:
    """`aws ec2 describe-instance-types` as its table: instance type -> the most EFA interfaces."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.count("|") > 2]
    head = next((row for row in rows if "MaxEfaInterfaces" in row and "InstanceType" in row), None)
    if head is None:
        return {}
    kind, most = head.index("InstanceType"), head.index("MaxEfaInterfaces")
    fitting = (row for row in rows if len(row) == len(head) and row[most].isdecimal())
    return {printable(row[kind]): int(row[most]) for row in fitting}
