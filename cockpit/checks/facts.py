"""What one look told, in the terms of the checks: devices, counters, versions. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cockpit.catalog.checks import check_fact
from cockpit.catalog.instances import InstanceType, instance_type
from cockpit.checks.commands import shown_command
from cockpit.config import CheckSettings
from cockpit.formats.efa_counters import Counters, Window, counters_of_rows, parse_counters, window
from cockpit.formats.efa_tools import Installed, parse_installed
from cockpit.formats.fi_info import FiInfo, parse_fi_info, parse_fi_version
from cockpit.formats.look import NodeLook, Part, PartState
from cockpit.formats.probe_values import number

AMAZON = "0x1d0f"
_EFA_CLASS = range(0xEFA0, 0xEFB0)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a node beside the look itself. `expected_efa`: from EC2, or what the site's config asks for.

    `gpus` is Slurm's count; `jobs` the ids of the jobs on the node, None when nobody could tell.
    """

    node: str = ""
    queue: str = ""
    instance_type: str = ""
    expected_efa: int | None = None
    gpus: int | None = None
    jobs: tuple[int, ...] | None = None
    gpu_hot_c: float = 85.0
    job_settings: tuple[tuple[str, str], ...] = ()  # (where, NAME=value) of job scripts


@dataclass(frozen=True, slots=True)
class Device:
    """One EFA device. `p2p` names the provider of GPU memory; "" an empty file, None no such file."""

    name: str
    part_id: str = ""
    p2p: str | None = None


