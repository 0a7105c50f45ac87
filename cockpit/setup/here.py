"""What this machine has: Slurm, and the hosts that the user's ssh config names. Asks nobody else."""

from __future__ import annotations

import glob
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from cockpit.addresses import take_apart

_DEPTH = 8  # of Include; ssh itself allows 16
_MOST_BYTES = 2**20
_MOST = 200
_ASSIGNED = re.compile(r"^(\s*\w+)\s*=")  # `Host=a` is `Host a`


def has_slurm() -> bool:
    """Whether this machine has Slurm's programs, as far as PATH and ParallelCluster's place tell."""
    return shutil.which("squeue") is not None or Path("/opt/slurm/bin/squeue").exists()


def ssh_hosts(path: Path | None = None) -> tuple[str, ...]:
    """Every alias of the file and of what it includes, in its order; patterns and what is no host name are left out."""
    path = (path or Path("~/.ssh/config")).expanduser()
    return tuple(dict.fromkeys(name for name in _aliases(path, _DEPTH) if _is_host(name)))[:_MOST]


def _aliases(path: Path, depth: int) -> Iterator[str]:
    for keyword, words in _lines(path):
        if keyword == "host":
            yield from words
        elif keyword == "include" and depth:
            for pattern in words:
                # Relative names are looked for where OpenSSH looks: in ~/.ssh.
                whole = Path(pattern).expanduser()
                place = whole if whole.is_absolute() else Path("~/.ssh").expanduser() / whole
                for found in sorted(glob.glob(str(place))):
                    yield from _aliases(Path(found), depth - 1)


def _lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return
    for line in text.splitlines():
        words = _split(_ASSIGNED.sub(r"\1 ", line))
        if words:
            yield words[0].lower(), words[1:]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def _is_host(name: str) -> bool:
    if any(char in name for char in "*?!%"):
        return False
    try:
        take_apart(name)
    except ValueError:
        return False
    return True
