"""What a node's probe tells, frozen: GPUs, their processes, mounts, EFA counters, kernel messages.

Strings have passed `cockpit.text.printable`. Wall times are seconds since the epoch on the node's own clock.
A value that was not read is a `Missing` with its reason, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class Lack(str, Enum):
    """Why a value is not there."""

    UNSUPPORTED = "unsupported"  # this GPU, driver or mode does not have it
    DENIED = "denied"  # not permitted to the login of the probe
    FAILED = "failed"  # asked for, and the question failed
    LOST = "lost"  # the GPU itself is in trouble: fell off the bus, needs a reset
    NOT_READ = "not read"  # nobody has asked (yet), or nobody could


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that is not there, with the reason in words; `code` is NVML's return code when it gave one."""

    kind: Lack
    why: str = ""
    code: int | None = None


NOT_READ = Missing(Lack.NOT_READ)
Value: TypeAlias = float | Missing


def known(value: Value) -> float | None:
    """The number, None when there is none."""
    return None if isinstance(value, Missing) else value


class DriverState(str, Enum):
    """How the accelerators of a node are read, or why they are not."""

    STARTING = "starting"
    OK = "ok"  # NVML answers
    SMI = "nvidia-smi"  # NVML cannot be used here, nvidia-smi answers
    NEURON = "neuron"  # AWS Trainium or Inferentia
    DCGM = "dcgm"  # DCGM's exporter answers, read from a Prometheus
    SILENT = "silent"  # asked, and overdue by some seconds: no trouble yet, but nothing is known of now
    SLOW = "slow"  # asked, no answer yet, for longer than is normal
    HUNG = "hung"  # driver not answering: its reader was killed and may still be stuck
    CRASHED = "crashed"  # the driver's library ended the process that asked it
    FAILED = "failed"  # the driver refuses: not loaded, another version than the library, ...
    ABSENT = "absent"  # no driver, no program
    UNKNOWN = "unknown"  # not told


@dataclass(frozen=True, slots=True)
class Driver:
    """State of the driver. `since` is when the trouble began, None while all is well."""

    state: DriverState
    since: float | None = None
    why: str = ""
    code: int | None = None  # NVML's return code when the driver itself refused
    version: str = ""
    nvml: str = ""
    cuda: str = ""
    answer_ms: float | None = None  # how long its last answer took: growing is a finding


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One MIG device of a GPU."""

    gpu_instance: int | None
    compute_instance: int | None
    uuid: str = ""
    name: str = ""
    mem_total_mib: Value = NOT_READ
    mem_used_mib: Value = NOT_READ


@dataclass(frozen=True, slots=True)
class Gpu:
    """What a GPU is, as far as it was ever told; `key` stays the same over resets and reboots."""

    key: str  # UUID, else PCI bus id, else "#index"
    index: int | None = None  # NVML's; changes when another GPU is lost
    minor: int | None = None  # N of /dev/nvidiaN
    uuid: str = ""
    pci: str = ""  # domain:bus:device, lower-case hex
    name: str = ""
    serial: str = ""
    mem_total_mib: Value = NOT_READ
    sm_clock_max_mhz: Value = NOT_READ
    pcie_gen_max: Value = NOT_READ
    pcie_width_max: Value = NOT_READ
    mig: bool | None = None  # None: not told, or not supported
    unified_memory: bool = False  # total is 0: it shares the host's memory


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds a GPU. Fields are None or empty where the login may not see them."""

    gpu: str  # key of the GPU
    pid: int
    mem_mib: Value = NOT_READ
    gpu_instance: int | None = None
    exists: bool | None = None  # False: the driver names a pid that is not there; None: not looked up yet
    user: str = ""
    command: str = ""
    started_at: float | None = None
    job_id: int | None = None  # Slurm's, from the process's cgroup
    step: str = ""
    task: str = ""
    rank: Value = NOT_READ
    local_rank: Value = NOT_READ
    procid: Value = NOT_READ  # SLURM_PROCID
    world_size: Value = NOT_READ


