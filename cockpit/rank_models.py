"""What one look at a job's processes on a node told, frozen. Strings have passed `cockpit.text.printable`.

Wall times are on the node's own clock; `None` is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cockpit.gpu_models import MountReading


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a Python stack."""

    function: str
    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """A Python thread, innermost call first."""

    name: str
    frames: tuple[Frame, ...]
    active: bool = False
    has_gil: bool = False
    main: bool = False


@dataclass(frozen=True, slots=True)
class Dump:
    """The stacks of a process at one moment, or why there are none."""

    threads: tuple[ThreadStack, ...] = ()
    why: str = ""

    @property
    def main(self) -> ThreadStack | None:
        """The thread that runs the program."""
        return next((thread for thread in self.threads if thread.main), None)


@dataclass(frozen=True, slots=True)
class Pulse:
    """Counters that move while a process lives: CPU ticks of all threads; of the main one nanoseconds and switches."""

    at: float
    state: str = ""  # R, S, D, T, t, Z as the kernel writes it; "" when the process is gone
    cpu_ticks: int | None = None
    run_ns: int | None = None
    switches: int | None = None
    wait_channel: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """What a process waits in: the number of its system call, the file behind it, the kernel's stack."""

    call: str = ""
    file: str = ""
    kernel_stack: tuple[str, ...] = ()
    stuck_threads: tuple[tuple[str, str], ...] = ()  # (name, where) of those in uninterruptible sleep
    outputs: tuple[str, ...] = ()
    sockets: tuple[tuple[str, str], ...] | None = None  # (role, state) on the master's port; None: not read


@dataclass(frozen=True, slots=True)
class RankProcess:
    """A process of the job. `lead`: the one that stands for its rank."""

    pid: int
    parent: int
    command: str
    state: str
    program: str = ""
    rank: int | None = None
    local: int | None = None
    lead: bool = False
    step: str = ""
    threads: int | None = None
    started_s_after_boot: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    env_why: str = ""
    first: Pulse | None = None
    second: Pulse | None = None
    close: Close | None = None
    dumps: tuple[Dump, ...] = ()


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a file that ranks write, with its age on the clock of the machine that has it."""

    path: str
    data: bytes = b""
    size: int | None = None
    age_s: float | None = None
    whole: bool = False
    why: str = ""


# In the very words of probe/agent: tails.py, sweep.py.
OLDER = "it is older than the job"
NO_TIME = "files of the ranks"


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A flight record as it lies on the node, or why it was not read."""

    pid: int
    path: str
    data: bytes = b""
    why: str = ""

    @property
    def of_this_run(self) -> bool:
        """Whether the rank has written one since the job began, be it readable or not."""
        return self.why != OLDER


@dataclass(frozen=True, slots=True)
class NodeSweep:
    """Everything one node told; `ended` is False while, or when, the answer is not whole."""

    hostname: str = ""
    at: float | None = None  # when it began, on the node's clock
    booted_s: float | None = None  # seconds since boot, then
    boot_id: str = ""
    uid: int | None = None
    ptrace_scope: str = ""
    listed: tuple[tuple[int, str, int | None], ...] | None = None  # (pid, step, rank) by Slurm; None: not told
    processes: tuple[RankProcess, ...] | None = None  # None: not told
    mounts: tuple[MountReading, ...] = ()
    tails: tuple[LogTail, ...] = ()
    records: tuple[RecordFile, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    ended: bool = False
    bad_lines: int = 0

    @property
    def files_told(self) -> bool:
        """Whether what is missing of the ranks' files is not there: it had time to look at all of them."""
        return self.ended and not any(what == NO_TIME for what, _ in self.missing)
