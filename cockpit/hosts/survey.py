"""One look at a head node: where Slurm's programs are, who we are there, what kind of machine it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.hosts.base import Host
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

SURVEY_DEADLINE_S = 10.0
_SLURM_DIRS = "/opt/slurm/bin /usr/bin /usr/local/bin /usr/local/slurm/bin /opt/slurm/current/bin"

# Sent over stdin to `sh`, so that no login shell ever has to quote it. ParallelCluster puts Slurm in
# /opt/slurm/bin and on the PATH by a profile script only, which a plain SSH command does not run.
_SCRIPT = f"""
q=$(command -v squeue 2>/dev/null) || q=
for d in {_SLURM_DIRS}; do
  [ -z "$q" ] && [ -x "$d/squeue" ] && q=$d/squeue
done
if [ -z "$q" ]; then
  q=$("${{SHELL:-/bin/sh}}" -lc 'command -v squeue' 2>/dev/null </dev/null | grep '^/' | tail -n 1)
fi
echo "squeue=$q"
echo "user=$(id -un 2>/dev/null)"
echo "uid=$(id -u 2>/dev/null)"
echo "hostname=$(uname -n 2>/dev/null)"
echo "epoch=$(date +%s 2>/dev/null)"
[ -e /etc/parallelcluster ] && echo parallelcluster=yes
[ -e /opt/ml/config/resource_config.json ] && echo hyperpod=yes
echo end=yes
"""


@dataclass(frozen=True, slots=True)
class HeadFacts:
    """What the survey found; `slurm_dir` is None when no squeue was found anywhere."""

    slurm_dir: str | None
    user: str = ""
    uid: int | None = None
    hostname: str = ""
    clock_ahead_s: float | None = None  # the head's clock minus ours, to about a second
    parallelcluster: bool = False
    hyperpod: bool = False


def survey_head(host: Host, clock: Clock = SYSTEM_CLOCK) -> HeadFacts:
    """Ask the head once; raises FaultError when it cannot be reached or does not answer sensibly."""
    done = host.run(["sh"], stdin=_SCRIPT.encode(), deadline_s=SURVEY_DEADLINE_S)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    if "end" not in found:
        said = printable((done.stderr or done.stdout)[:200].strip()) or f"exit {done.rc} and no output"
        raise FaultError(
            Fault(
                FaultKind.GARBLED,
                f"looking around on {host.name}",
                said,
                "log in by hand and see what `sh` does",
            )
        )
    return _facts(found, clock.now())


def _facts(found: Mapping[str, str], now: float) -> HeadFacts:
    squeue = found.get("squeue", "")
    epoch = found.get("epoch", "")
    return HeadFacts(
        slurm_dir=squeue.rsplit("/", 1)[0] if squeue.startswith("/") else None,
        user=printable(found.get("user", "")),
        uid=int(found["uid"]) if found.get("uid", "").isdigit() else None,
        hostname=printable(found.get("hostname", "")),
        clock_ahead_s=int(epoch) - now if epoch.isdigit() else None,
        parallelcluster="parallelcluster" in found,
        hyperpod="hyperpod" in found,
    )
