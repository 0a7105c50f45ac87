"""What a check may ask of a node. Each part is a body for a child of its own, since any file may lie on what hangs.

Kinds: run (a program), files, links, list, grep, strings (versions inside libraries), limits, counters, stuck.
"""

import glob
import os
import re
import time

from cockpit.probe.agent.child import answer, program
from cockpit.probe.agent.efa import read_all
from cockpit.probe.agent.node import stat_fields
from cockpit.probe.agent.options import Options
from cockpit.probe.agent.pids import cgroup_job
from cockpit.probe.agent.values import decode, read_file, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.probe.agent.child import Body

    Part = dict[str, object]
    Rows = list[list[object]]

_MAX_ROWS = 4000
_MAX_LINE = 300
_MAX_LIBRARY = 2**29
_CHUNK, _OVERLAP = 2**22, 256
_JOB_PROCESSES = 16


def body_of(part: "Part", options: Options) -> "Body":
    """The body of one part of the catalogue; raises KeyError or ValueError for one that is none."""
    kind = str(part["kind"])
    if kind == "run":
        return _run(_words(part["argv"]), _words(part.get("paths")), options)
    if kind == "counters":
        window_s = float(str(part["window_s"]))
        return answer(lambda: counters(f"{options.text('sys')}/class/infiniband", window_s))
    if kind == "stuck":
        gap_s = float(str(part["gap_s"]))
        return answer(lambda: stuck(options.text("proc"), gap_s))
    if kind == "limits":
        return answer(lambda: limits(options.text("proc"), _words(part["programs"])))
    globs = _words(part["globs"])
    places = Places(options)
    if kind == "files":
        limit = int(str(part.get("limit", 200)))
        return answer(lambda: files(places, globs, limit))
    if kind == "links":
        return answer(lambda: [[shown, os.path.realpath(path)] for shown, path in places.find(globs)])
    if kind == "list":
        return answer(lambda: [[shown, access(path)] for shown, path in places.find(globs)])
    pattern = re.compile(str(part["pattern"]))
    if kind == "grep":
        return answer(lambda: grep(places, globs, pattern))
    if kind == "strings":
        name = re.compile(str(part["name"]))
        return answer(lambda: strings(places, globs, name, re.compile(pattern.pattern.encode())))
    raise ValueError(f"a part of an unknown kind: {kind}")


def _words(value: object) -> "list[str]":
    return [str(word) for word in value] if isinstance(value, list) else []


class Places:
    """Absolute paths of the catalogue, and where they are: options may put /proc, /sys, /dev or all else elsewhere."""

    def __init__(self, options: Options) -> None:
        self._moved = [(f"/{name}/", f"{options.text(name)}/") for name in ("proc", "sys", "dev")]
        self._root = options.text("root")

    def real(self, path: str) -> str:
        """Where it is."""
        for usual, moved in self._moved:
            if path.startswith(usual):
                return moved + path[len(usual) :]
        return self._root + path

    def shown(self, path: str) -> str:
        """As it would be called on a usual machine."""
        for usual, moved in self._moved:
            if moved != usual and path.startswith(moved):
                return usual + path[len(moved) :]
        return path[len(self._root) :] if self._root and path.startswith(self._root) else path

    def find(self, globs: "list[str]") -> "list[tuple[str, str]]":
        """(shown, real) of what is there, in the order of the patterns."""
        found = [path for pattern in globs for path in sorted(glob.glob(self.real(pattern)))]
        return [(self.shown(path), path) for path in found[:_MAX_ROWS]]


def _run(argv: "list[str]", paths: "list[str]", options: Options) -> "Body":
    tools = options.text("tools")

    def body() -> None:
        words = list(argv)
        candidates = [f"{tools}/{argv[0]}"] if tools else paths
        words[0] = next((path for path in candidates if os.access(path, os.X_OK)), argv[0])
        program(words)()

    return body


def access(path: str) -> str:
    """What this login may do with it: rw, r-, -w or --."""
    return ("r" if os.access(path, os.R_OK) else "-") + ("w" if os.access(path, os.W_OK) else "-")


