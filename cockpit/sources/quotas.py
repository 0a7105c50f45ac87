"""Quotas on Lustre, asked of a machine that has the file system mounted; on request only, never polled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cockpit.formats.lfs_quota import parse_lfs_quota
from cockpit.formats.slurm_errors import complaint
from cockpit.hosts.base import Host
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.storage_models import Quota

DEADLINE_S = 10.0
_FLAGS: Mapping[str, str] = {"user": "-u", "group": "-g", "project": "-p"}
_NO_SUCH_PROGRAM = 127
_SAME_FOR_ALL = (FaultKind.MISSING, FaultKind.TIMEOUT, FaultKind.UNREACHABLE)


def read_quota(host: Host, kind: str, who: str, path: str) -> Quota:
    """The quota of a user, group or project on the host's mount of a Lustre file system; raises FaultError.

    Lustre tells everybody their own; those of others it tells to root alone, so a refusal is asked again by
    `sudo -n`, which changes nothing.
    """
    what = f"reading the quota of {who} on {path}"
    if who.startswith("-") or not path.startswith("/"):
        raise FaultError(Fault(FaultKind.FAILED, what, "that is no name or no absolute path"))
    argv = ["lfs", "quota", _FLAGS[kind], who, path]
    done = host.run(argv, deadline_s=DEADLINE_S)
    if done.rc not in (0, _NO_SUCH_PROGRAM) and b"permission denied" in done.stderr.lower():
        done = host.run(["sudo", "-n", *argv], deadline_s=DEADLINE_S)
    if done.rc == _NO_SUCH_PROGRAM:
        raise FaultError(Fault(FaultKind.MISSING, what, "there is no `lfs` on this machine: no Lustre client"))
    if fault := complaint(done.rc, done.stdout, done.stderr, what=what, took_s=done.took_s, deadline_s=DEADLINE_S):
        raise FaultError(fault)
    return parse_lfs_quota(done.stdout)


def read_quotas(host: Host, users: Iterable[str], path: str) -> dict[str, Quota | Fault]:
    """What each user has and may have, or why that is not known.

    What would keep all others from an answer as well (no such program, a file system that hangs) ends the asking:
    who is not in the answer was not asked.
    """
    told: dict[str, Quota | Fault] = {}
    for user in users:
        try:
            told[user] = read_quota(host, "user", user, path)
        except FaultError as error:
            told[user] = error.fault
            if error.fault.kind in _SAME_FOR_ALL:
                break
    return told
