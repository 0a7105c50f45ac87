"""One look at a job's processes on this node: a line for each piece as it comes, and an end within the deadline.

It only reads; nothing is written, signalled, stopped or traced, but for what was asked for by name: a py-spy that came
along (`shipped.py`), a dump of the flight recorder (`recorder.py`). Whatever may hang is asked in a child.
"""

import contextlib
import functools
import json
import os
import select
import signal
import sys
import time

from cockpit.probe.agent import pyspy, ranks, recorder, shipped, tails, thread
from cockpit.probe.agent.child import Nursery, answer, program
from cockpit.probe.agent.mounts import Mounts
from cockpit.probe.agent.question import Question
from cockpit.probe.agent.values import compact, decode, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.probe.agent.child import Body, Child
    from cockpit.probe.agent.ranks import Process

PROTOCOL = 1
DEFAULTS = {
    "job": "0",
    "deadline": "8",
    "again": "1.5",  # seconds between the two looks
    "scontrol": "scontrol",
    "stacks": "1",
    "records": "1",
    "trigger": "0",  # ask the flight recorder for a dump
    "proc": "/proc",
    "pyspy": "",
    "mount_check": "",
}
_LIST_S, _SCAN_S, _CLOSE_S, _FIND_S, _SPY_S, _MOUNT_S, _TAIL_S = 2.0, 2.5, 2.0, 1.0, 4.0, 3.0, 3.0
_MAX_RANKS, _SPIES, _MAX_TAILS = 64, 8, 20