@dataclass(frozen=True)
class Facts:
    """One node's look with what is known beside it."""

    look: NodeLook
    known: Known = Known()
    settings: CheckSettings = field(default_factory=CheckSettings)

    def limit(self, check: str, name: str) -> float:
        """A threshold: the site's, else the catalogue's."""
        own = self.settings.thresholds.get(check, {}).get(name)
        return check_fact(check).thresholds[name] if own is None else own

    def part(self, name: str) -> Part:
        return self.look.part(name)

    def asked(self, *names: str) -> tuple[str, ...]:
        """The commands behind parts, as a person would type them."""
        return tuple(shown_command(name) for name in names)

    def file(self, part: str, path: str) -> str:
        """The content of one file of a part, "" when it is not there."""
        return self._files(part).get(path, "").strip()

    def _files(self, part: str) -> Mapping[str, str]:
        return {row[0]: row[1] for row in self.part(part).rows if len(row) == 2}

    @cached_property
    def type_name(self) -> str:
        """The instance type: as the cluster or EC2 tells it, else what the machine says of itself."""
        told = self.known.instance_type.removeprefix("ml.")
        if told:
            return told
        named = self.file("dmi", "/sys/devices/virtual/dmi/id/product_name")
        return named if re.fullmatch(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", named) else ""

    @cached_property
    def type(self) -> InstanceType | None:
        return instance_type(self.type_name)

    @cached_property
    def expected_efa(self) -> int | None:
        """How many EFA devices there should be; None when nobody knows."""
        if self.known.expected_efa is not None:
            return self.known.expected_efa
        return self.type.efa if self.type else None

    @cached_property
    def has_gpus(self) -> bool | None:
        """Whether the node has accelerators; None when nobody knows."""
        if self.type is not None:
            return self.type.count > 0
        if self.known.gpus is not None:
            return self.known.gpus > 0
        return True if self.versions.get("nvidia") else None

    @cached_property
    def uptime_s(self) -> float | None:
        words = self.file("host", "/proc/uptime").split()
        try:
            return number(float(words[0])) if words else None
        except ValueError:
            return None

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The devices of the EFA driver; others under /sys/class/infiniband are not counted."""
        of_driver = {path.split("/")[4]: to for path, to in self._files("drivers").items() if path.count("/") > 4}
        files = self._files("devices")
        names = dict.fromkeys([*of_driver, *(path.split("/")[4] for path in files if path.count("/") > 4)])
        return tuple(device for name in names if (device := _device(name, of_driver.get(name, ""), files)))

    @cached_property
    def on_bus(self) -> int:
        """How many EFA functions the PCI bus shows."""
        files = self._files("pci")
        folders = (path.rpartition("/")[0] for path, text in files.items() if text.strip() == AMAZON)
        return sum(_is_efa_part(files.get(f"{folder}/device", "")) for folder in folders)

    def pci_functions(self, vendor: str, *classes: str) -> int:
        """How many PCI functions of a vendor are of one of these classes."""
        files = self._files("pci")
        folders = {path.rpartition("/")[0] for path, text in files.items() if text.strip() == vendor}
        return sum(files.get(f"{folder}/class", "").strip()[:6] in classes for folder in folders)

    @cached_property
    def counters(self) -> tuple[Counters, Window | None]:
        """The counters now, and what they did within the window; None where only one reading was possible."""
        part = self.part("counters")
        if isinstance(part.data, dict):
            before, after = (counters_of_rows(part.data.get(key)) for key in ("before", "after"))
            return after, window(before, after, number(part.data.get("s")) or 0.0)
        return parse_counters(part.lines), None

    @cached_property
    def fi_info(self) -> FiInfo:
        return parse_fi_info(self.part("fi_info").lines)

    @cached_property
    def installed(self) -> Installed:
        rows = self.part("installed").rows
        return parse_installed(_text_of(self.part("installed")) if rows else "")

    @cached_property
    def modules(self) -> frozenset[str]:
        return frozenset(row[1].split()[0] for row in self.part("modules").rows if len(row) == 2 and row[1].split())

    def libraries(self, part: str) -> tuple[tuple[str, str], ...]:
        """(path, version or "") of the libraries that a part found."""
        return tuple((row[1], row[2]) for row in self.part(part).rows if len(row) == 3)

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Every version that is known, by the names of the catalogue's drift items."""
        found = {
            "kernel": self.file("host", "/proc/sys/kernel/osrelease"),
            "nvidia": self.file("host", "/sys/module/nvidia/version"),
            "efa": self.file("host", "/sys/module/efa/version"),
            "installer": self.installed.version,
            "libfabric": parse_fi_version("\n".join(self.part("fi_version").lines))
            if self.part("fi_version").done
            else "",
            "plugin": newest(version for _, version in self.libraries("plugin")),
            "nccl": newest(version for _, version in self.libraries("nccl")),
        }
        if self.look.reading is not None:
            found["nvidia"] = found["nvidia"] or self.look.reading.driver.version
        return {name: version for name, version in found.items() if version}


def _text_of(part: Part) -> str:
    """The whole content of a part's first file, with its lines."""
    data = part.data[0] if isinstance(part.data, list) and part.data else None
    content = data[1] if isinstance(data, list) and len(data) == 2 else ""
    return content if isinstance(content, str) else ""


def _device(name: str, driver: str, files: Mapping[str, str]) -> Device | None:
    base = f"/sys/class/infiniband/{name}/device"
    vendor = files.get(f"{base}/vendor", "").strip()
    if driver.rpartition("/")[2] != "efa" and vendor != AMAZON:
        return None
    p2p = files.get(f"{base}/p2p", files.get(f"{base}/gdr"))
    return Device(name, files.get(f"{base}/device", "").strip(), None if p2p is None else p2p.strip())


def _is_efa_part(text: str) -> bool:
    try:
        return int(text.strip(), 16) in _EFA_CLASS
    except ValueError:
        return False


def version_key(text: str) -> tuple[int, ...]:
    """The numbers at the beginning, so that 1.29.1 comes before 1.30."""
    found = re.match(r"v?(\d{1,9}(?:\.\d{1,9})*)", text)
    return tuple(int(word) for word in found[1].split(".")) if found else ()


def below(version: str, least: str) -> bool:
    """Whether a version is lower than the least; 1.30 is not lower than 1.30.0."""
    one, other = version_key(version), version_key(least)
    length = max(len(one), len(other))
    return bool(one) and one + (0,) * (length - len(one)) < other + (0,) * (length - len(other))


def newest(versions: object) -> str:
    """The highest of some versions; "" without any."""
    words = [str(version) for version in versions if version] if hasattr(versions, "__iter__") else []
    return max(words, key=version_key, default="")


def unanswered(part: Part) -> str:
    """Why a part told nothing, in words; "" when it did."""
    words = {
        PartState.DONE: "",
        PartState.LATE: "gave no answer in time",
        PartState.ABSENT: "is not on the node",
        PartState.FAILED: part.first or f"ended with status {part.rc}",
        PartState.UNASKED: "this node cannot be asked for it (no python3)",
    }
    return words[part.state]
