"""The GPUs of the demo's nodes: the cockpit's probe really runs there, on simulated files and a simulated NVML."""

from __future__ import annotations

import contextlib
import shlex
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cockpit.demo.gpu_state import line_rate, messages, node_ranks, node_state
from cockpit.demo.jobs import USERS
from cockpit.demo.machines import CPUS
from cockpit.demo.node_files import KERNEL, NodeFiles
from cockpit.demo.sim import Simulation
from cockpit.probe.bundle import probe_argv

_EVERY_S = 2.0
_HEADER = 24  # see cockpit.probe: three lengths of eight characters
_LENGTH = 8
_MAX_PART = 2**24


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """A probe's command line as the node runs it, and what becomes of the bytes on its standard input."""

    line: str
    stdin: PynvmlSwap


class PynvmlSwap:
    """Passes a probe's input on, with the simulated NVML where nvidia-ml-py stood."""

    def __init__(self, pynvml: bytes) -> None:
        self._pynvml = pynvml
        self._held: bytes | None = b""  # None: all swapped, the rest are heartbeats

    def feed(self, data: bytes) -> bytes:
        """What to write now; nothing until the last of the three parts has come."""
        if self._held is None:
            return data
        self._held += data
        head = self._held[:_HEADER]
        try:
            sizes = [int(head[at : at + _LENGTH]) for at in range(0, _HEADER, _LENGTH)]
        except ValueError:
            sizes = [-1]
        if len(head) < _HEADER:
            return b""
        if min(sizes) < 0 or max(sizes) > _MAX_PART:  # no probe after all
            held, self._held = self._held, None
            return held
        whole = _HEADER + sum(sizes)
        if len(self._held) < whole:
            return b""
        kept, rest = self._held[_HEADER : whole - sizes[2]], self._held[whole:]
        self._held = None
        sizes[2] = len(self._pynvml)
        return "".join(f"{size:<{_LENGTH}}" for size in sizes).encode() + kept + self._pynvml + rest


@dataclass(slots=True)
class _Watched:
    """A node with probes on it."""

    files: NodeFiles
    run: tuple[str, bytes]  # what stands before the probe's own program, and the packed NVML
    probes: int = 0
    known: object = None  # what the state was made from
    traffic: dict[str, float] = field(default_factory=lambda: {"bytes": 0.0, "at": 0.0, "per_s": 0.0})


class GpuFarm:
    """Keeps the files of every node that a probe runs on in step with the simulation."""

    def __init__(self, sim: Simulation, folder: Path) -> None:
        self._sim, self._folder = sim, folder
        self._nodes: dict[str, _Watched] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._follow, name="demo-gpus", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def probe(self, node: str, line: str) -> Iterator[ProbeRun | None]:
        """How the node runs this command line if it starts the cockpit's probe; None when it does not."""
        words = _probe_words(line) if node in self._sim.nodes else None
        if words is None:
            yield None
            return
        watched = self._enter(node)
        prelude, pynvml = watched.run
        try:
            shell, program = words[:3], words[3]
            argv = [*shell, prelude + program, *words[4:], *watched.files.options()]
            yield ProbeRun(f"exec {shlex.join(argv)}", PynvmlSwap(pynvml))
        finally:
            with self._changed:
                watched.probes -= 1

    def _enter(self, name: str) -> _Watched:
        with self._changed:
            watched = self._nodes.get(name)
            if watched is None:
                watched = self._nodes[name] = self._make(name)
            self._update(name, watched)
            watched.probes += 1
            self._changed.notify()
            return watched

    def _make(self, name: str) -> _Watched:
        node = self._sim.nodes[name]
        folder = self._folder / name
        files = NodeFiles(folder, name, node.index, node.boot_at or self._sim.now)
        users = {uid: login for login, uid in USERS.items()}
        install = f"\ninstall({str(folder)!r}, {name!r}, {KERNEL!r}, {CPUS}, {users!r})\n"
        (folder / "kernel.py").write_text(_source("fake_kernel") + install, encoding="utf-8")
        prelude = f'exec(compile(open("{folder}/kernel.py").read(),"kernel","exec"),dict(__name__="kernel"));'
        pynvml = _source("fake_nvml") + f"\nFOLDER = {str(folder)!r}\n"
        return _Watched(files, (prelude, zlib.compress(pynvml.encode(), 6)))

    def _follow(self) -> None:
        while True:
            with self._changed:
                if self._stopping:
                    return
                watched = [(name, node) for name, node in self._nodes.items() if node.probes]
                for name, node in watched:
                    self._update(name, node)
                # Nobody looks: nothing to do until somebody does.
                self._changed.wait(_EVERY_S if watched else None)

    def _update(self, name: str, watched: _Watched) -> None:
        with self._sim.current() as sim:
            node = sim.nodes[name]
            watched.files.log(messages(sim, node), sim.now)
            jobs = [(job_id, sim.jobs[job_id].configuring) for job_id in node.shares]
            rate, known = line_rate(sim, node), (jobs, node.boot_at)
            traffic = watched.traffic
            if known == watched.known and rate == traffic["per_s"]:
                return
            watched.known = known
            since_s = max(0.0, sim.now - traffic["at"])
            traffic.update(bytes=traffic["bytes"] + traffic["per_s"] * since_s, at=sim.now, per_s=rate)
            state, ranks = node_state(sim, node), node_ranks(sim, node)
        watched.files.put_ranks(ranks)
        watched.files.put_state({**state, "net": dict(traffic)})

    def stop(self) -> None:
        """End the thread; the files go with the demo's folder."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()


def _probe_words(line: str) -> list[str] | None:
    """The words of a command line that starts the cockpit's probe, None for any other."""
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    return words if words[:4] == probe_argv(2.0)[:4] else None


def _source(module: str) -> str:
    return Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
