"""What the checks read on a demo node beside the probe: versions, limits, device files, and stub programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TYPE, EFA_DRIVER, NVIDIA_DRIVER, INSTALLER = "p5.48xlarge", "2.17.3", "570.133.20", "1.44.0"
_LIBFABRIC, _PLUGIN, _NCCL = "2.3.1amzn1.0", "1.17.2", "2.28.3"
_SLURMD_PID = 2101
_PACKAGES = (
    f"efa-{EFA_DRIVER}-1.amzn2023.noarch libfabric-aws-{_LIBFABRIC}-1.amzn2023.x86_64 "
    "libnccl-ofi-{plugin}-1.amzn2023.x86_64 rdma-core-58.amzn0-1.amzn2023.x86_64"
)
_HUGE = "HugePages_Total:    5128\nHugePages_Free:     5128\nHugepagesize:       2048 kB\n"
_STUBS = {
    "modinfo": f"echo {EFA_DRIVER}",
    "systemctl": "echo active",
    "timedatectl": "echo yes",
    "chronyc": 'echo "Reference ID    : A9FEA97B (169.254.169.123)"; echo "Leap status     : Normal"\n'
    'echo "System time     : 0.000021403 seconds slow of NTP time"',
}


def huge_pages() -> str:
    """The lines of /proc/meminfo that EFA's installer is behind."""
    return _HUGE


def make(folder: Path, devices: Sequence[str], plugin: str = "") -> None:
    """Write it all into a node's folder; `devices` are the names of its EFA devices, `plugin` another version of it."""
    for name, text in _files(plugin or _PLUGIN).items():
        _write(folder / name, text)
    for number in range(len(devices)):
        _write(folder / f"dev/infiniband/uverbs{number}", "")
    for number in range(8):
        _write(folder / f"dev/nvidia{number}", "")
    for name in ("ens5", "lo", "docker0"):
        (folder / f"sys/class/net/{name}").mkdir(parents=True)
    switch = folder / "parts/switch"
    _write(switch / "vendor", "0x10de\n")
    _write(switch / "class", "0x068000\n")
    for bus in range(4):
        (folder / f"sys/bus/pci/devices/0000:{bus + 5:02x}:00.0").symlink_to(switch)
    told = "".join(_fi_info(name) for name in devices)
    _write(folder / "tools/fi_info.txt", told)
    version = f"echo 'fi_info: {_LIBFABRIC}'; echo 'libfabric: {_LIBFABRIC}'"
    programs = _STUBS | {"fi_info": f'case "$1" in --version) {version} ;; *) cat "${{0}}.txt" ;; esac'}
    for name, text in programs.items():
        path = folder / "tools" / name
        _write(path, f"#!/bin/sh\n{text}\n")
        path.chmod(0o700)


def _files(plugin: str) -> dict[str, str]:
    packages = _PACKAGES.format(plugin=plugin)
    installed = (
        f"# EFA installer version: {INSTALLER}\n# Debug packages installed: no\n# Packages installed:\n{packages}\n"
    )
    limits = "Limit                     Soft Limit           Hard Limit           Units\n"
    limits += "Max locked memory         unlimited            unlimited            bytes\n"
    slurmd = f"proc/{_SLURMD_PID}"
    return {
        "sys/module/efa/version": f"{EFA_DRIVER}\n",
        "sys/module/nvidia/version": f"{NVIDIA_DRIVER}\n",
        "sys/devices/virtual/dmi/id/product_name": f"{TYPE}\n",
        "proc/modules": "efa 143360 0\nefa_nv_peermem 16384 0\ngdrdrv 28672 0\nnvidia 11481088 9\n",
        "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {NVIDIA_DRIVER}\n",
        "proc/sys/kernel/yama/ptrace_scope": "0\n",
        f"{slurmd}/stat": f"{_SLURMD_PID} (slurmd) S 1 {'0 ' * 17}900 0 0\n",
        f"{slurmd}/limits": limits,
        f"{slurmd}/cgroup": "0::/system.slice/slurmd.service\n",
        f"{slurmd}/status": "Name:\tslurmd\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\n",
        "root/opt/amazon/efa_installed_packages": f"{installed}{packages}\n",
        "root/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so": f"NET/OFI Initializing aws-ofi-nccl {plugin}\n",
        f"root/usr/lib64/libnccl.so.{_NCCL}": "",
        "root/opt/gdrcopy/README": "",
    }


def _fi_info(device: str) -> str:
    entries = (("efa-direct", "rdm"), ("efa", "rdm"))
    return "".join(
        f"provider: efa\n    fabric: {fabric}\n    domain: {device}-{kind}\n    version: 203.0\n"
        f"    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\n"
        for fabric, kind in entries
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
