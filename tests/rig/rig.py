"""Class Rig: start, use, disturb and end one cluster."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tests.rig import claim, files, procs
from tests.rig.require import SEARCH, missing
from tests.rig.spec import HEAD, Layout, Spec

T = TypeVar("T")
Done = subprocess.CompletedProcess[bytes]
PREFIX = "cockpit-rig-"
UNSHARE = ("unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child")
# Where to look when something does not come up: machine kind, program.
DAEMONS = {"head": ("sshd", "munged", "slurmctld"), "node": ("sshd", "munged", "slurmd")}


class RigError(Exception):
    """The rig could not do what was asked; says which daemon and shows the end of its log."""


class Rig:
    """One cluster in one state directory (default: a new one under /tmp, gone after down()).

    Names of machines are node names or `head`. The whole rig is one process tree below `root`, a process in a
    PID namespace of its own: when that ends, everything ends, also after this program was killed.
    """

    head = HEAD

    def __init__(self, state: Path | None = None, spec: Spec | None = None) -> None:
        self.spec = spec or Spec()
        # Jobs of other users must be able to reach it, which pytest's own temporary folders forbid.
        self.state = (state or Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))).absolute()
        self.layout = Layout(self.state, -1, self.spec)
        self._root: tuple[int, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def attach(cls, state: Path) -> Rig:
        """The rig that was started in that directory, running or not. FileNotFoundError when there is none."""
        saved = json.loads((state / "rig.json").read_text())
        rig = cls(state, Spec(**saved["spec"]))
        rig.layout = replace(rig.layout, instance=saved["instance"])
        rig._root = tuple(saved["root"]) if saved["root"] else None
        return rig

    # -- what it consists of

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

    def address(self, name: str) -> tuple[str, int]:
        """Address and port of a machine's sshd."""
        return self.layout.address(self._machine(name)), self.layout.sshd_port

    def tools(self, name: str) -> Path:
        """The folder that comes first in PATH on that machine, for stand-ins."""
        return self.layout.host_dir(self._machine(name)) / "bin"

    @property
    def running(self) -> bool:
        return self._root is not None and procs.alive(*self._root)

    # -- life

    def up(self, *, detach: bool = False, timeout_s: float = 60.0) -> Rig:
        """Start it and wait until the head answers and all static nodes are idle.

        Unless `detach`, it ends with this program, however that ends. RigError when something does not start.
        """
        if (reason := missing()) is not None:
            raise RigError(reason)
        _sweep()
        self._fresh_state()
        claimed = claim.claim()
        try:
            self.layout = replace(self.layout, instance=claimed.instance)
            files.write_all(self.layout)
            self._save()
            self._spawn(claimed.fd)
        finally:
            os.close(claimed.fd)
        try:
            self._bring_up(time.monotonic() + timeout_s)
        except BaseException:
            self._end()
            raise
        if detach:
            assert self._process is not None and self._process.stdin is not None
            self._process.stdin.write(b"detach\n")
            self._process.stdin.flush()
        return self

    def down(self) -> None:
        """End every process of the rig and remove its files. Also for a rig whose starter crashed."""
        self._end()
        if (self.state / "rig.json").exists() or self.state.name.startswith(PREFIX):
            shutil.rmtree(self.state, ignore_errors=True)

    def __enter__(self) -> Rig:
        return self.up()

    def __exit__(self, *_: object) -> None:
        self.down()

    def _fresh_state(self) -> None:
        if (self.state / "rig.json").exists():
            old = Rig.attach(self.state)
            if old.running:
                raise RigError(f"a rig already runs in {self.state}")
            old.down()
        self.state.mkdir(parents=True, exist_ok=True)
        if any(self.state.iterdir()):
            raise RigError(f"{self.state} is not empty and holds no rig; nothing is removed there")
        self.state.chmod(0o755)

    def _save(self) -> None:
        saved = {
            "instance": self.layout.instance,
            "lock": str(claim.lock_path(self.layout.instance)),
            "machines": self.layout.machines,
            "root": self._root,
            "spec": asdict(self.spec),
        }
        (self.state / "rig.new").write_text(json.dumps(saved, indent=1))
        (self.state / "rig.new").rename(self.state / "rig.json")

    def _spawn(self, lock_fd: int) -> None:
        supervisor = str(Path(__file__).with_name("supervisor.py"))
        with (self.state / "supervisor.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*UNSHARE, sys.executable, "-I", "-S", supervisor, str(self.state)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": SEARCH},
                pass_fds=(lock_fd,),
                start_new_session=True,  # ctrl-c in a terminal must not tear it apart
            )
        ticks = procs.start_ticks(self._process.pid)
        self._root = (self._process.pid, ticks or 0)
        self._save()

    def _bring_up(self, until: float) -> None:
        self._request("boot", HEAD)
        self._await("head", HEAD, until, lambda: self.slurm("scontrol", "ping").returncode == 0)
        if not (self.spec.booted and self.spec.static):
            return
        nodes = ",".join(self.static_nodes)
        self.slurm("scontrol", "update", f"nodename={nodes}", "state=power_up")
        self._await("node", self.static_nodes[0], until, self._static_idle)

    def _static_idle(self) -> bool:
        shown = self.slurm("sinfo", "-h", "-a", "-N", "-n", ",".join(self.static_nodes), "-o", "%T").stdout
        return set(shown.split()) == {b"idle"}

    def _await(self, kind: str, name: str, until: float, ready: Callable[[], bool]) -> None:
        while True:
            self._check_daemons()
            if self._init(name) is not None and ready():
                return
            if time.monotonic() > until:
                raise RigError(f"{name} did not come up in time\n" + self._logs(name, DAEMONS[kind]))
            time.sleep(0.05)

    def _check_daemons(self) -> None:
        if not self.running:
            raise RigError("the supervisor ended: " + _tail(self.state / "supervisor.log"))
        for ended in self.state.glob("hosts/*/ended"):
            program, _, status = ended.read_text().partition("\n")[0].partition(" ")
            name = ended.parent.name
            raise RigError(f"{program} on {name} ended with status {status}\n" + self._logs(name, (program,)))

    def _logs(self, name: str, programs: Sequence[str]) -> str:
        folder = self.layout.host_dir(name) / "log"
        return "\n".join(f"-- {program}: {_tail(folder / f'{program}.log')}" for program in programs)

    def _end(self) -> None:
        """Kill the root; the kernel then ends its namespace. Returns when nothing of it is left."""
        if self._root is not None and procs.alive(*self._root):
            tree = [(pid, procs.start_ticks(pid)) for pid in procs.descendants(self._root[0])]
            os.kill(self._root[0], signal.SIGKILL)
            left = [(pid, ticks) for pid, ticks in tree if ticks is not None]
            self.wait_for(lambda: not any(procs.alive(*process) for process in left), 10, "processes to end")
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
        self._root = self._process = None
        if self.layout.instance >= 0:
            claim.release(self.layout.instance)

    # -- use

    def slurm(self, *argv: str | bytes, stdin: bytes = b"", timeout_s: float = 30.0, cwd: str = "root") -> Done:
        """Run a Slurm command (or any other) inside the head's namespaces; status 124 when it took too long."""
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
        enter = ["nsenter", "-t", str(init), "-m", "-u", "-p", "timeout", "-k", "1", str(timeout_s)]
        env = {
            "PATH": f"{self.tools(name)}:{SEARCH}",
            "HOME": str(self.state / "home" / "root"),
            "SLURM_CONF": str(self.layout.slurm_conf),
        }
        home = self.state / "home" / cwd
        return subprocess.run([*enter, *argv], input=stdin, capture_output=True, cwd=home, env=env, check=False)

    def submit(self, script: str, **options: str | bytes | int | bool) -> int:
        """sbatch a script (text after `#!/bin/sh`) and return the job id.

        Options are sbatch's long ones with `_` for `-`: gpus_per_node=8, hold=True, job_name=b"\\x1b[2J". With
        `uid` the job runs as that user, in that user's home. RigError with sbatch's own words when refused.
        """
        argv: list[bytes] = [b"sbatch", b"--parsable"]
        for key, value in options.items():
            flag = b"--" + key.replace("_", "-").encode()
            if value is not False:
                argv.append(flag if value is True else flag + b"=" + _bytes(value))
        owner = next((name for name, uid in files.USERS.items() if uid == options.get("uid")), "root")
        done = self.slurm(*argv, stdin=f"#!/bin/sh\n{script}\n".encode(), cwd=owner)
        if done.returncode:
            raise RigError("sbatch: " + done.stderr.decode(errors="replace").strip())
        return int(done.stdout.split(b";")[0])

    def head_ssh(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        """Run argv on the head by the system's ssh. subprocess.TimeoutExpired when it took too long."""
        return self.ssh(HEAD, argv, stdin=stdin, timeout_s=timeout_s)

    def ssh(self, name: str, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        """The same on any machine: nodes are reached through the head (ProxyJump)."""
        name = self._machine(name)
        jump = [] if name == HEAD else ["-J", HEAD]
        line = ["ssh", "-F", str(self.ssh_config), *jump, name, shlex.join(argv)]
        return subprocess.run(line, input=stdin, capture_output=True, timeout=timeout_s, check=False)

    def config(self, filename: str = "config.yaml", **overrides: Any) -> Path:
        """Write a cockpit config with one cluster, `rig`, and return its path; overrides are keys of the entry."""
        entry: dict[str, Any] = {
            "kind": "slurm",
            "head": HEAD,
            "ssh_config": str(self.ssh_config),
            "nodes": {"via": "head", "user": "root", "port": self.layout.sshd_port, "max": 256},
        }
        path = self.state / filename
        path.write_text(yaml.safe_dump({"default": "rig", "clusters": {"rig": entry | overrides}}, sort_keys=False))
        return path

    @property
    def local_env(self) -> Mapping[str, str]:
        """Environment for a client outside the namespaces, and for a cockpit with `head: local`."""
        return {"SLURM_CONF": str(self.layout.local_slurm_conf)}

    @staticmethod
    def wait_for(predicate: Callable[[], T], timeout_s: float = 30.0, what: str = "") -> T:
        """Ask every 0.1 s until the answer is true, and return it. TimeoutError when it never was."""
        until = time.monotonic() + timeout_s
        while not (answer := predicate()):
            if time.monotonic() > until:
                raise TimeoutError(f"waited {timeout_s:g} s for {what or predicate}")
            time.sleep(0.1)
        return answer

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
        """End a machine at once, as if its instance were gone. boot() brings it back."""
        members = self._members(self._machine(name))
        init = self._init(name)
        if init is None:
            raise RigError(f"{name} is not running")
        os.kill(init, signal.SIGKILL)
        self.wait_for(lambda: not any(procs.alive(*member) for member in members), 10, f"{name} to end")

    def boot(self, name: str) -> None:
        """Start a machine that is down; returns at once, nodes are idle about a second later."""
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
            if procs.alive(pid, ticks):
                os.kill(pid, number)

    def _request(self, verb: str, name: str) -> None:
        with (self.state / "requests").open("r+b", buffering=0) as fifo:
            fifo.write(f"{verb} {name}\n".encode())

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
        return next((pid for pid, _ in self._members(self._machine(name)) if procs.inner_pid(pid) == 1), None)


def _sweep() -> None:
    """Remove what rigs left whose supervisor was killed outright: their processes are gone, their files not."""
    for saved in Path("/tmp").glob(f"{PREFIX}*/rig.json"):
        try:
            old = Rig.attach(saved.parent)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if old._root is not None and not old.running:
            old.down()


def _tail(path: Path, lines: int = 15) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) or "(empty log)"
    except OSError:
        return "(no log)"


def _bytes(value: str | bytes | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
