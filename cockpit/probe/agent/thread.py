"""One process looked at closely: where its main thread is in the kernel, what it waits for, its files and sockets.

Runs in a child of its own for each process, since a hung one can hang its reader.
"""

import os
import stat

from cockpit.probe.agent.node import stat_fields
from cockpit.probe.agent.values import decode, read_file, read_text

_MAX_FDS = 4096
_KERNEL_FRAMES = 12
_READS = ("0", "1", "17", "18", "19", "20")  # read, write, pread, pwrite, readv, writev of x86-64
_READS_ARM = ("63", "64", "65", "66", "67", "68")


def pulse(proc: str, pid: int) -> "dict[str, object]":
    """State and the counters that move while it lives; of the main thread, but `cpu` of all its threads."""
    base = f"{proc}/{pid}"
    raw = read_file(f"{base}/stat", 1024)
    state, start = stat_fields(raw)[1:3]
    words = decode(raw or b"").rpartition(")")[2].split()
    main = f"{base}/task/{pid}"
    found: dict[str, object] = {"s": state, "start": int(start or 0)}
    if len(words) > 12:
        found["cpu"] = int(words[11]) + int(words[12])
    run = read_text(f"{main}/schedstat").split()
    if len(run) == 3:
        found["run"] = int(run[0])
    for line in read_text(f"{main}/status").splitlines():
        if line.startswith(("voluntary_ctxt", "nonvoluntary_ctxt")):
            found["sw"] = int(str(found.get("sw", 0))) + int(line.split()[1])
    where = read_text(f"{main}/wchan")
    found["w"] = "" if where == "0" else where[:64]
    return found


def closely(proc: str, pid: int, port: "int | None") -> "dict[str, object]":
    """A pulse, and what it waits in: system call, the file behind it, the kernel's stack, its sockets, its output."""
    base = f"{proc}/{pid}"
    found = pulse(proc, pid)
    call = read_text(f"{base}/syscall").split()
    if call and call[0] not in ("running", ""):
        found["call"] = call[0]
        reads = _READS_ARM if os.uname().machine == "aarch64" else _READS
        if call[0] in reads and len(call) > 1:
            found["file"] = _link(f"{base}/fd/{int(call[1], 16)}")
    stack = read_text(f"{base}/stack").splitlines()[:_KERNEL_FRAMES]
    if stack:
        found["stack"] = [line.partition("] ")[2].partition("+")[0][:64] for line in stack]
    found["threads"] = _threads(base, pid)
    found["out"] = {number: _file(f"{base}/fd/{number}") for number in ("1", "2")}
    inodes = _inodes(base)
    if inodes is None:
        found["fds"] = "denied"
    elif port:
        found["socks"] = _sockets(base, port, inodes)
    return found


def _link(path: str) -> str:
    try:
        return os.readlink(path)[:512]
    except OSError:
        return ""


def _file(path: str) -> str:
    """The path behind standard output, when it is an ordinary file."""
    target = _link(path)
    return target if target.startswith("/") and not target.startswith("/dev/") else ""


def is_plain(path: str) -> bool:
    """True for an ordinary file, which can be opened without waiting for anybody."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _threads(base: str, pid: int) -> "list[list[object]]":
    """[thread id, name, where] of other threads in uninterruptible sleep."""
    found: list[list[object]] = []
    try:
        names = os.listdir(f"{base}/task")[:_MAX_FDS]
    except OSError:
        return found
    for name in names:
        comm, state = stat_fields(read_file(f"{base}/task/{name}/stat", 512))[:2]
        if state == "D" and name != str(pid):
            found.append([int(name), comm, read_text(f"{base}/task/{name}/wchan")[:64]])
    return found[:8]


def _inodes(base: str) -> "set[str] | None":
    try:
        names = os.listdir(f"{base}/fd")
    except OSError:
        return None
    links = (_link(f"{base}/fd/{name}") for name in names[:_MAX_FDS])
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def _sockets(base: str, port: int, inodes: "set[str]") -> "list[list[object]]":
    """[role, state, other side's port] of its own TCP sockets on that port; role: listens, server or client."""
    found: list[list[object]] = []
    wanted = f"{port:04X}"
    for name in ("tcp", "tcp6"):
        for line in decode(read_file(f"{base}/net/{name}", 4 * 2**20) or b"").splitlines()[1:]:
            words = line.split()
            if len(words) < 10 or words[9] not in inodes:
                continue
            here, there = words[1].rpartition(":")[2], words[2].rpartition(":")[2]
            if wanted in (here, there):
                role = "client" if there == wanted else "listens" if words[3] == "0A" else "server"
                found.append([role, words[3], int(there, 16)])
    return found[:64]
