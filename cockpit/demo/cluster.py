"""The demo cluster as a whole: simulation, SSH server, keys and config files in one private folder."""

from __future__ import annotations

import atexit
import base64
import resource
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from paramiko import Ed25519Key

from cockpit.demo import aws, stubs
from cockpit.demo.aws import DemoAws
from cockpit.demo.execution import Machine
from cockpit.demo.output_files import OutputFarm
from cockpit.demo.probing import GpuFarm
from cockpit.demo.server import USER, DemoServer
from cockpit.demo.sim import CLUSTER, HEAD, Simulation

_FILES_PER_NODE = 8
_WATCHED = 64  # nodes whose GPUs are read: each costs this machine two real processes
_SSH_CONFIG = """\
Host {head}
    HostName 127.0.0.1
    Port {port}
    ProxyJump none
Host gpu-*-p5-* 127.77.*
    Port {port}
    ProxyJump {head}
Host *
    User {user}
    IdentityFile "{folder}/id_ed25519"
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile "{folder}/known_hosts"
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""
_CONFIG = """\
default: {cluster}
clusters:
  {cluster}:
    kind: {kind}
    head: {head}
    ssh_config: "{folder}/ssh_config"
    nodes: {{via: head, user: {user}, port: {port}, max: {most}}}
{aws}rules: {{gpu_idle_for: {idle_for_s}s, gpu_hang_for: {hang_for_s}s}}
"""
_HANG_FOR_S = 20  # under the usual minute: nobody should wait long to see it


def remove_all(folder: Path) -> None:
    """Remove a folder in which threads may still write: what comes while it is removed goes in the next round."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


class DemoCluster:
    """A simulated cluster behind a real SSH server on loopback, reached like any other cluster.

    Raises KeyError for an unknown scenario and ValueError for an impossible number of nodes. Also a context
    manager that gives the path of the generated config.
    """

    def __init__(
        self,
        nodes: int = 12,
        scenario: str = "busy",
        seed: int = 7,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sim = Simulation(nodes=nodes, scenario=scenario, seed=seed, clock=clock)
        self.folder: Path | None = None
        self._server: DemoServer | None = None
        self._stubs: stubs.StubServer | None = None
        self._gpus: GpuFarm | None = None
        self._aws: DemoAws | None = None
        self._remove: weakref.finalize[..., DemoCluster] | None = None

    @property
    def port(self) -> int:
        """The SSH port of the head and, through it, of every node; raises RuntimeError when not started."""
        if self._server is None:
            raise RuntimeError("the demo cluster is not started")
        return self._server.port

    @property
    def lacks(self) -> str:
        """What of the scenario is missing on this machine, and what to install; "" when nothing is."""
        return aws.MISSING if self.sim.scenario.aws and not aws.is_installed() else ""

    def start(self) -> Path:
        """Serve until `stop()`; returns the path of a config.yaml whose only cluster is `demo`."""
        if self.folder is not None:
            raise RuntimeError("the demo cluster is started already")
        _allow_open_files(_FILES_PER_NODE * len(self.sim.nodes))
        folder = self.folder = Path(tempfile.mkdtemp(prefix="cockpit-demo-"))
        # Also when the program ends without stop(): a private key must not lie about.
        self._remove = weakref.finalize(self, remove_all, folder)
        atexit.register(remove_all, folder)  # whole, also when the program is ended in the middle of that removal
        try:
            stubs.install(folder / "bin", folder / "stubs.sock")
            self._stubs = stubs.StubServer(self.sim, folder / "stubs.sock")
            if self.sim.scenario.aws and not self.lacks:
                self._aws = DemoAws(self.sim, folder)
                self._aws.start()
            host_key, client_key = _write_key(folder / "host_key"), _write_key(folder / "id_ed25519")
            self._gpus = GpuFarm(self.sim, folder / "nodes")
            self._server = self._serve(folder, self._gpus, host_key, client_key)
            return self._write_files(folder, host_key)
        except BaseException:
            self.stop()
            raise

    def _serve(self, folder: Path, gpus: GpuFarm, host_key: Ed25519Key, client_key: Ed25519Key) -> DemoServer:
        path = stubs.search_path(folder / "bin")
        outputs = OutputFarm(self.sim, folder / "fsx")
        machines = {
            name: Machine(name, self.sim, folder / "home" / name, path, gpus, outputs)
            for name in (HEAD, *self.sim.nodes)
        }
        return DemoServer(machines.pop(HEAD), machines, self._find, host_key, client_key)

    def _find(self, address: str) -> str | None:
        """The running node that has this address or name."""
        with self.sim.current():
            for node in self.sim.nodes.values():
                if address in (node.name, node.own_address):
                    return node.name if node.reachable else None
        return None

    def _write_files(self, folder: Path, host_key: Ed25519Key) -> Path:
        key = f"ssh-ed25519 {base64.b64encode(host_key.asbytes()).decode()}"
        names = [f"[127.0.0.1]:{self.port}"]
        names += [f"[{node.own_address}]:{self.port},[{node.name}]:{self.port}" for node in self.sim.nodes.values()]
        _write(folder / "known_hosts", "".join(f"{name} {key}\n" for name in names))
        values = {"head": HEAD, "cluster": CLUSTER, "port": self.port, "user": USER, "folder": folder}
        values |= {"most": _WATCHED, "idle_for_s": self.sim.scenario.idle_for_s, "hang_for_s": _HANG_FOR_S}
        values |= {"kind": "parallelcluster" if self._aws else "slurm"}
        values |= {"aws": self._aws.config_lines if self._aws else ""}
        _write(folder / "ssh_config", _SSH_CONFIG.format(**values))
        return _write(folder / "config.yaml", _CONFIG.format(**values))

    def stop(self) -> None:
        """End everything and remove the folder; does nothing when not started."""
        if self._gpus is not None:
            self._gpus.stop()
        if self._server is not None:
            self._server.stop()
        if self._stubs is not None:
            self._stubs.stop()
        if self._aws is not None:
            self._aws.stop()
        if self._remove is not None:
            self._remove()
        self.folder = self._server = self._stubs = self._gpus = self._aws = None

    def __enter__(self) -> Path:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()


def _allow_open_files(wanted: int) -> None:
    """Raise the soft limit of open files: a running command on each of many nodes needs some pipes each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def _write_key(path: Path) -> Ed25519Key:
    """A new key pair, its private half in OpenSSH's format and readable by nobody else."""
    raw = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    path.touch(mode=0o600)
    path.write_bytes(raw)
    return Ed25519Key(filename=str(path))
