"""The GPUs of the demo's nodes: the cockpit's probe really runs there, on simulated files and a simulated NVML."""

from __future__ import annotations

import contextlib
import shlex
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from errno import ESHUTDOWN
from pathlib import Path

from cockpit.demo.gpu_state import line_rate, messages, node_ranks, node_state
from cockpit.demo.jobs import USERS
from cockpit.demo.machines import CPUS
from cockpit.demo.node_files import KERNEL, NodeFiles
from cockpit.demo.sim import Simulation
from cockpit.probe.bundle import START

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


class _Watched:
    """A node that a probe has run on; `files` are made when the first one comes."""

    def __init__(self, sim: Simulation, name: str, folder: Path) -> None:
        self.probes = 0
        self.lock = threading.Lock()
        self._sim, self._name, self._folder = sim, name, folder
        self._files: NodeFiles | None = None
        self._known: object = None  # what the state was made from
        self._traffic = {"bytes": 0.0, "at": 0.0, "per_s": 0.0}

    def update(self) -> NodeFiles:
        """Bring the files in step with the simulation; call it with `lock` held."""
        with self._sim.current() as sim:
            node = sim.nodes[self._name]
            due, now = messages(sim, node), sim.now
            rate = line_rate(sim, node)
            known = ([(job_id, sim.jobs[job_id].configuring) for job_id in node.shares], node.boot_at, rate)
            state = ranks = None
            if known != self._known:
                state, ranks = node_state(sim, node), node_ranks(sim, node)
            index, booted_at = node.index, node.boot_at or sim.now
            lost = sim.scenario.efa_lost if self._name == _efa_short(sim) else 0
            plugin = sim.scenario.odd_plugin if self._name == _second_static(sim) else ""
        if self._files is None:
            self._files = NodeFiles(self._folder, self._name, index, booted_at, lost, plugin)
        self._files.log(due, now)
        if state is not None and ranks is not None:
            self._known = known
            self._count(now, rate)
            self._files.put_ranks(ranks)
            self._files.put_state({**state, "net": dict(self._traffic)})
        return self._files

    def _count(self, now: float, rate: float) -> None:
        traffic = self._traffic
        carried = traffic["per_s"] * max(0.0, now - traffic["at"])
        traffic.update(bytes=traffic["bytes"] + carried, at=now, per_s=rate)


def _efa_short(sim: Simulation) -> str:
    """The node whose EFA devices are not all there: the last that is up and never powers down."""
    return next((node.name for node in reversed(list(sim.nodes.values())) if node.static and node.reachable), "")


def _second_static(sim: Simulation) -> str:
    """The node whose software is not that of the others; none where there are too few to tell."""
    names = [node.name for node in sim.nodes.values() if node.static]
    return names[1] if len(names) > 2 else ""


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
        try:
            with watched.lock:
                files = watched.update()
            prelude, pynvml = _programs(node, files.folder)
            sweeps = any(word.startswith("job=") for word in words[4:])
            options = files.sweep_options() if sweeps else files.options()
            argv = [*words[:3], prelude + words[3], *words[4:], *options]
            yield ProbeRun(f"exec {shlex.join(argv)}", PynvmlSwap(pynvml))
        finally:
            with self._changed:
                watched.probes -= 1

    def _enter(self, name: str) -> _Watched:
        with self._changed:
            if self._stopping:
                raise OSError(ESHUTDOWN, "the demo is being stopped")
            watched = self._nodes.get(name)
            if watched is None:
                watched = self._nodes[name] = _Watched(self._sim, name, self._folder / name)
            watched.probes += 1
            self._changed.notify()
            return watched

    def _follow(self) -> None:
        while True:
            with self._changed:
                if self._stopping:
                    return
                watched = [node for node in self._nodes.values() if node.probes]
            for node in watched:
                with node.lock:
                    node.update()
            with self._changed:
                # Nobody looks: nothing to do until somebody does.
                if not self._stopping:
                    self._changed.wait(_EVERY_S if watched else None)

    def stop(self) -> None:
        """End the thread; the files go with the demo's folder."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()


def _programs(name: str, folder: Path) -> tuple[str, bytes]:
    """What the probe's interpreter runs before the probe, and the packed stand-in for nvidia-ml-py."""
    users = {uid: login for login, uid in USERS.items()}
    install = f"\ninstall({str(folder)!r}, {name!r}, {KERNEL!r}, {CPUS}, {users!r})\n"
    (folder / "kernel.py").write_text(_source("fake_kernel") + install, encoding="utf-8")
    prelude = f'exec(compile(open("{folder}/kernel.py").read(),"kernel","exec"),dict(__name__="kernel"));'
    pynvml = _source("fake_nvml") + f"\nFOLDER = {str(folder)!r}\n"
    return prelude, zlib.compress(pynvml.encode(), 6)


def _probe_words(line: str) -> list[str] | None:
    """The words of a command line that starts the cockpit's probe or its look, None for any other."""
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    if words[:1] == ["timeout"]:  # a look ends by itself, and is given a deadline as well
        words = words[4:]
    return words if tuple(words[:4]) == START else None


def _source(module: str) -> str:
    return Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
