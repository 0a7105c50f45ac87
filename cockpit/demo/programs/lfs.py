"""`lfs quota -u USER PATH` of the demo: everybody has a quota on /fsx, one is nearly at its end, one over it."""

from __future__ import annotations

from cockpit.demo.jobs import USERS
from cockpit.demo.programs.call import Call
from cockpit.demo.programs.table import Answer, encode

_HEADER = "     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace\n"
_SOFT_KIB, _HARD_KIB, _FILES = 30 * 2**30, 40 * 2**30, 20_000_000
_USED = {"maria": 0.22, "kenji": 0.93, "tomasz": 0.41, "aisha": 1.02, "lucas": 0.09, "wei": 0.55}  # of the soft limit


def lfs(call: Call) -> Answer:
    """As Lustre's own; to others than root it tells nobody's but the login's."""
    words = call.argv
    if len(words) != 4 or words[:2] != ("quota", "-u"):
        return Answer(1, b"", b"Usage: lfs quota {-u|-g|-p} NAME /mount\n")
    user, path = words[2:]
    if user not in USERS:
        return Answer(1, b"", encode(f"lfs: can't find id for name {user}: Invalid argument\n"))
    if path != "/fsx":
        return Answer(2, b"", encode(f"quotactl failed: No such file or directory on {path}\n"))
    if not call.root:
        return Answer(1, b"", b"Permission denied.\n")
    used = int(_USED.get(user, 0.01) * _SOFT_KIB)
    star, grace = ("*", "6d21h") if used > _SOFT_KIB else ("", "-")
    files = int(_USED.get(user, 0.01) * 6_000_000)
    title = f"Disk quotas for usr {user} (uid {USERS[user]}):\n"
    row = f"{path:>15}  {used}{star}  {_SOFT_KIB}  {_HARD_KIB}  {grace}  {files}  0  {_FILES}  -\n"
    return Answer(0, encode(title + _HEADER + row))
