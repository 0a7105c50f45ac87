"""The machines of a rig: entering them by namespace or by ssh, disturbing them, booting them."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.rig import procs
from tests.rig.nvml import NvmlControl, missing
from tests.rig.require import SEARCH
from tests.rig.spec import HEAD, TOOLS, Layout, Spec

T = TypeVar("T")
Done = subprocess.CompletedProcess[bytes]


class RigError(Exception):
    """The rig could not do what was asked; says which daemon and shows the end of its log."""


class Machines:
    """What runs in one state directory. Names are node names or `head`."""

    head = HEAD

    def __init__(self, state: Path, spec: Spec) -> None:
        self.spec = spec
        self.state = state.absolute()
        self.layout = Layout(self.state, -1, spec)
        self._root: tuple[int, int] | None = None  # pid and start of the process that holds everything

    @property
    def ssh_config(self) -> Path:
        return self.layout.ssh_config

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.spec.nodes

    @property
    def static_nodes(self) -> tuple[str, ...]:
        return self.spec.static_nodes

    @property
    def dynamic_nodes(self) -> tuple[str, ...]:
        return self.spec.dynamic_nodes

    @property
    def running(self) -> bool:
        return self._root is not None and procs.alive(*self._root)

    def is_up(self, name: str) -> bool:
        """Whether the machine has its namespaces, whatever its daemons do."""
        return self._init(self._machine(name)) is not None

    def address(self, name: str) -> tuple[str, int]:
        """Address and port of a machine's sshd."""
        return self.layout.address(self._machine(name)), self.layout.sshd_port

    def tools(self, name: str) -> Path:
        """The folder that comes first in PATH on that machine, for stand-ins."""
        return self.layout.host_dir(self._machine(name)) / "bin"

    def nvml(self, name: str) -> NvmlControl:
        """What a node's GPUs are like, to be changed while it runs. RigError where there is no NVML stand-in."""
        path = self.layout.nvml_state(self._machine(name))
        if not path.exists():
            raise RigError(missing() or f"{name} has no GPUs")
        return NvmlControl(path)

    # -- enter

    def slurm(self, *argv: str | bytes, stdin: bytes = b"", timeout_s: float = 30.0, cwd: str = "root") -> Done:
        """Run a Slurm command (or any other) inside the head; status 124 when it took too long."""
        return self.inside(HEAD, *argv, stdin=stdin, timeout_s=timeout_s, cwd=cwd)

    def inside(
        self, name: str, *argv: str | bytes, stdin: bytes = b"", timeout_s: float = 30.0, cwd: str = "root"
    ) -> Done:
        """Run a command inside a machine, past its sshd. `cwd` is a user's home. RigError when it is down."""
        name = self._machine(name)
        init = self._init(name)
        if init is None:
            raise RigError(f"{name} is not running")
        # nsenter forks, so a deadline must act inside: killing nsenter would leave the command behind.
        enter = ["nsenter", "-t", str(init), "-m", "-u", "-p", "-r", "timeout", "-k", "1", str(timeout_s)]
        # Entering moves to the root folder (`-r`: the machine's own, which counts when all this is in a chroot).
        enter += ["env", "--chdir", str(self.state / "home" / cwd)]
        env = {
            "PATH": f"{TOOLS}:{SEARCH}",
            "HOME": str(self.state / "home" / "root"),
            "SLURM_CONF": str(self.layout.slurm_conf),
            "LD_LIBRARY_PATH": str(self.layout.library_dir),
        }
        return subprocess.run([*enter, *argv], input=stdin, capture_output=True, env=env, check=False)

    def head_ssh(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        """Run argv on the head by the system's ssh. subprocess.TimeoutExpired when it took too long."""
        return self.ssh(HEAD, argv, stdin=stdin, timeout_s=timeout_s)

    def ssh(self, name: str, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        """The same on any machine: nodes are reached through the head (ProxyJump)."""
        name = self._machine(name)
        jump = [] if name == HEAD else ["-J", HEAD]
        line = ["ssh", "-F", str(self.ssh_config), *jump, name, shlex.join(argv)]
        return subprocess.run(line, input=stdin, capture_output=True, timeout=timeout_s, check=False)

    @staticmethod
    def wait_for(predicate: Callable[[], T], timeout_s: float = 30.0, what: str = "") -> T:
        """Ask every 0.1 s until the answer is true, and return it. TimeoutError when it never was."""
        until = time.monotonic() + timeout_s
        while not (answer := predicate()):
            if time.monotonic() > until:
                raise TimeoutError(f"waited {timeout_s:g} s for {what or predicate}")
            time.sleep(0.1)
        return answer

    def processes(self, name: str) -> list[str]:
        """Command lines of everything that runs on a machine, also on a frozen one; none when it is down."""
        lines = [procs.command_line(pid) for pid, _ in self._members(self._machine(name))]
        return [line for line in lines if line]

    def pids(self, name: str, program: str = "") -> list[int]:
        """The pids outside of what runs on a machine, or of one program there, oldest first."""
        members = self._members(self._machine(name))
        found = [(ticks, pid) for pid, ticks in members if program in ("", procs.program(pid))]
        return [pid for _, pid in sorted(found)]

    def restart_sshd(self, name: str) -> None:
        """End every login of a machine and let its sshd read its configuration anew."""
        listener, *sessions = self.pids(name, "sshd")
        for pid in sessions:
            if procs.start_ticks(pid) is not None:
                os.kill(pid, signal.SIGKILL)
        os.kill(listener, signal.SIGHUP)

    # -- disturb

    def freeze(self, name: str) -> None:
        """SIGSTOP every process of a machine: TCP still connects, nothing answers.

        `slurmctld` alone or `NODE/PROGRAM` stops only that program.
        """
        self._signal(name, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Undo freeze()."""
        self._signal(name, signal.SIGCONT)

    def kill_node(self, name: str) -> None:
        """End a machine (also `head`) at once, as if its instance were gone. boot() brings it back."""
        folder = self.layout.host_dir(self._machine(name))
        init = self._init(folder.name)
        if init is None:
            raise RigError(f"{name} is not running")
        os.kill(init, signal.SIGKILL)
        # The supervisor takes the file away when the last process is gone; a boot asked for earlier is lost.
        self.wait_for(lambda: not (folder / "ns").exists(), 10, f"{name} to end")

    def boot(self, name: str) -> None:
        """Start a machine that is down; returns at once, a node is idle about a second later."""
        self._request("boot", self._machine(name))

    def _signal(self, name: str, number: signal.Signals) -> None:
        name = "head/slurmctld" if name == "slurmctld" else name
        machine, _, program = name.partition("/")
        members = self._members(self._machine(machine))
        if program:
            members = [member for member in members if procs.program(member[0]) == program]
        if not members:
            raise RigError(f"{name} is not running")
        for pid, ticks in members:
            with contextlib.suppress(ProcessLookupError):  # it may end at any moment
                if procs.alive(pid, ticks):
                    os.kill(pid, number)

    def _request(self, verb: str, name: str) -> None:
        """One line to the supervisor: boot, halt or reboot a machine."""

        def opened() -> int | None:
            # Without O_NONBLOCK this would block for ever when the supervisor is gone.
            self._check_supervisor()
            try:
                return os.open(self.state / "requests", os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return None

        fifo = self.wait_for(opened, 10, "the supervisor to listen")
        assert fifo is not None
        os.write(fifo, f"{verb} {name}\n".encode())
        os.close(fifo)

    def _check_supervisor(self) -> None:
        if not self.running:
            raise RigError("the supervisor ended: " + log_tail(self.state / "supervisor.log"))

    def _machine(self, name: str) -> str:
        name = HEAD if name == "head" else name
        if name not in self.layout.machines:
            raise RigError(f"no machine named {name}")
        return name

    def _members(self, name: str) -> list[tuple[int, int]]:
        """Processes of one machine as (pid, start): below our root and in the machine's PID namespace."""
        try:
            namespace = (self.layout.host_dir(name) / "ns").read_text().strip()
        except FileNotFoundError:
            return []
        if self._root is None or not self.running:
            return []
        inside = [pid for pid in procs.descendants(self._root[0]) if procs.pid_namespace(pid) == namespace]
        return [(pid, ticks) for pid in inside if (ticks := procs.start_ticks(pid)) is not None]

    def _init(self, name: str) -> int | None:
        """The machine's PID 1, as a pid outside."""
        return next((pid for pid, _ in self._members(name) if procs.inner_pid(pid) == 1), None)


def log_tail(path: Path, lines: int = 15) -> str:
    """The last lines of a log, or what is wrong with it."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) or "(empty log)"
    except OSError:
        return "(no log)"