class Sweep:
    """The pieces of one look, each with its own deadline."""

    def __init__(self, options: "dict[str, str]", packed_spy: bytes = b"") -> None:
        self._options, self._packed_spy, self._shipped = options, packed_spy, shipped.Shipped()
        self._proc, self._job = options["proc"], int(options["job"])
        self._nursery = Nursery()
        self._until = time.monotonic() + float(options["deadline"])
        self._missing: list[list[str]] = []
        self._told_mounts = b""
        self._leads: "list[Process]" = []  # noqa: UP037

    def run(self) -> None:
        """All pieces, the most telling first."""
        self._tell(self._hello())
        processes = self._processes()
        if processes is not None:  # what could not be read must not look like what is not there
            self._leads = [process for process in processes if process.get("lead")][:_MAX_RANKS]
            self._tell({"k": "p", "t": time.time(), "ps": processes})
        self._look()
        self._tell({"k": "e", "t": time.time(), "no": self._missing})

    def _hello(self) -> "dict[str, object]":
        return {
            "k": "h",
            "v": PROTOCOL,
            "t": time.time(),
            "host": os.uname().nodename,
            "boot": read_text(f"{self._proc}/sys/kernel/random/boot_id"),
            "up": read_text(f"{self._proc}/uptime").split(" ")[0],
            "tick": os.sysconf("SC_CLK_TCK"),
            "uid": os.getuid(),
            "scope": read_text(f"{self._proc}/sys/kernel/yama/ptrace_scope"),
        }

    def _processes(self) -> "list[Process] | None":
        listed = self._listed()
        for with_environ in (True, False):
            child = self._ask(
                answer(functools.partial(ranks.scan, self._proc, self._job, listed, with_environ)),
                _SCAN_S,
            )
            told = _json(child)
            if isinstance(told, list):
                if not with_environ:
                    self._missing.append(["environments", "reading one did not end: a process hangs in the kernel"])
                return told
        self._missing.append(["processes", _why(told)])
        return None

    def _listed(self) -> "list[int]":
        child = self._ask(program([self._options["scontrol"], "listpids", str(self._job)]), _LIST_S)
        text = decode(bytes(child.out)) if child is not None else ""
        rows = [line.split() for line in text.splitlines()]
        if not rows or rows[0][:1] != ["PID"]:
            words = " ".join(text.split())[:160]
            self._missing.append(["scontrol listpids", words or "no answer in time"])
            self._tell({"k": "l", "pids": []})
            return []
        self._tell({"k": "l", "pids": [row[:5] for row in rows[1:] if len(row) >= 5][:4000]})
        return [int(row[0]) for row in rows[1:] if row and row[0].isdigit() and row[0] != "0"]

    def _ask(self, body: "Body", deadline_s: float) -> "Child | None":
        """One child, waited for."""
        question = Question(self._nursery, body, 1e9, deadline_s)
        while time.monotonic() < self._until:
            child = question.step(time.monotonic())
            if child is not None:
                return child
            if question.late_since is not None:
                return None
            self._wait(0.05)
        return None

    # Everything else runs side by side.

    def _look(self) -> None:
        pids = [int(str(lead["pid"])) for lead in self._leads]
        mounts = Mounts(self._nursery, self._proc, 1e9, _MOUNT_S, self._options["mount_check"])
        close = [_Piece(self._nursery, "c", pid, self._close_body(pid), _CLOSE_S) for pid in pids]
        asked = self._triggers()
        spy = self._spy_path(pids)
        dumps = [pyspy.Dump(self._nursery, spy, pid, _SPY_S) for pid in pids] if spy else []
        again: list[_Piece] = []
        second: list[pyspy.Dump] = []
        files: list[_Piece] = []
        told: set[int] = set()
        started, dump_round = time.monotonic(), 1
        while time.monotonic() < self._until:
            now = time.monotonic()
            mounts.step(now)
            for piece in close + again + files:
                piece.step(now)
                self._take(piece)
            _step_some(dumps, now)
            self._take_dumps(dumps, told, 1)
            self._tell_mounts(mounts)
            for piece in asked:
                piece.step(now)
            ready = all(piece.done for piece in close + asked) and all(dump.done for dump in dumps)
            if ready and not files:
                self._note_untold(asked)
                files = self._file_pieces(close)
            if ready and not again and now >= started + float(self._options["again"]):
                again = [_Piece(self._nursery, "a", pid, self._pulse_body(pid), _CLOSE_S) for pid in pids]
                second = [pyspy.Dump(self._nursery, spy, d.pid, _SPY_S) for d in dumps if isinstance(d.said, list)]
                dump_round = 2
                told = set()
            if dump_round == 2:
                _step_some(second, now)
                self._take_dumps(second, told, 2)
            late = now >= started + float(self._options["again"]) + 0.05
            if late and _all_done(again, second, files, mounts) and (again or not pids):
                return
            self._wait(0.03)
        self._note_unread(files)

    def _note_unread(self, files: "list[_Piece]") -> None:
        """The time is up: a file that was not read must not look like one that is not there."""
        unread = [piece for piece in files if not piece.told]
        if unread or (self._leads and not files):
            words = ", ".join(sorted(piece.path for piece in unread)[:4])
            self._missing.append(["files of the ranks", f"no time was left to read {words or 'them'}"])

    def _tell_mounts(self, mounts: Mounts) -> None:
        rows = mounts.take(False)
        if rows is not None and compact(rows) != self._told_mounts:
            self._told_mounts = compact(rows)
            self._tell({"k": "m", "t": time.time(), "rows": rows})

    def _close_body(self, pid: int) -> "Body":
        port = next((p for p in (_port(lead) for lead in self._leads) if p), None)
        return answer(lambda: thread.closely(self._proc, pid, port))

    def _pulse_body(self, pid: int) -> "Body":
        return answer(lambda: thread.pulse(self._proc, pid))

    def _take(self, piece: "_Piece") -> None:
        if piece.done and not piece.told:
            piece.told = True
            if not piece.said:  # there is no such file
                return
            self._tell({"k": piece.kind, "t": time.time(), "pid": piece.pid, "is": piece.said})

    def _take_dumps(self, dumps: "list[pyspy.Dump]", told: "set[int]", number: int) -> None:
        for dump in dumps:
            if dump.done and dump.pid not in told:
                told.add(dump.pid)
                self._tell({"k": "y", "t": time.time(), "pid": dump.pid, "n": number, "is": dump.said})

    def _spy_path(self, pids: "list[int]") -> str:
        if self._options["stacks"] != "1" or not pids:
            return ""
        path = self._options["pyspy"] or self._found_spy(pids)
        if not path and self._packed_spy:
            path = self._shipped.unpack(self._packed_spy)
        if not path:
            none = "no py-spy on this node that belongs to root or to this login (a job's own is not run)"
            self._missing.append(["stacks", self._shipped.why or none])
        return path

    def _found_spy(self, pids: "list[int]") -> str:
        """Looked for in a child: a virtual environment may lie on the very file system that hangs."""
        told = _json(self._ask(answer(functools.partial(pyspy.find, self._proc, pids)), _FIND_S))
        return told if isinstance(told, str) else ""

    def _triggers(self) -> "list[_Piece]":
        """One for each rank that has a named pipe for its flight recorder; none unless that was asked for."""
        if self._options["trigger"] != "1":
            return []
        found = []
        for lead in self._leads:
            path, environ = recorder.pipe_of(lead, self._proc), lead.get("env")
            if not path or not isinstance(environ, dict):
                continue
            places = tails.record_places(environ, int(str(lead["rank"])), f"{self._proc}/{lead['pid']}/root")
            body = answer(functools.partial(recorder.dumped, path, places))
            found.append(_Piece(self._nursery, "g", int(str(lead["pid"])), body, recorder.DUMP_S + 2.0))
        if not found:
            self._missing.append(["flight records", "no rank has a pipe for them (TORCH_NCCL_DEBUG_INFO_PIPE_FILE)"])
        return found

    def _note_untold(self, asked: "list[_Piece]") -> None:
        """Which ranks gave no flight record, and why: one that does not while others do is frozen or dead."""
        ranks_of = {int(str(lead["pid"])): lead.get("rank") for lead in self._leads}
        for piece in asked:
            why = piece.said.get("error") if isinstance(piece.said, dict) else "it gave no answer"
            if why and not piece.told:
                self._missing.append([f"flight record of rank {ranks_of.get(piece.pid)}", str(why)])
            piece.told = True

    def _file_pieces(self, close: "list[_Piece]") -> "list[_Piece]":
        paths: dict[str, None] = {}
        for piece in close:
            outs = piece.said.get("out") if isinstance(piece.said, dict) else None
            for path in outs.values() if isinstance(outs, dict) else ():
                if path:
                    paths[str(path)] = None
        found = [
            _Piece(self._nursery, "t", 0, answer(functools.partial(tails.tail, path)), _TAIL_S, path)
            for path in list(paths)[:_MAX_TAILS]
        ]
        if self._options["records"] == "1":
            found += self._record_pieces()
        return found

    def _record_pieces(self) -> "list[_Piece]":
        found = []
        booted = time.time() - float(read_text(f"{self._proc}/uptime").split(" ")[0] or 0)
        for lead in self._leads:
            environ, rank = lead.get("env"), lead.get("rank")
            if not isinstance(environ, dict) or not isinstance(rank, int):
                continue
            since = booted + int(str(lead["start"])) / os.sysconf("SC_CLK_TCK") - 5
            # Whether one is there is looked at in the child as well: the home may hang.
            for path in dict.fromkeys(tails.record_places(environ, rank, self._root_of(lead))):
                body = answer(functools.partial(tails.record, path, since))
                found.append(_Piece(self._nursery, "f", int(str(lead["pid"])), body, _TAIL_S, path))
        return found

    def _root_of(self, lead: "Process") -> str:
        """Where its root directory lies, "" when it sees the same files as we do."""
        own, its = (_link(f"{self._proc}/{each}/ns/mnt") for each in ("self", lead["pid"]))
        return "" if own and own == its else f"{self._proc}/{lead['pid']}/root"

    def _wait(self, seconds: float) -> None:
        fds = [child.fd for child in self._nursery.children if child.fd >= 0]
        poller = select.poll()
        for fd in fds:
            poller.register(fd, select.POLLIN)
        poller.poll(seconds * 1000)
        self._nursery.reap()
        if _input_ended():
            self.end()
            os._exit(0)

    def end(self) -> None:
        """Leave nothing behind."""
        self._nursery.end()
        self._shipped.remove()

    def _tell(self, line: "dict[str, object]") -> None:
        data = compact(line) + b"\n"
        while data:
            data = data[os.write(1, data) :]


