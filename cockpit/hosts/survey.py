"""One look at a head node: where Slurm's programs are, who we are there, what kind of machine it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.hosts.base import Host
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

SURVEY_DEADLINE_S = 10.0
_SLURM_DIRS = "/opt/slurm/bin /usr/bin /usr/local/bin /usr/local/slurm/bin /opt/slurm/current/bin"
_DNA = "/etc/chef/dna.json"  # what ParallelCluster tells its own recipes; normally readable by everybody
_HYPERPOD = "/opt/ml/config/resource_config.json"
_REGION = re.compile(r"[a-z]{2,3}(-[a-z]+)+-[0-9]")
_STACK = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")
_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):[0-9]{12}:cluster/[a-z0-9]+")

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
[ -e {_HYPERPOD} ] && echo hyperpod=yes
for key in region stack_name; do
  v=$(grep -o '"'$key'" *: *"[^"]*"' {_DNA} 2>/dev/null | head -n 1 | cut -d'"' -f4)
  echo "$key=$v"
done
echo "arn=$(grep -o 'arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:[0-9]*:cluster/[a-z0-9]*' {_HYPERPOD} 2>/dev/null | head -n 1)"
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
    region: str = ""  # the AWS region the cluster says it is in
    stack: str = ""  # ParallelCluster's stack
    hyperpod_arn: str = ""  # of the SageMaker cluster


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
    arn = _ARN.fullmatch(found.get("arn", ""))
    return HeadFacts(
        slurm_dir=squeue.rsplit("/", 1)[0] if squeue.startswith("/") else None,
        user=printable(found.get("user", "")),
        uid=int(found["uid"]) if found.get("uid", "").isdigit() else None,
        hostname=printable(found.get("hostname", "")),
        clock_ahead_s=int(epoch) - now if epoch.isdigit() else None,
        parallelcluster="parallelcluster" in found,
        hyperpod="hyperpod" in found,
        region=arn[1] if arn else _only(_REGION, found.get("region", "")),
        stack=_only(_STACK, found.get("stack_name", "")),
        hyperpod_arn=arn[0] if arn else "",
    )


def _only(pattern: re.Pattern[str], word: str) -> str:
    """The word when it has the form it should have: these name what is asked of AWS."""
    return word if pattern.fullmatch(word) else ""
