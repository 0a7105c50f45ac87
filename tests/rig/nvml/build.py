"""Compiles the stand-in library when it is first needed."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.rig.require import SEARCH

HERE = Path(__file__).parent
NAME = "libnvidia-ml.so.1"
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-shared", f"-Wl,-soname,{NAME}")
LIBRARIES = ("-lm", "-lpthread")


@functools.cache
def missing() -> str | None:
    """What keeps the library from being built here, or None when nothing does."""
    if not sys.platform.startswith("linux"):
        return f"the NVML stand-in needs Linux, this is {sys.platform}"
    if shutil.which("gcc", path=SEARCH) is None:
        return "the NVML stand-in needs gcc (Debian, Ubuntu: apt-get install gcc libc6-dev)"
    return None


def build(directory: Path) -> Path:
    """The library below `directory`, in a folder named after its source; compiled (0.6 s) unless it is there.

    Safe when several processes build at once. OSError, with the compiler's words, when it cannot be built.
    """
    if (reason := missing()) is not None:
        raise OSError(reason)
    folder = directory / f"nvml-{_source_hash()}"
    library = folder / NAME
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(prefix=".building-", dir=folder)
    os.close(handle)
    try:
        _compile(unfinished)
        os.chmod(unfinished, 0o755)
        os.replace(unfinished, library)  # whoever is second replaces it by the same
    finally:
        Path(unfinished).unlink(missing_ok=True)
    return library


def install(directory: Path) -> Path:
    """Put a copy of the library into `directory`, which then is for LD_LIBRARY_PATH; the build is kept per user."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(build(cache()), directory / NAME)
    (directory / NAME).chmod(0o755)
    return directory / NAME


def install_smi(directory: Path) -> Path:
    """Put the nvidia-smi stand-in into `directory`, which then is for PATH."""
    for name in ("nvidia-smi", "smi.py", "smi_fields.py"):
        shutil.copyfile(HERE / name, directory / name)
    (directory / "nvidia-smi").chmod(0o755)
    return directory / "nvidia-smi"


def cache() -> Path:
    """A folder of this user alone for what was built; OSError when somebody else made it."""
    folder = Path(tempfile.gettempdir()) / f"cockpit-nvml-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    # The name can be guessed, and what is loaded from there runs as this user.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise OSError(f"{folder} is not a folder of this user alone")
    return folder


def _sources() -> list[Path]:
    return sorted([*HERE.glob("*.c"), *HERE.glob("*.h")])


def _source_hash() -> str:
    digest = hashlib.sha256(" ".join((*FLAGS, *LIBRARIES)).encode())
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(target: str) -> None:
    sources = [str(path) for path in _sources() if path.suffix == ".c"]
    argv = ["gcc", *FLAGS, "-o", target, *sources, *LIBRARIES]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={"PATH": SEARCH, "LC_ALL": "C"})
    if done.returncode:
        raise OSError(f"gcc could not build the NVML stand-in: {done.stderr.strip()}")
