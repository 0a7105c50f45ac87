"""The lines that one look at a job's processes brings back (probe/agent/sweep.py) -> NodeSweep. Nothing is trusted."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cockpit.formats.probe_node import mounts
from cockpit.rank_models import (
    Close,
    Dump,
    Frame,
    LogTail,
    NodeSweep,
    Pulse,
    RankProcess,
    RecordFile,
    ThreadStack,
)
from cockpit.text import printable

MAX_LINE = 16 * 2**20
MAX_UNPACKED = 16 * 2**20
_MAX_PROCESSES, _MAX_TAILS = 4000, 64
_TICKS_A_S = 100.0


def read_sweep(lines: Iterable[bytes]) -> NodeSweep:
    """All lines told so far; what cannot be understood is counted and passed over."""
    reader = _Reader()
    for line in lines:
        try:
            told = json.loads(line[:MAX_LINE])
            reader.take(told)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError):
            reader.bad += 1
    return reader.sweep()


class _Reader:
    def __init__(self) -> None:
        self.bad = 0
        self._told = NodeSweep()
        self._ticks = _TICKS_A_S
        self._processes: dict[int, RankProcess] = {}
        self._seen_processes = False
        self._tails: list[LogTail] = []
        self._records: list[RecordFile] = []

    def take(self, told: dict[str, Any]) -> None:
        """One line; raises on nonsense."""
        kind = told["k"]
        handle = {
            "h": self._hello,
            "l": self._listed,
            "p": self._all,
            "c": self._closely,
            "a": self._again,
            "y": self._stack,
            "m": self._mounts,
            "t": self._tail,
            "f": self._record,
            "e": self._end,
            "x": self._broken,
        }[kind]
        handle(told)

    def sweep(self) -> NodeSweep:
        processes = tuple(self._processes.values()) if self._seen_processes else None
        return replace(
            self._told,
            processes=processes,
            tails=tuple(self._tails),
            records=tuple(self._records),
            bad_lines=self.bad,
        )

    def _hello(self, told: dict[str, Any]) -> None:
        self._ticks = float(told.get("tick") or _TICKS_A_S)
        self._told = replace(
            self._told,
            hostname=_text(told.get("host")),
            at=_float(told.get("t")),
            booted_s=_float(told.get("up")),
            boot_id=_text(told.get("boot")),
            uid=_int(told.get("uid")),
            ptrace_scope=_text(told.get("scope")),
        )

    def _listed(self, told: dict[str, Any]) -> None:
        rows = [row for row in told["pids"] if len(row) >= 5][:_MAX_PROCESSES]
        listed = []
        for row in rows:
            pid, step = _int(row[0]), _text(row[2])
            if pid is not None:
                listed.append((pid, step, _int(row[4]) if step.isdigit() else None))
        self._told = replace(self._told, listed=tuple(listed) or None)

    def _all(self, told: dict[str, Any]) -> None:
        self._seen_processes = True
        at = float(told["t"])
        for one in told["ps"][:_MAX_PROCESSES]:
            process = self._process(one, at)
            self._processes[process.pid] = process

    def _process(self, one: dict[str, Any], at: float) -> RankProcess:
        environ = one.get("env")
        start = _int(one.get("start"))
        return RankProcess(
            pid=int(one["pid"]),
            parent=int(one["ppid"]),
            command=_text(one.get("comm")),
            state=_text(one.get("s"))[:1],
            program=_text(one.get("prog")),
            rank=_int(one.get("rank")),
            local=_int(one.get("local")),
            lead=bool(one.get("lead")),
            step=_text(one.get("step")),
            threads=_int(one.get("threads")),
            started_s_after_boot=None if start is None else start / self._ticks,
            env={_text(key): _text(value) for key, value in environ.items()} if isinstance(environ, dict) else {},
            env_why="" if isinstance(environ, dict) else _text(environ),
            first=Pulse(at, _text(one.get("s"))[:1], _int(one.get("cpu"))),
        )

    def _closely(self, told: dict[str, Any]) -> None:
        process, said = self._processes[int(told["pid"])], told["is"]
        if "error" in said:
            return
        outputs = said.get("out") if isinstance(said.get("out"), dict) else {}
        sockets = said.get("socks")
        close = Close(
            call=_text(said.get("call")),
            file=_text(said.get("file")),
            kernel_stack=tuple(_text(name) for name in said.get("stack") or ())[:32],
            stuck_threads=tuple((_text(row[1]), _text(row[2])) for row in said.get("threads") or ())[:8],
            outputs=tuple(_text(path) for path in dict.fromkeys(outputs.values()) if path),
            sockets=None if sockets is None else tuple((_text(row[0]), _text(row[1])) for row in sockets),
        )
        self._processes[process.pid] = replace(process, first=_pulse(said, told), close=close)

    def _again(self, told: dict[str, Any]) -> None:
        process, said = self._processes[int(told["pid"])], told["is"]
        if "error" not in said:
            self._processes[process.pid] = replace(process, second=_pulse(said, told))

    def _stack(self, told: dict[str, Any]) -> None:
        process, said = self._processes[int(told["pid"])], told["is"]
        if isinstance(said, list):
            dump = Dump(tuple(_thread(thread, process.pid) for thread in said[:16]))
        else:
            dump = Dump(why=_text(said))
        self._processes[process.pid] = replace(process, dumps=(*process.dumps, dump)[-2:])

    def _mounts(self, told: dict[str, Any]) -> None:
        self._told = replace(self._told, mounts=mounts(told["rows"], float(told["t"])))

    def _tail(self, told: dict[str, Any]) -> None:
        said = told["is"]
        if len(self._tails) >= _MAX_TAILS:
            return
        path = _text(said.get("path"))
        if "z" not in said:
            self._tails.append(LogTail(path, why=_text(said.get("why") or said.get("error"))))
            return
        age_s = max(0.0, float(said["now"]) - float(said["mtime"]))
        whole = _int(said.get("start")) == 0
        self._tails.append(LogTail(path, unpacked(said["z"]), _int(said.get("size")), age_s, whole))

    def _record(self, told: dict[str, Any]) -> None:
        said = told["is"]
        if not said or len(self._records) >= _MAX_TAILS:
            return
        data = unpacked(said["z"]) if "z" in said else b""
        why = _text(said.get("why") or said.get("error"))
        self._records.append(RecordFile(int(told["pid"]), _text(said.get("path")), data, why))

    def _end(self, told: dict[str, Any]) -> None:
        missing = tuple((_text(row[0]), _text(row[1])) for row in told.get("no") or ())
        self._told = replace(self._told, missing=(*self._told.missing, *missing), ended=True)

    def _broken(self, told: dict[str, Any]) -> None:
        self._told = replace(self._told, missing=(*self._told.missing, ("the look", _text(told.get("why")))))


def unpacked(text: str) -> bytes:
    """Bytes that were compressed and written as text; raises ValueError for what is not, or is too much."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(base64.b64decode(text, validate=True), MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    return data


def _pulse(said: dict[str, Any], told: dict[str, Any]) -> Pulse:
    return Pulse(
        at=float(told["t"]),
        state=_text(said.get("s"))[:1],
        cpu_ticks=_int(said.get("cpu")),
        run_ns=_int(said.get("run")),
        switches=_int(said.get("sw")),
        wait_channel=_text(said.get("w")),
    )


def _thread(told: dict[str, Any], pid: int) -> ThreadStack:
    frames = tuple(Frame(_text(row[0]), _text(row[1]), _int(row[2])) for row in told.get("f") or ())
    main = _int(told.get("t")) == pid
    return ThreadStack(_text(told.get("n")), frames, bool(told.get("a")), bool(told.get("g")), main)


def _text(value: object) -> str:
    return printable(str(value))[:2000] if isinstance(value, (str, int, float)) else ""


def _int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 16 else None


def _float(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
