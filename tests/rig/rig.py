"""Class Rig: start, use and end one cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from tests.rig import claim, files, procs
from tests.rig.machines import Machines, RigError, log_tail
from tests.rig.require import SEARCH, missing
from tests.rig.spec import HEAD, Spec

PREFIX = "cockpit-rig-"
STARTING_S = 60  # so long a rig may have files and no process yet
UNSHARE = ("unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child")
# Where to look when something does not come up.
STUCK_S = 5.0
HEAD_DAEMONS = ("sshd", "munged", "slurmctld")
NODE_DAEMONS = ("sshd", "munged", "slurmd")


class Rig(Machines):
    """One cluster in one state directory (default: a new one under /tmp, gone after down()).

    The whole rig is one process tree in a PID namespace of its own. It ends as a whole, and unless detached
    with the program that started it, even when that is killed.
    """

    def __init__(self, state: Path | None = None, spec: Spec | None = None) -> None:
        # Jobs of other users must be able to reach it, which pytest's own temporary folders forbid.
        super().__init__(state or Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp")), spec or Spec())
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def attach(cls, state: Path) -> Rig:
        """The rig that was started in that directory, running or not; FileNotFoundError without one."""
        saved = json.loads((state / "rig.json").read_text())
        rig = cls(state, Spec(**saved["spec"]))
        rig.layout = replace(rig.layout, instance=saved["instance"])
        rig._root = tuple(saved["root"]) if saved["root"] else None
        return rig

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
        self.layout = replace(self.layout, instance=claimed.instance)
        try:
            try:
                self._save()
                files.write_all(self.layout)
                process = self._process = self._spawn(claimed.fd)
            finally:
                os.close(claimed.fd)
            self._bring_up(time.monotonic() + timeout_s)
        except BaseException:
            self._end()  # the files stay, for whoever looks for the reason
            raise
        if detach and process.stdin is not None:
            process.stdin.write(b"detach\n")
            process.stdin.flush()
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

    def _spawn(self, lock_fd: int) -> subprocess.Popen[bytes]:
        supervisor = str(Path(__file__).with_name("supervisor.py"))
        with (self.state / "supervisor.log").open("wb") as log:
            process = subprocess.Popen(
                [*UNSHARE, sys.executable, "-I", "-S", supervisor, str(self.state)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": SEARCH},
                pass_fds=(lock_fd,),
                start_new_session=True,  # ctrl-c in a terminal must not tear it apart
            )
        self._root = (process.pid, procs.start_ticks(process.pid) or 0)
        self._save()
        return process

    def _bring_up(self, until: float) -> None:
        self._request("boot", HEAD)
        self._await(HEAD, until, self._controller_up)
        if not (self.spec.booted and self.spec.static):
            return
        nodes = ",".join(self.static_nodes)
        self.slurm("scontrol", "update", f"nodename={nodes}", "state=power_up")
        self._await(self.static_nodes[0], until, self._static_idle)

    def _controller_up(self) -> bool:
        return self.slurm("scontrol", "ping").returncode == 0

    def _static_idle(self) -> bool:
        states = self._states()
        return all(states.get(name) == "idle+cloud" for name in self.static_nodes)

    def _states(self) -> dict[str, str]:
        shown = self.slurm("sinfo", "-h", "-a", "-N", "-O", "NodeList:0|,StateComplete:0").stdout.decode()
        return dict(line.split("|", 1) for line in shown.splitlines())

    def _await(self, name: str, until: float, ready: Callable[[], bool]) -> None:
        while True:
            self._check_daemons()
            if self.is_up(name) and ready():
                return
            if time.monotonic() > until:
                daemons = HEAD_DAEMONS if name == HEAD else NODE_DAEMONS
                raise RigError(f"{name} did not come up in time\n" + self._logs(name, daemons))
            time.sleep(0.05)

    def _check_daemons(self) -> None:
        self._check_supervisor()
        for ended in self.state.glob("hosts/*/ended"):
            program, _, status = ended.read_text().partition("\n")[0].partition(" ")
            name = ended.parent.name
            raise RigError(f"{program} on {name} ended with status {status}\n" + self._logs(name, (program,)))

    def _logs(self, name: str, programs: Sequence[str]) -> str:
        folder = self.layout.host_dir(name) / "log"
        return "\n".join(f"-- {program}: {log_tail(folder / f'{program}.log')}" for program in programs)

    def _end(self) -> None:
        """Kill the root; the kernel then ends its namespace. Returns when nothing of it is left."""
        if self._root is not None and procs.alive(*self._root):
            tree = [(pid, procs.start_ticks(pid)) for pid in procs.descendants(self._root[0])]
            os.kill(self._root[0], signal.SIGKILL)
            left = [(pid, ticks) for pid, ticks in tree if ticks is not None]
            self.wait_for(lambda: not any(procs.alive(*each) for each in left), 10, "processes to end")
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait()
        self._root = self._process = None
        if self.layout.instance >= 0:
            claim.release(self.layout.instance)

    # -- use

    def submit(self, script: str, **options: str | bytes | int | bool) -> int:
        """sbatch a script (text after `#!/bin/sh`) and return the job id.

        Options are sbatch's long ones with `_` for `-`: gpus_per_node=8, hold=True, job_name=b"\\x1b[2J".
        With `uid` the job runs as that user, in that user's home. RigError with sbatch's words when refused.
        """
        argv: list[bytes] = [b"sbatch", b"--parsable"]
        for key, value in options.items():
            flag = b"--" + key.replace("_", "-").encode()
            if value is not False:
                argv.append(flag if value is True else flag + b"=" + _bytes(value))
        owner = next((name for name, uid in files.USERS.items() if uid == options.get("uid")), "root")
        done = self.slurm(*argv, stdin=f"#!/bin/sh\n{script}\n".encode(), cwd=owner)
        if done.returncode:
            raise RigError(f"sbatch ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
        return int(done.stdout.split(b";")[0])

    def config(self, filename: str = "config.yaml", **overrides: Any) -> Path:
        """Write a cockpit config with one cluster, `rig`, and return its path.

        Overrides are keys of the cluster's entry; None leaves a key out.
        """
        entry: dict[str, Any] = {
            "kind": "slurm",
            "head": HEAD,
            "ssh_config": str(self.ssh_config),
            "nodes": {"via": "head", "user": "root", "port": self.layout.sshd_port, "max": 256},
        }
        entry = {key: value for key, value in (entry | overrides).items() if value is not None}
        path = self.state / filename
        path.write_text(yaml.safe_dump({"default": "rig", "clusters": {"rig": entry}}, sort_keys=False))
        return path

    @property
    def local_env(self) -> Mapping[str, str]:
        """Environment for a client outside the namespaces, and for a cockpit with `head: local`."""
        return {"SLURM_CONF": str(self.layout.local_slurm_conf)}

    # -- settle

    def settle(self, timeout_s: float = 60.0) -> None:
        """Undo what a test left: thaw, boot, cancel, resume, until all static nodes are idle again.

        GPUs are healthy and idle again. Dynamic nodes are told to power down, which takes some seconds that are
        not waited for.
        """
        until = time.monotonic() + timeout_s
        for name in self.layout.machines:
            ended = self.layout.host_dir(name) / "ended"
            if self.is_up(name):
                self.thaw(name)
                if ended.exists():
                    self.kill_node(name)
            ended.unlink(missing_ok=True)
            if self.layout.nvml_state(name).exists():
                self.nvml(name).reset(gpus=self.spec.gpus, seed=name)
        self.boot(HEAD)
        self._await(HEAD, until, self._controller_up)
        self.slurm("sh", "-c", "squeue -h -a -o %A | xargs -r scancel")
        stuck_at: dict[str, float] = {}
        self.wait_for(
            lambda: self._settled(stuck_at), max(1.0, until - time.monotonic()), "the static nodes to be idle"
        )

    def _settled(self, stuck_at: dict[str, float]) -> bool:
        """`stuck_at`: since when each node waits for a power-up."""
        states = self._states()
        for name, state in states.items():
            if "drain" in state or state.startswith("down"):
                self.slurm("scontrol", "update", f"nodename={name}", "state=resume")
            if name in self.static_nodes:
                self._settle_static(name, state)
                self._unstick(name, state, stuck_at)
            elif not state.endswith(("powered_down", "powering_down")):
                self.slurm("scontrol", "update", f"nodename={name}", "state=power_down")
        return self._static_idle() and all(self._slurmd_listens(name) for name in self.static_nodes)

    def _settle_static(self, name: str, state: str) -> None:
        if "powered_down" in state:
            # Only a slurmd that starts after the power-up was asked for makes such a node idle.
            self._request("halt", name)
            self.slurm("scontrol", "update", f"nodename={name}", "state=power_up")
        elif "powering" not in state and not self.is_up(name):
            self.boot(name)

    def _unstick(self, name: str, state: str, stuck_at: dict[str, float]) -> None:
        """A power-up that comes when the node is up already is never carried out and never forgotten (22.05)."""
        if not state.endswith("+power_up"):
            stuck_at.pop(name, None)
        elif time.monotonic() - stuck_at.setdefault(name, time.monotonic()) > STUCK_S:
            self.slurm("scontrol", "update", f"nodename={name}", "state=power_down")
            del stuck_at[name]

    def _slurmd_listens(self, name: str) -> bool:
        # The controller may still call a node idle that has just been killed.
        with socket.socket() as client:
            client.settimeout(1)
            return client.connect_ex((self.layout.address(name), self.layout.slurmd_port(name))) == 0


def _sweep() -> None:
    """Remove the files of rigs that were killed so hard that they could not; their processes are gone."""
    for saved in Path("/tmp").glob(f"{PREFIX}*/rig.json"):
        try:
            old, saved_at = Rig.attach(saved.parent), saved.stat().st_mtime
        except (OSError, ValueError, KeyError, TypeError):
            continue
        starting = old._root is None and time.time() - saved_at < STARTING_S
        if not old.running and not starting:
            old.down()


def _bytes(value: str | bytes | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
