"""Whether this machine can run the rig at all, in one line."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys

SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = (
    *("slurmctld", "slurmd", "scontrol", "sinfo", "squeue", "sbatch", "munged"),
    *("sshd", "ssh", "ssh-keygen", "unshare", "nsenter", "mount", "hostname", "timeout"),
)


@functools.cache
def missing() -> str | None:
    """What keeps the rig from running here, or None when nothing does."""
    if not sys.platform.startswith("linux"):
        return f"the rig needs Linux, this is {sys.platform}"
    if os.geteuid() != 0:
        return "the rig needs root (namespaces, device nodes, several slurmd)"
    absent = [program for program in PROGRAMS if shutil.which(program, path=SEARCH) is None]
    if absent:
        packages = "slurmctld slurmd slurm-client munge openssh-server"
        return f"the rig needs {', '.join(absent)} (Debian, Ubuntu: apt-get install {packages})"
    return _namespaces_refused()


def _namespaces_refused() -> str | None:
    argv = ["unshare", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child", "true"]
    done = subprocess.run(argv, capture_output=True, timeout=10, check=False, env={"PATH": SEARCH})
    if done.returncode == 0:
        return None
    return "the rig needs new namespaces, refused here: " + _last_line(done.stderr)


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"