class _Piece:
    """One question about one process or file, and its answer."""

    def __init__(self, nursery: Nursery, kind: str, pid: int, body: "Body", deadline_s: float, path: str = "") -> None:
        self.kind, self.pid, self.path = kind, pid, path
        self.done = self.told = False
        self.said: object = {"error": "no answer in time", "path": path}
        self._question = Question(nursery, body, 1e9, deadline_s)

    def step(self, now: float) -> None:
        """Start and collect."""
        if self.done:
            return
        child = self._question.step(now)
        if child is not None:
            self.said, self.done = _json(child), True
        elif self._question.late_since is not None:
            self.done = True


def _step_some(dumps: "list[pyspy.Dump]", now: float) -> None:
    """A few at a time: each py-spy reads the symbols of an interpreter."""
    for dump in [dump for dump in dumps if not dump.done][:_SPIES]:
        dump.step(now)


def _all_done(again: "list[_Piece]", second: "list[pyspy.Dump]", files: "list[_Piece]", mounts: Mounts) -> bool:
    pieces = all(piece.done and piece.told for piece in again + files)
    return pieces and all(dump.done for dump in second) and mounts.wants(time.monotonic()) >= 60.0


def _port(lead: "Process") -> "int | None":
    environ = lead.get("env")
    text = str(environ.get("MASTER_PORT", "")) if isinstance(environ, dict) else ""
    return int(text) if text.isdigit() and len(text) < 6 else None


