"""The answer of one look at a node (protocol: cockpit/probe/agent/look.py). The node may be hostile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from cockpit.formats.errors import FormatError
from cockpit.formats.probe import ProbeReader
from cockpit.formats.probe_values import items, number, parse_line, text, wall_time, whole
from cockpit.gpu_models import KernelMessage, NodeReading
from cockpit.text import printable

PROTOCOL = 1
_MAX_LINES = 2000
_MAX_LINE = 500
_MAX_ROWS = 4000
_MAX_READING = 60
_ABSENT = 127


class PartState(str, Enum):
    """How the asking of one part ended."""

    DONE = "done"  # the program ended well, the files were read
    FAILED = "failed"
    ABSENT = "absent"  # no such program
    LATE = "late"  # no answer within its time
    UNASKED = "not asked"  # the node cannot tell this, such as one without Python


@dataclass(frozen=True, slots=True)
class Part:
    """What one part came to: `lines` of a program, `data` of what the agent read itself (rows, or an object)."""

    name: str
    state: PartState
    rc: int | None = None
    lines: tuple[str, ...] = ()
    data: Any = None
    took_s: float | None = None

    @property
    def done(self) -> bool:
        return self.state is PartState.DONE

    @property
    def first(self) -> str:
        """The first line that says something."""
        return next((line.strip() for line in self.lines if line.strip()), "")

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Rows of texts, none of them empty; cells that are none become texts, missing ones are empty."""
        rows = (items(row, 16) for row in items(self.data, _MAX_ROWS))
        return tuple(tuple(_cell(cell) for cell in row) for row in rows if row)


@dataclass(frozen=True, slots=True)
class NodeLook:
    """Everything one look brought. `reading` is None when GPUs, mounts and the kernel log were not asked for."""

    host: str = ""
    taken_at: float | None = None
    took_s: float | None = None
    python: str = ""  # its version; empty: the node has none, and told only what a shell can
    parts: Mapping[str, Part] = field(default_factory=dict)
    reading: NodeReading | None = None
    messages: tuple[KernelMessage, ...] = ()

    def part(self, name: str) -> Part:
        """One part; UNASKED when the node told nothing of it."""
        return self.parts.get(name) or Part(name, PartState.UNASKED)


def looks_of(answers: Mapping[str, bytes], now: Callable[[], float] = time.time) -> dict[str, NodeLook]:
    """The looks of several nodes, without those that cannot be read."""
    found = {}
    for node, raw in answers.items():
        with suppress(FormatError):
            found[node] = parse_look(raw, now)
    return found


def parse_look(raw: bytes, now: Callable[[], float] = time.time) -> NodeLook:
    """The last JSON line of what the node wrote (a login's greeting may stand before it); raises FormatError."""
    lines = [line for line in raw.split(b"\n") if line.startswith(b'{"k":"look"')]
    try:
        told = json_object(lines[-1]) if lines else None
    except ValueError as error:
        raise FormatError("the node's answer", f"cannot be read ({error})", raw[-80:]) from None
    if told is None or told.get("v") != PROTOCOL:
        raise FormatError("the node's answer", "is none", raw[:80], "log in and look for what the login prints")
    reading, messages = _reading(told.get("reading"), now)
    parts = told.get("parts")
    parts = parts if isinstance(parts, dict) else {}
    return NodeLook(
        host=text(told.get("host"), 80),
        taken_at=wall_time(told.get("t"), now()),
        took_s=number(told.get("s")),
        python=text(told.get("py"), 40),
        parts={name: _part(text(name, 60), said) for name, said in list(parts.items())[:200]},
        reading=reading,
        messages=messages,
    )


def json_object(line: bytes) -> dict[str, Any]:
    """One line as an object; raises ValueError. Longer than the probe's lines may be."""
    if len(line) <= 256 * 1024:
        return parse_line(line)
    if len(line) > 16 * 2**20:
        raise ValueError(f"a line of {len(line)} bytes")
    try:
        found = json.loads(line.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def _part(name: str, raw: object) -> Part:
    said = raw if isinstance(raw, dict) else {}
    out, rc, took_s = said.get("out"), whole(said.get("rc")), number(said.get("s"))
    out = out if isinstance(out, str) else ""
    lines = tuple(printable(line[:_MAX_LINE].rstrip()) for line in out.splitlines()[:_MAX_LINES])
    if said.get("late") is True:
        return Part(name, PartState.LATE, None, lines, took_s=took_s)
    if rc is None:
        return Part(name, PartState.FAILED, None, lines, took_s=took_s)
    if said.get("sh") is True:
        data: Any = [line.split("|", 1) for line in lines if "|" in line]
    else:
        data = _data(out)
    if isinstance(data, dict) and set(data) == {"error"}:
        return Part(name, PartState.FAILED, rc, (text(data["error"]),), took_s=took_s)
    state = PartState.DONE if rc == 0 else PartState.ABSENT if rc == _ABSENT else PartState.FAILED
    return Part(name, state, rc, lines if data is None or said.get("sh") is True else (), data, took_s)


def _data(out: str) -> Any:
    if not out.startswith(("[", "{")):
        return None
    try:
        return json.loads(out)
    except (ValueError, RecursionError):
        return None  # a program's own text


def _cell(cell: object) -> str:
    return "" if cell is None else printable(str(cell)[:_MAX_LINE].rstrip())


def _reading(raw: object, now: Callable[[], float]) -> tuple[NodeReading | None, tuple[KernelMessage, ...]]:
    """The probe's lines as one reading, and the kernel messages of all of them."""
    reader = ProbeReader(now=now)
    last: NodeReading | None = None
    messages: list[KernelMessage] = []
    for line in items(raw, _MAX_READING):
        if not isinstance(line, str):
            continue
        last = reader.feed(line.encode("utf-8", "replace")) or last
        if last is not None and '"km"' in line:
            messages += last.messages
    return last, tuple(messages)