@dataclass(frozen=True, slots=True)
class GpuSample:
    """Readings of one GPU. `lost` says why it gives none; the last good readings stay, with their age."""

    gpu: Gpu
    taken_at: float | None = None  # of the fast readings; None: there were none yet
    slow_at: float | None = None  # of power limit, ECC, remap, NVLink, PCIe, recovery action
    lost: Missing | None = None
    util_pct: Value = NOT_READ
    mem_util_pct: Value = NOT_READ
    mem_used_mib: Value = NOT_READ
    temp_c: Value = NOT_READ
    hbm_temp_c: Value = NOT_READ
    power_w: Value = NOT_READ
    sm_clock_mhz: Value = NOT_READ
    throttle_mask: Value = NOT_READ
    throttle: tuple[str, ...] = ()  # the mask in words
    power_limit_w: Value = NOT_READ
    ecc_corrected: Value = NOT_READ  # since the driver was loaded
    ecc_uncorrected: Value = NOT_READ
    ecc_corrected_per_s: float | None = None  # None: no two readings to compare yet
    remap_pending: Value = NOT_READ
    remap_failed: Value = NOT_READ
    nvlinks_down: Value = NOT_READ
    nvlinks: Value = NOT_READ
    pcie_gen: Value = NOT_READ
    pcie_width: Value = NOT_READ
    recovery_action: Value = NOT_READ
    recovery: str = ""  # in words; "None" when nothing is needed, empty when it is not known
    instances: tuple[MigInstance, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """An event that NVML told: `kind` is xid, gpu unavailable, recovery action, or its number."""

    at: float
    gpu: str  # key of the GPU; empty when it is none that is known
    kind: str
    data: int  # the Xid's number


@dataclass(frozen=True, slots=True)
class KernelMessage:
    """One raw line of the kernel log; boot_id differs from the node's when it is of an earlier boot."""

    at: float
    text: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class StuckProcess:
    """A process in uninterruptible sleep; `seen_s` is how long the probe has seen it so."""

    pid: int
    command: str
    wait_channel: str
    seen_s: float


@dataclass(frozen=True, slots=True)
class MountReading:
    """How full a file system is. `hung_since` is set while it does not answer; `error` when it answers so."""

    path: str
    kind: str
    source: str = ""
    total_mib: float | None = None
    used_mib: float | None = None
    available_mib: float | None = None
    inodes: float | None = None
    inodes_used: float | None = None
    hung_since: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class EfaDevice:
    """Counters of one EFA device since its reset, as the driver names them (`dev.` before those of the device)."""

    name: str
    gid: str = ""
    counters: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeReading:
    """Everything known of a node after one line of its probe.

    `events` and `messages` hold only what that line brought; all else is the latest that was told.
    """

    taken_at: float
    number: int
    hostname: str = ""
    boot_id: str = ""
    booted_at: float | None = None
    kernel: str = ""
    cpus: int | None = None
    interval_s: float | None = None
    load: tuple[float, ...] = ()
    mem_total_mib: float | None = None
    mem_available_mib: float | None = None
    stuck_count: int | None = None
    stuck: tuple[StuckProcess, ...] = ()
    driver: Driver = Driver(DriverState.UNKNOWN)
    gpus: tuple[GpuSample, ...] = ()
    pci_gpus: tuple[str, ...] = ()  # NVIDIA GPUs as the kernel sees them on the bus
    hidden_gpus: tuple[int, ...] = ()  # N of each /dev/nvidiaN that the probe's login or cgroup may not open
    processes: tuple[GpuProcess, ...] = ()
    processes_at: float | None = None  # when they were last asked for; None: never
    mounts: tuple[MountReading, ...] = ()
    efa: tuple[EfaDevice, ...] = ()
    efa_at: float | None = None
    events: tuple[GpuEvent, ...] = ()
    messages: tuple[KernelMessage, ...] = ()
    messages_dropped: int = 0
    log_source: str = ""  # journal, kmsg or dmesg; empty: the kernel log is not readable
    not_read: Mapping[str, str] = field(default_factory=dict)  # what cannot be read, and why
    bad_lines: int = 0  # lines of the probe that could not be understood
    bad_line: str = ""  # what was wrong with the last one

    @property
    def uptime_s(self) -> float | None:
        """Since boot, on the node's clock."""
        return None if self.booted_at is None else max(0.0, self.taken_at - self.booted_at)
