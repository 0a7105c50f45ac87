"""Many nodes behind one head, all of them real sshds on this machine; each node has an address of its own.

Slurm is the demo's, in this very process, and therefore seldom read. A node's /proc and py-spy are the demo's as well,
where a diagnosis looks; its GPUs are the rig's NVML library.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType

from cockpit.demo import stubs
from cockpit.demo.gpu_state import node_ranks
from cockpit.demo.machines import SimNode
from cockpit.demo.node_files import NodeFiles
from cockpit.demo.sim import Simulation
from cockpit.probe.bundle import sweep_argv, sweep_stdin
from tests.rig.nvml import missing as no_compiler
from tests.rig.nvml.build import install
from tests.rig.nvml.control import NvmlControl
from tests.sshd import Sshd, free_address, missing

GPUS = 8
_ADDRESSES_EACH = 15  # one sshd listens on 16
_NODES_NICE = 10
# In place of every command of a node: a look at a job sees the processes of the node whose address was called. A probe
# sees a /proc of its own, since this machine's has the processes of all nodes, and each would go through all of them.
_NODE = """\
#!/bin/bash
set -- $SSH_CONNECTION
at={folder}/$3
case "$SSH_ORIGINAL_COMMAND" in
*' job='*)
    if [ -f $at/told ]; then
        now=$EPOCHSECONDS
        while IFS=$'\\t' read -r pause later line; do
            [ $pause = 0 ] || sleep $pause
            echo "${{line//@/$((now + later))}}"
        done <$at/told
        exit
    fi
    more=" proc=$at/proc mount_check=$at/df pyspy=$at/py-spy scontrol=$at/scontrol"
    ;;
*' interval='*) more=" {options}" ;;
*) more= ;;
esac
exec /bin/sh -c "exec $SSH_ORIGINAL_COMMAND$more"
"""
_TIME = re.compile(r'(?<="t":)\d+\.\d+')
_RECORD_AT_ONCE = 8
_PAUSE_S = 0.5  # shorter ones are made up for by the next: each costs a process
_CONFIG = """\
default: bench
clusters:
  bench:
    kind: slurm
    head: bench-head
    ssh_config: "{folder}/ssh_config"
    nodes: {{via: head, user: {user}, port: {port}, max: {most}}}
    refresh: {{slurm: 60}}
"""


class SshdFleet:
    """A context manager; raises ValueError where sshd or a compiler is missing."""

    def __init__(self, folder: Path, nodes: int) -> None:
        if (why := missing() or no_compiler()) is not None:
            raise ValueError(why)
        self.sim = Simulation(nodes=nodes, scenario="hang")  # a full cluster: its nodes stay up
        self.folder, self._stack = folder, ExitStack()
        self.nodes: list[SimNode] = [node for node in self.sim.nodes.values() if node.reachable]
        self.config = folder / "config.yaml"

    def __enter__(self) -> SshdFleet:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        server = stubs.StubServer(self.sim, self.folder / "stubs.sock")
        self._stack.callback(server.stop)
        stubs.install(self.folder / "bin", self.folder / "stubs.sock")
        path = f"SetEnv PATH={stubs.search_path(self.folder / 'bin')}"
        self.head = self._stack.enter_context(Sshd(self.folder / "head", options=[path]))
        library = install(self.folder).parent
        self.nvml = NvmlControl(self.folder / "state", gpus=GPUS)
        self.nvml.load(95)
        environment = f"SetEnv LD_LIBRARY_PATH={library} NVML_STAND_IN={self.folder / 'state'}"
        script = self.folder / "node.sh"
        idle = NodeFiles(self.folder / "idle", "idle", 0, self.sim.now)
        options = shlex.join(idle.options())
        script.write_text(_NODE.format(folder=shlex.quote(str(self.folder / "proc")), options=options))
        script.chmod(0o755)
        (self.folder / "proc").mkdir()
        _, port = free_address()
        known = [f"{self.head.pattern} {self.head.public(self.head.host_keys[0])}"]
        for first in range(0, len(self.nodes), _ADDRESSES_EACH):
            group = [node.own_address for node in self.nodes[first : first + _ADDRESSES_EACH]]
            listen = [f"ListenAddress {address}:{port}" for address in group]
            given = [*listen, f"ForceCommand {script}", environment]
            sshd = Sshd(self.folder / f"nodes-{first}", options=given)
            sshd.authorized_keys.write_text(self.head.authorized_keys.read_text())
            self._stack.enter_context(sshd)
            # What nodes do takes nothing from the cockpit and the head, in truth; here they share two cores.
            os.setpriority(os.PRIO_PROCESS, sshd.pid, _NODES_NICE)
            known += [f"[{address}]:{port} {sshd.public(sshd.host_keys[0])}" for address in group]
        self._write(port, known)

    def _write(self, port: int, known: list[str]) -> None:
        head = self.head
        head.known_hosts.write_text("\n".join(known) + "\n")
        nodes = [
            "Host *",
            f"User {head.user}",
            f"IdentityFile {head.client_key}",
            "IdentitiesOnly yes",
            "IdentityAgent none",
            f"UserKnownHostsFile {head.known_hosts}",
            "GlobalKnownHostsFile /dev/null",
        ]
        ssh_config = head.ssh_config(alias="bench-head") + "\n".join(nodes) + "\n"
        (self.folder / "ssh_config").write_text(ssh_config)
        values = {"folder": self.folder, "user": head.user, "port": port, "most": len(self.nodes)}
        self.config.write_text(_CONFIG.format(**values))

    def lay_out(self, hosts: tuple[str, ...], *, record: bool) -> None:
        """The files of these nodes, with the ranks of the big job on them. `record`: have each node look at it now.

        What it then tells is told again, at its own pace, whenever somebody looks: one look costs its node 0.4 s of
        processor, which many nodes on one machine cannot all have at once.
        """
        made: list[tuple[Path, NodeFiles]] = []
        with self.sim.current() as sim:
            job = sim.lead_id
            for name in hosts:
                node = sim.nodes[name]
                folder = self.folder / "proc" / node.own_address
                files = NodeFiles(folder, name, node.index, node.boot_at or sim.now)
                files.put_ranks([rank for rank in node_ranks(sim, node) if rank.job_id == job])
                made.append((folder, files))
        if record and job is not None:
            with ThreadPoolExecutor(_RECORD_AT_ONCE) as threads:
                list(threads.map(partial(_record, job), *zip(*made, strict=True)))


def _record(job: int, folder: Path, files: NodeFiles) -> None:
    """One look by the real program, line by line: the pause before it, seconds since the start, `@` for its time."""
    argv = [*sweep_argv(job, deadline=8.0), *files.sweep_options()]
    began, lines, told_s = time.time(), [], 0.0
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(sweep_stdin())
        process.stdin.flush()  # its end would end the look
        for line in process.stdout:
            at_s = time.time() - began
            pause_s = at_s - told_s if at_s - told_s > _PAUSE_S else 0.0
            told_s += pause_s
            lines.append(f"{pause_s:g}\t{at_s:.0f}\t{_TIME.sub('@', line.decode())}")
    (folder / "told").write_text("".join(lines))