def files(places: Places, globs: "list[str]", limit: int) -> "Rows":
    """[path, text, or None where it cannot be read]."""
    rows: list[list[object]] = []
    for shown, path in places.find(globs):
        raw = read_file(path, limit)
        rows.append([shown, None if raw is None else decode(raw)])
    return rows


def grep(places: Places, globs: "list[str]", pattern: "re.Pattern[str]") -> "Rows":
    """[path, what of a line fits]: no more than that leaves the node, for such files hold secrets as well."""
    rows: list[list[object]] = []
    for shown, path in places.find(globs):
        for line in decode(read_file(path, 2**20) or b"").splitlines():
            match = pattern.search(line)
            if match:
                rows.append([shown, match.group(0)[:_MAX_LINE]])
    return rows[:200]


def strings(places: Places, globs: "list[str]", name: "re.Pattern[str]", inside: "re.Pattern[bytes]") -> "Rows":
    """[path, the file it stands for, version by its name or its content, or ""]; each file once."""
    rows: list[list[object]] = []
    seen: set[str] = set()
    for shown, path in places.find(globs):
        real = os.path.realpath(path)
        if real in seen or not os.path.isfile(real):
            continue
        seen.add(real)
        named = name.search(os.path.basename(real))
        rows.append([shown, places.shown(real), named.group(1) if named else _inside(real, inside)])
    return rows[:32]


def _inside(path: str, pattern: "re.Pattern[bytes]") -> str:
    tail = b""
    try:
        with open(path, "rb") as file:
            for _ in range(_MAX_LIBRARY // _CHUNK):
                chunk = file.read(_CHUNK)
                if not chunk:
                    break
                match = pattern.search(tail + chunk)
                if match:
                    return decode(match.group(1))
                tail = chunk[-_OVERLAP:]
    except OSError:
        pass
    return ""


def limits(proc: str, programs: "list[str]") -> "Rows":
    """[program, pid, job or None, soft limit of locked memory] of those programs and of some processes of jobs."""
    rows: list[list[object]] = []
    jobs = 0
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        base = f"{proc}/{name}"
        comm = stat_fields(read_file(f"{base}/stat", 512))[0]
        wanted = comm in programs
        job, _, task = cgroup_job(read_text(f"{base}/cgroup"))
        if not wanted and (job is None or not task or jobs >= _JOB_PROCESSES):
            continue
        jobs += not wanted
        for line in read_text(f"{base}/limits").splitlines():
            if line.startswith("Max locked memory"):
                rows.append([comm, int(name), None if wanted else job, line.split()[3]])
    return rows


def counters(root: str, window_s: float) -> "dict[str, object]":
    """The devices with their counters before and after a while; raises OSError where there are none."""
    before = read_all(root)
    began = time.monotonic()
    time.sleep(window_s)
    after = read_all(root)
    return {"before": before, "after": after, "s": round(time.monotonic() - began, 2)}


def stuck(proc: str, gap_s: float) -> "Rows":
    """[pid, program, wait channel, seconds it lives] of what is in D state now and was so before the gap."""
    before = _in_d(proc)
    time.sleep(gap_s)
    uptime = read_text(f"{proc}/uptime").split()
    ticks = os.sysconf("SC_CLK_TCK")
    rows: list[list[object]] = []
    for key, comm in sorted(_in_d(proc).items()):
        if key in before:
            lives = round(float(uptime[0]) - int(key[1]) / ticks) if uptime else None
            rows.append([key[0], comm, read_text(f"{proc}/{key[0]}/wchan")[:40], lives])
    return rows[:64]


def _in_d(proc: str) -> "dict[tuple[int, str], str]":
    found: dict[tuple[int, str], str] = {}
    for name in os.listdir(proc):
        if name.isdigit():
            comm, state, started, _ = stat_fields(read_file(f"{proc}/{name}/stat", 512))
            if state == "D":
                found[(int(name), started)] = comm
    return found
