"""Packs the program for a node, and the command line that starts it there."""

from __future__ import annotations

import functools
import importlib.util
import threading
import zlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from cockpit.config import ConfigError
from cockpit.probe.agent.options import DEFAULTS
from cockpit.probe.agent.sweep import DEFAULTS as SWEEP_DEFAULTS
from cockpit.probe.fallback import FALLBACK_SCRIPT

# In the order in which they can be run: each one's imports come before it.
MODULES = (
    "values", "child", "question", "link", "options", "node", "pids", "procs", "mounts", "efa", "klog",
    "nvml_gpu", "nvml", "driver", "inventory", "smi", "neuron", "accel", "main",
)  # fmt: skip
# The same for the one look at a job's processes that a diagnosis takes.
SWEEP_MODULES = (
    "values", "child", "question", "node", "pids", "mounts", "ranks", "thread", "pyspy", "shipped", "tails",
    "recorder", "sweep",
)  # fmt: skip
MAX_TOOL_BYTES = 64 * 2**20
_ELF = b"\x7fELF"
_NO_PYTHON = """printf '{"k":"x","why":"no python3 on this node"}\\n'\n"""

# Python before it has anything of ours: takes exactly its bytes from stdin and leaves the rest there.
_BOOT_LINES = (
    "import os,zlib",
    "def take(n):",
    " b=bytes()",
    " while len(b)<n:",
    "  c=os.read(0,n-len(b))",
    "  if len(c)==0: os._exit(3)",
    "  b+=c",
    " return b",
    "sizes=[int(word) for word in take(24).split()]",
    "take(sizes[0])",
    "SOURCE=zlib.decompress(take(sizes[1]))",
    "PYNVML=take(sizes[2])",
    "exec(compile(SOURCE,'probe','exec'))",
)
# Neither newline, backslash nor exclamation mark: csh and fish could not be given them.
_BOOT = "exec(chr(10).join([" + ",".join(f'"{line}"' for line in _BOOT_LINES) + "]))"

# Python of the system comes first: what PATH finds may lie on a file system that hangs.
PYTHONS = (
    "/usr/bin/python3 /usr/libexec/platform-python python3 /usr/local/bin/python3 /opt/conda/bin/python3 "
    "/opt/parallelcluster/pyenv/versions/*/bin/python3 /opt/*/bin/python3"
)
_SCRIPT = (
    f"for p in {PYTHONS}; do "
    'if command -v "$p" >/dev/null 2>&1 && '
    '"$p" -IS -c "import sys,zlib,json,ctypes,select; sys.exit(sys.version_info<(3,6))" </dev/null >/dev/null 2>&1; '
    'then exec "$p" -IS -c "$0" "$@"; fi; done; '
    "set -- $(dd bs=1 count=24 2>/dev/null) $1; "
    'eval "$(dd bs=1 count="$1" 2>/dev/null)"'
)


# How every program of ours begins on a node; options as name=value follow.
START = ("sh", "-c", _SCRIPT, _BOOT)


def probe_argv(interval_s: float, **options: str | float) -> list[str]:
    """The command for Host.stream; `options` as in agent/options.py (raises ValueError for others)."""
    unknown = set(options) - set(DEFAULTS)
    if unknown:
        raise ValueError(f"unknown probe options: {', '.join(sorted(unknown))}")
    words = [f"{name}={_word(value)}" for name, value in options.items()]
    return [*START, f"interval={interval_s:g}", *words]


def _word(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def probe_stdin() -> bytes:
    """What goes over stdin (about 65 KB); stdin then stays open."""
    with _PACKING:  # many nodes ask at the same time, and packing costs a tenth of a second
        return _packed()


_PACKING = threading.Lock()


@functools.cache
def _packed() -> bytes:
    shell = FALLBACK_SCRIPT.encode()
    agent = zlib.compress(agent_source().encode(), 9)
    pynvml = pynvml_packed()
    sizes = "".join(f"{len(part):<8}" for part in (shell, agent, pynvml))
    return sizes.encode() + shell + agent + pynvml


@functools.cache
def pynvml_packed() -> bytes:
    """nvidia-ml-py's own source, compressed."""
    return zlib.compress(_pynvml_source().encode(), 9)


def sweep_argv(job_id: int, **options: str | float) -> list[str]:
    """The command for one look at a job's processes; `options` as in agent/sweep.py (raises ValueError for others)."""
    unknown = set(options) - set(SWEEP_DEFAULTS)
    if unknown:
        raise ValueError(f"unknown sweep options: {', '.join(sorted(unknown))}")
    words = [f"{name}={_word(value)}" for name, value in options.items()]
    return ["sh", "-c", _SCRIPT, _BOOT, f"job={job_id}", *words]


def sweep_stdin(packed_spy: bytes = b"") -> bytes:
    """What goes over stdin for it; stdin then stays open, and its end ends the look.

    `packed_spy` is a py-spy for nodes that have none, as packed_tool gives it.
    """
    with _PACKING:
        shell, agent = _packed_sweep()
    return f"{len(shell):<8}{len(agent):<8}{len(packed_spy):<8}".encode() + shell + agent + packed_spy


@functools.cache
def _packed_sweep() -> tuple[bytes, bytes]:
    return _NO_PYTHON.encode(), zlib.compress(modules_source(SWEEP_MODULES).encode(), 9)


def packed_tool(path: Path) -> bytes:
    """A program of the site's own, compressed to travel; raises ConfigError for what is no Linux program."""
    try:
        if path.stat().st_size > MAX_TOOL_BYTES:
            raise ConfigError(f"{path}: is bigger than {MAX_TOOL_BYTES >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not data.startswith(_ELF):
        raise ConfigError(f"{path}: is no Linux program; name the py-spy binary itself, as pip installs it")
    return zlib.compress(data, 6)


def agent_source() -> str:
    """The agent as one Python program that expects PYNVML (compressed source of pynvml) as a global."""
    return modules_source(MODULES)


def modules_source(names: Sequence[str], own: Sequence[tuple[str, str]] = ()) -> str:
    """Modules of the agent, each after its imports, as one program that runs the last one's main().

    `own` are further ones, (name, source), which come first.
    """
    directory = resources.files("cockpit.probe.agent")
    sources = [*own, *((name, directory.joinpath(f"{name}.py").read_text(encoding="utf-8")) for name in names)]
    loader = directory.joinpath("loader.py").read_text(encoding="utf-8")
    return f"SOURCES = {sources!r}\n{loader}"


def _pynvml_source() -> str:
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        raise RuntimeError("nvidia-ml-py is not installed")
    return Path(spec.origin).read_text(encoding="utf-8")
