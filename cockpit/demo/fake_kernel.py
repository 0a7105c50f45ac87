"""What a demo node's system calls answer to the probe. Python 3.6 and the standard library only.

Runs in the probe's interpreter before the probe itself: the machine below is somebody's laptop, and its name,
its users and its missing driver are not those of the node.
"""

import ctypes
import os
import pwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LIBRARY = "libnvidia-ml.so.1"


def install(folder: str, name: str, release: str, cpus: int, users: "dict[int, str]") -> None:
    """Make this interpreter believe that it runs on the node `name`, whose files lie in `folder`."""
    machine = os.uname()
    told = os.uname_result((machine.sysname, name, release, machine.version, machine.machine))
    os.uname = lambda: told
    os.cpu_count = lambda: cpus
    os.stat = _stat_of(os.path.join(folder, "proc") + "/")
    pwd.getpwuid = _people(users)
    ctypes.CDLL = _Library  # type: ignore[misc]


class _Library(ctypes.CDLL):
    """The NVIDIA driver's library loads; nobody calls into it, since its bindings are simulated."""

    def __init__(self, name: "Any", *rest: "Any", **more: "Any") -> None:
        super().__init__(None if name == _LIBRARY else name, *rest, **more)

    def __getattr__(self, name: str) -> "Any":
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name != "prctl":  # only Linux has it
                raise
            return lambda *_: 0


def _stat_of(proc: str) -> "Any":
    """os.stat, which tells the simulated owner of a process's directory."""
    real = os.stat

    def stat(path: "Any", *rest: "Any", **more: "Any") -> os.stat_result:
        found = real(path, *rest, **more)
        if not isinstance(path, str) or not path.startswith(proc):
            return found
        try:
            with open(os.path.join(path, "status"), encoding="utf-8") as file:
                words = next(line.split() for line in file if line.startswith("Uid:"))
            return os.stat_result((*found[:4], int(words[1]), *found[5:10]))
        except (OSError, LookupError, StopIteration, ValueError):
            return found

    return stat


def _people(users: "dict[int, str]") -> "Any":
    def getpwuid(number: int) -> pwd.struct_passwd:
        name = users[number]  # KeyError, as the real one
        return pwd.struct_passwd((name, "x", number, number, name, "/home/" + name, "/bin/bash"))

    return getpwuid
