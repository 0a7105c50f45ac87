"""Sets what the NVML stand-in answers, also while programs use it."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

ENV = "NVML_STAND_IN"  # names the control file
DEFAULT_PATH = Path("/run/nvml-stand-in.state")  # where the library looks without it

NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, ABSENT = 3, 4, 9, 13
LOST, RESET_REQUIRED, MISMATCH, UNKNOWN = 15, 16, 18, 999
XID_EVENT, UNAVAILABLE_EVENT, RECOVERY_EVENT = 0x8, 0x4000, 0x8000
MEMORY_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF

# What differs between models; the library's own defaults are those of h100.
MODELS: dict[str, dict[str, int | str]] = {
    "h100": {},
    "h200": {"name": "NVIDIA H200", "mem_total_mib": 143771, "max_mem": 3201, "pci_device_id": 0x233510DE},
    "a100": {
        "name": "NVIDIA A100-SXM4-40GB",
        "architecture": 7,
        "mem_total_mib": 40960,
        "power_limit_w": 400,
        "max_sm": 1410,
        "max_graphics": 1410,
        "max_mem": 1215,
        "pcie_max_gen": 4,
        "nvlinks": 12,
        "nvlink_mb_s": 25000,
        "nvlink_version": 4,
        "cc_major": 8,
        "pci_device_id": 0x20B010DE,
    },
    "b200": {
        "name": "NVIDIA B200",
        "architecture": 10,
        "mem_total_mib": 183359,
        "power_limit_w": 1000,
        "max_sm": 1965,
        "max_graphics": 1965,
        "max_mem": 3996,
        "nvlink_mb_s": 53125,
        "nvlink_version": 7,
        "cc_major": 10,
        "pci_device_id": 0x290110DE,
    },
    "l4": {
        "name": "NVIDIA L4",
        "architecture": 8,
        "mem_total_mib": 23034,
        "power_limit_w": 72,
        "max_sm": 2040,
        "max_graphics": 2040,
        "max_mem": 6251,
        "pcie_max_gen": 4,
        "nvlinks": 0,
        "cc_major": 8,
        "cc_minor": 9,
        "pci_device_id": 0x27B810DE,
        "fabric_state": 0,
    },
}

Gpus = int | Iterable[int] | None  # one, several, or all of them


class NvmlControl:
    """One control file; every method writes it anew, and the library sees the change at its next call.

    GPUs are named by their fixed number (0 is the first that ever was), not by NVML's index. Several objects on
    one path do not disturb each other, as long as they do not write at the same instant.
    """

    def __init__(self, path: Path, *, gpus: int = 8, model: str = "h100", seed: str = "") -> None:
        self.path = path
        self._lines: dict[tuple[str, str], list[bytes]] = {}
        if not path.exists():
            self._start(gpus, model, seed)

    # -- what is there

    def reset(self, *, gpus: int = 8, model: str = "h100", seed: str = "") -> None:
        """Back to that many healthy, idle GPUs; UUIDs and serial numbers follow from `seed`."""
        self._lines.clear()
        self._start(gpus, model, seed)

    def count(self, gpus: int) -> None:
        """How many GPUs the node has; at most 16."""
        self.set(None, "gpus", gpus, node=True)

    def model(self, model: str) -> None:
        """Make all GPUs of that model (a key of MODELS)."""
        for key, value in MODELS[model].items():
            self.set(None, key, value)

    def set(self, gpu: Gpus, key: str, value: object, *, node: bool = False) -> None:
        """Set any key of the control file; for the GPUs, for every GPU (None), or for the node."""
        shown = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
        if b"\n" in shown:
            raise ValueError("a value is one line")
        self._read()
        if gpu is None and not node:
            self._forget(key)  # what a single GPU was told would win
        for scope in self._scopes(gpu, node):
            self._lines[scope, key] = [shown]
        self._write()

    def clear(self, gpu: Gpus, *keys: str, node: bool = False) -> None:
        """Forget keys, so that the library's own values come back."""
        self._read()
        for key in keys:
            if gpu is None and not node:
                self._forget(key)
            for scope in self._scopes(gpu, node):
                self._lines.pop((scope, key), None)
        self._write()

    # -- what they do

    def load(self, percent: int, gpu: Gpus = None) -> None:
        """Work: use, memory, heat, power and clocks follow, drifting with time. 0 is idle."""
        self.set(gpu, "load", percent)

    def values(self, gpu: Gpus = None, **values: int | str) -> None:
        """Exact values that do not drift: util, mem_util, temp, mem_temp, power_w, clock_sm, mem_used_mib, ..."""
        for key, value in values.items():
            self.set(gpu, key, value)

    def hot(self, gpu: Gpus, celsius: int = 91, mask: int = 0x8 | 0x40) -> None:
        """Too hot, with the clocks held back (default: HW slowdown and HW thermal)."""
        self.values(gpu, temp=celsius, throttle=mask)

    def process(
        self,
        gpu: Gpus,
        pid: int,
        mem_bytes: int | None,
        kind: str = "compute",
        instance: tuple[int, int] | None = None,
    ) -> None:
        """Add a process: compute, graphics or mps; memory None is "not available"; `instance` is (GI, CI)."""
        bytes_ = MEMORY_UNKNOWN if mem_bytes is None else mem_bytes
        tail = "" if instance is None else f" {instance[0]} {instance[1]}"
        self._add(gpu, "process", f"{pid} {bytes_} {kind}{tail}")

    def no_processes(self, gpu: Gpus = None) -> None:
        """Take all processes away again."""
        self.clear(gpu, "process")

    def event(self, gpu: int, kind: int, data: int, instance: tuple[int, int] | None = None) -> None:
        """An event for everybody who listens by now; each event set is given it once."""
        self._read()
        number = 1 + sum(len(lines) for (_, key), lines in self._lines.items() if key == "event")
        tail = "" if instance is None else f" {instance[0]} {instance[1]}"
        self._add(gpu, "event", f"{number} {kind} {data}{tail}")

    def xid(self, gpu: int, code: int, instance: tuple[int, int] | None = None) -> None:
        """An Xid, as an NVML event."""
        self.event(gpu, XID_EVENT, code, instance)

    # -- faults of one GPU

    def lost(self, gpu: Gpus) -> None:
        """Every call on it fails with "GPU is lost"; it is still counted."""
        self.set(gpu, "all", LOST)

    def failing(self, gpu: Gpus, code: int = UNKNOWN) -> None:
        """Every call on it fails with that NVML return code."""
        self.set(gpu, "all", code)

    def well(self, gpu: Gpus = None) -> None:
        """Undo lost, failing, hang and crash of these GPUs (None: of the node and every GPU)."""
        if gpu is None:
            self.clear(None, "all", "slow_ms", node=True)
        self.clear(gpu, "all", "slow_ms")

    def gone(self, gpu: Gpus, *, back: bool = False) -> None:
        """Not enumerated any more: the count is smaller, and the indexes behind it shift."""
        self.set(gpu, "missing", 0 if back else 1)

    def ecc(self, gpu: Gpus, *, corrected: int = 0, uncorrected: int = 0, corrected_per_s: float = 0) -> None:
        """Volatile and aggregate error counts; with a rate the corrected ones grow from now on."""
        self.values(gpu, ecc_corrected=corrected, ecc_uncorrected=uncorrected)
        self.rate(gpu, "ecc_corrected", corrected_per_s)

    def rate(self, gpu: Gpus, key: str, per_s: float) -> None:
        """Make a counter grow from now on: ecc_corrected, pcie_replay, nvlink_crc_flit, ns_hw_thermal, ..."""
        self.set(gpu, f"{key}.rate", f"{per_s} {time.time()}")

    def remap(self, gpu: Gpus, *, pending: bool = False, failed: bool = False, rows: int = 0) -> None:
        """Remapped rows (uncorrectable ones), and whether one is pending or has failed."""
        self.values(gpu, remap_uncorrected=rows, remap_pending=int(pending), remap_failed=int(failed))

    def nvlinks_down(self, gpu: Gpus, *links: int) -> None:
        """These NVLinks are inactive, all others active."""
        self.set(gpu, "nvlinks_down", sum(1 << link for link in links))

    def pcie(self, gpu: Gpus, *, gen: int | None = None, width: int | None = None) -> None:
        """Current PCIe generation and width; None is the greatest."""
        for key, value in (("pcie_gen", gen), ("pcie_width", width)):
            if value is None:
                self.clear(gpu, key)
            else:
                self.set(gpu, key, value)

    def recovery_action(self, gpu: Gpus, action: int) -> None:
        """What the driver asks for: 0 nothing, 1 GPU reset, 2 node reboot, 4 drain and reset, ..."""
        self.set(gpu, "recovery_action", action)

    def unified_memory(self, gpu: Gpus = None) -> None:
        """Memory of total size 0, as GPUs report it that share the host's."""
        self.set(gpu, "mem_total_mib", 0)

    def duplicate(self, gpu: int, of: int) -> None:
        """Give a GPU the identity of another: the same UUID, serial number and place."""
        for key in ("uuid", "serial", "bus_id"):
            self.set(gpu, key, self._own(of, key))

    def mig(self, gpu: Gpus, *profiles: str) -> None:
        """MIG on, with one instance for each profile such as `1g.10gb`; without profiles off."""
        self._read()
        for number in self._numbers(gpu):
            self.clear(number, "mig_instance")
            for place, profile in enumerate(profiles):
                mib = int(profile.partition(".")[2].removesuffix("gb")) * 1024
                made = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.uuid(number)}/{place}")
                self._add(number, "mig_instance", f"{place + 7} 0 {mib} {profile} MIG-{made}")
        self.set(gpu, "mig", int(bool(profiles)))

    # -- faults of functions, fields and the whole library

    def function(self, name: str, fault: int | str | None, gpu: Gpus = None) -> None:
        """Let a function (its C name) fail with a code, `hang` or `crash`; None lets it work again.

        With ABSENT the program sees what it sees when a driver is too old to have the function.
        """
        node = gpu is None
        if fault is None:
            self.clear(gpu, f"fn.{name}", node=node)
        else:
            self.set(gpu, f"fn.{name}", fault, node=node)

    def field(self, field: int, code: int, gpu: Gpus = None) -> None:
        """Let one field of nvmlDeviceGetFieldValues fail with that code; 0 lets it work again."""
        self.set(gpu, f"field.{field}", code)

    def hang(self, gpu: Gpus = None) -> None:
        """Every call (on these GPUs) blocks for ever; what already hangs is not freed by well()."""
        self.set(gpu, "all", "hang", node=gpu is None)

    def crash(self, gpu: Gpus = None) -> None:
        """Every call (on these GPUs) ends the program with SIGSEGV."""
        self.set(gpu, "all", "crash", node=gpu is None)

    def slow(self, ms: int, gpu: Gpus = None) -> None:
        """Every call (on these GPUs) takes that much longer."""
        self.set(gpu, "slow_ms", ms, node=gpu is None)

    def driver(self, version: str = "580.95.05", *, loaded: bool = True, matches: bool = True) -> None:
        """The driver's version, whether it is loaded, and whether the library fits to it."""
        self.set(None, "driver", version, node=True)
        self.set(None, "init_error", DRIVER_NOT_LOADED if not loaded else 0 if matches else MISMATCH, node=True)

    # -- asking

    def uuid(self, gpu: int) -> str:
        """The UUID of a GPU as NVML tells it."""
        return self._own(gpu, "uuid")

    def bus_id(self, gpu: int) -> str:
        """The PCI place of a GPU as NVML tells it, such as 00000000:53:00.0."""
        return self._own(gpu, "bus_id")

    # -- the file

    def _start(self, gpus: int, model: str, seed: str) -> None:
        self._lines["node", "gpus"] = [str(gpus).encode()]
        for gpu in range(gpus):
            made = uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/{gpu}")
            self._lines[str(gpu), "uuid"] = [f"GPU-{made}".encode()]
            self._lines[str(gpu), "serial"] = [str(made.int)[:13].encode()]
            # The places of a p5.48xlarge, and the next free ones for more than eight.
            self._lines[str(gpu), "bus_id"] = [f"00000000:{(0x53 + 0x11 * gpu) & 0xFF:02X}:00.0".encode()]
        self._write()
        self.model(model)

    def _own(self, gpu: int, key: str) -> str:
        self._read()
        return self._lines[str(gpu), key][0].decode()

    def _numbers(self, gpu: Gpus) -> tuple[int, ...]:
        if gpu is None:
            return tuple(range(int(self._lines["node", "gpus"][0])))
        return (gpu,) if isinstance(gpu, int) else tuple(gpu)

    def _scopes(self, gpu: Gpus, node: bool) -> list[str]:
        if node or gpu is None:
            return ["node" if node else "*"]
        return [str(number) for number in self._numbers(gpu)]

    def _forget(self, key: str) -> None:
        for number in self._numbers(None):
            self._lines.pop((str(number), key), None)

    def _add(self, gpu: Gpus, key: str, value: str) -> None:
        self._read()
        for number in self._numbers(gpu):
            self._lines.setdefault((str(number), key), []).append(value.encode())
        self._write()

    def _read(self) -> None:
        self._lines.clear()
        for line in self.path.read_bytes().split(b"\n")[:-1]:
            scope, _, rest = line.partition(b" ")
            key, _, value = rest.partition(b" ")
            self._lines.setdefault((scope.decode(), key.decode()), []).append(value)

    def _write(self) -> None:
        lines = [f"{scope} {key} ".encode() + value for (scope, key), values in self._lines.items() for value in values]
        # A new file in place of the old one: readers see all of a change or nothing of it.
        handle, unfinished = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(b"\n".join([*lines, b""]))
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, self.path)
