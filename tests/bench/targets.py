"""What is measured: real slurmctlds of two sizes, seen locally and over SSH, and demos as processes of their own."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cockpit.formats.sinfo import node_args
from cockpit.formats.squeue import queue_args
from cockpit.sources.slurm_env import SLURM_SET
from tests.rig import Rig
from tests.rig.big import big_spec, fill

NODE = re.compile(r"\bgpu-(?:st|dy)-p5-\d+\b")
_READY_S = 20.0


@dataclass(frozen=True)
class Target:
    """One cluster as the cockpit is pointed at it. `raw` runs an argv of Slurm's programs there."""

    name: str
    config: Path
    env: Mapping[str, str] = field(default_factory=dict)
    ssh: tuple[str, ...] = ()  # the argv before a remote command; () runs it here
    rig: Rig | None = None
    pid: int | None = None  # of a demo

    def argv(self, program: str, *args: str) -> list[str]:
        """One of Slurm's programs in the cockpit's own environment for it."""
        settings = [f"{name}={value}" for name, value in SLURM_SET.items()]
        words = ["env", *settings, program, *args]
        return [*self.ssh, shlex.join(words)] if self.ssh else words

    def reads(self) -> tuple[list[str], list[str]]:
        """The two reads behind the cockpit's first data, word for word."""
        return self.argv("sinfo", *node_args()), self.argv("squeue", *queue_args())

    def run(self, argv: list[str]) -> bytes:
        """The output of a raw command; raises CalledProcessError."""
        return subprocess.run(argv, env={**os.environ, **self.env}, capture_output=True, check=True).stdout

    def has_data(self) -> Job:
        """The test for first data on this cluster."""
        users = self.run(self.argv("squeue", "-h", "-a", "-o", "%u")).decode().split()
        names = "|".join(map(re.escape, sorted(set(users))))
        return Job(re.compile(rf"\b\d+(?:_\S+)?\b.{{0,60}}?\b(?:{names})\b"))


@dataclass(frozen=True)
class Job:
    """True for a text that names a node and, in one line, a job's id and its user."""

    job: re.Pattern[str]

    def __call__(self, text: str) -> bool:
        return NODE.search(text) is not None and self.job.search(text) is not None


@contextlib.contextmanager
def rig_targets(size: str, nodes: int, jobs: int) -> Iterator[tuple[Target, Target]]:
    """A filled slurmctld, read over SSH and locally. It ends with this program, however that ends."""
    rig = Rig(spec=big_spec(nodes, jobs))
    with rig:
        fill(rig, jobs)
        local = rig.config("local.yaml", head="local", ssh_config=None)
        ssh = ("ssh", "-F", str(rig.ssh_config), rig.head)
        yield (
            Target(f"{size} over SSH", rig.config(), ssh=ssh, rig=rig),
            Target(f"{size} on the head", local, env=rig.local_env, rig=rig),
        )


@contextlib.contextmanager
def demo_target(nodes: int) -> Iterator[Target]:
    """The demo of that size as its own process; it ends when its standard input closes."""
    argv = [sys.executable, "-m", "cockpit.demo", "--nodes", str(nodes)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            config = Path(process.stdout.readline().decode().strip())
            ssh_config = config.with_name("ssh_config")
            head = re.search(r"head: (\S+)", config.read_text())
            assert head is not None
            yield Target(f"demo {nodes}", config, ssh=("ssh", "-F", str(ssh_config), head[1]), pid=process.pid)
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(_READY_S)
            except subprocess.TimeoutExpired:
                process.kill()