def _json(child: "Child | None") -> object:
    if child is None:
        return {"error": "no answer in time"}
    try:
        return json.loads(bytes(child.out).decode("utf-8", "replace"))
    except ValueError:
        return {"error": child.ending()}


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _why(told: object) -> str:
    return str(told.get("error", "no answer")) if isinstance(told, dict) else "no answer"


def _input_ended() -> bool:
    """Whether whoever asked has gone."""
    poller = select.poll()
    poller.register(0, select.POLLIN)
    try:
        return bool(poller.poll(0)) and not os.read(0, 4096)
    except OSError:
        return True


def _end_on_signals(sweep: Sweep) -> None:
    """Nothing stays behind, whoever ends us; children, which inherit this, have nothing to put away."""
    ours = os.getpid()

    def end(*_: object) -> None:
        if os.getpid() == ours:
            sweep.end()
        os._exit(1)

    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def main(packed_spy: bytes) -> None:
    """The command line of the bundle: name=value words. `packed_spy` is a py-spy, compressed, b"" where none came."""
    options = dict(DEFAULTS)
    for word in sys.argv[1:]:
        name, _, value = word.partition("=")
        if name in options:
            options[name] = value
    os.nice(10)
    # Whatever happens to us, an end comes: nobody would look after a process that hangs on a node.
    signal.alarm(int(float(options["deadline"])) + 5)
    sweep = Sweep(options, packed_spy)
    _end_on_signals(sweep)
    try:
        sweep.run()
    except Exception as error:
        with contextlib.suppress(OSError):
            os.write(1, compact({"k": "x", "why": f"{type(error).__name__}: {error}"[:300]}) + b"\n")
    sweep.end()
    os._exit(0)
