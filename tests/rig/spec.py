"""What a rig consists of, and which names, addresses and ports follow from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HEAD = "rig-head"
MUNGE_SOCKET = "/run/munge/munge.socket.2"
# Each machine's own stand-ins. The path is the same everywhere, since jobs take PATH along from the head.
TOOLS = "/run/tools"


@dataclass(frozen=True, slots=True)
class Spec:
    """Size and timing of a rig. `booted` False makes a large one whose nodes never have an instance."""

    static: int = 4
    dynamic: int = 2
    gpus: int = 8
    cpus: int = 192
    mem_mib: int = 2_000_000
    booted: bool = True
    message_timeout_s: int = 10
    slurmd_timeout_s: int = 30
    resume_timeout_s: int = 40
    suspend_timeout_s: int = 2
    suspend_time_s: int = 600
    max_job_count: int = 10_000
    env: Mapping[str, str] = field(default_factory=dict)  # more environment for every SSH login

    @property
    def static_nodes(self) -> tuple[str, ...]:
        return tuple(f"gpu-st-p5-{number}" for number in range(1, self.static + 1))

    @property
    def dynamic_nodes(self) -> tuple[str, ...]:
        return tuple(f"gpu-dy-p5-{number}" for number in range(1, self.dynamic + 1))

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.static_nodes + self.dynamic_nodes


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of one rig are. Two rigs differ in `instance`, so they share no address and no port."""

    state: Path
    instance: int
    spec: Spec

    @property
    def _base_port(self) -> int:
        return 10_000 + 100 * self.instance

    @property
    def slurmctld_port(self) -> int:
        return self._base_port

    @property
    def sshd_port(self) -> int:
        """The port of every sshd of this rig; each listens on its own address."""
        return self._base_port + 1

    @property
    def spare_port(self) -> int:
        """Nothing listens here: the slurmd port of nodes that are never booted."""
        return self._base_port + 2

    def slurmd_port(self, name: str) -> int:
        # A slurmd binds every address, so each needs a port of its own.
        return self._base_port + 10 + self._index(name) if self.spec.booted else self.spare_port

    def address(self, name: str) -> str:
        """The loopback address of a machine; nodes that are never booted all share one that is silent."""
        if name == HEAD:
            return f"127.77.{self.instance}.1"
        host = 11 + self._index(name) if self.spec.booted else 2
        return f"127.77.{self.instance}.{host}"

    def host_dir(self, name: str) -> Path:
        return self.state / "hosts" / name

    @property
    def machines(self) -> tuple[str, ...]:
        """Everything that gets namespaces and an sshd."""
        return (HEAD, *self.spec.nodes) if self.spec.booted else (HEAD,)

    @property
    def ssh_config(self) -> Path:
        return self.state / "ssh" / "config"

    @property
    def slurm_conf(self) -> Path:
        return self.state / "etc" / "slurm.conf"

    @property
    def local_slurm_conf(self) -> Path:
        """For clients outside the namespaces (`head: local`)."""
        return self.state / "local" / "slurm.conf"

    @property
    def library_dir(self) -> Path:
        """Holds the stand-in of NVIDIA's library; on every machine's LD_LIBRARY_PATH."""
        return self.state / "lib"

    def nvml_state(self, name: str) -> Path:
        """What that node's GPUs are like; a machine's init links it to where the library looks."""
        return self.host_dir(name) / "nvml.state"

    def _index(self, name: str) -> int:
        kind, number = name.split("-")[1], int(name.rsplit("-", 1)[1])
        return number - 1 + (self.spec.static if kind == "dy" else 0)
