"""PyTorch's flight records -> FlightRecord: one rank's last collective operations, as pickle or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cockpit.formats.errors import FormatError
from cockpit.formats.plain_pickle import MAX_BYTES, NotPlainError, load_plain
from cockpit.text import printable

_MAX_ENTRIES, _MAX_GROUPS, _MAX_FRAMES = 20_000, 4096, 12
_MAX_SIZES = 1000  # characters
_POINT = re.compile(r"(\d+)(->|<-)(\d+)")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Operation:
    """One entry. `seq` numbers collectives of a group, or p2p pairs when `p2p`.

    `state` is scheduled, started or completed.
    """

    group: str
    seq: int | None
    name: str  # all_reduce, send 1->2, ...
    state: str
    sizes_in: str = ""
    sizes_out: str = ""
    types_in: str = ""
    p2p: bool = False
    record: int | None = None
    created_ns: int | None = None
    timeout_ms: int | None = None
    frames: tuple[str, ...] = ()

    @property
    def pair(self) -> tuple[int, int] | None:
        """(sender, receiver) of a send or receive."""
        found = _POINT.search(self.name)
        if found is None:
            return None
        one, other = int(found[1]), int(found[3])
        return (one, other) if found[2] == "->" else (other, one)


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Where a rank stands in a group."""

    group: str
    members: tuple[int, ...] = ()
    enqueued: int | None = None
    started: int | None = None
    completed: int | None = None


@dataclass(frozen=True, slots=True)
class FlightRecord:
    """One rank's record."""

    rank: int
    version: str = ""
    nccl_version: str = ""
    groups: tuple[GroupStatus, ...] = ()
    operations: tuple[Operation, ...] = ()


def parse_record(raw: bytes, rank: int) -> FlightRecord:
    """A record in either form. Raises FormatError, also for a pickle that would run anything."""
    what = f"reading the flight record of rank {rank}"
    try:
        told = json.loads(raw) if raw.lstrip()[:1] == b"{" else load_plain(raw)
        return _record(told, rank)
    except NotPlainError as error:
        raise FormatError(what, str(error), raw[:64]) from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise FormatError(what, f"it is not what it should be: {type(error).__name__}", raw[:64]) from None


def _record(told: Any, rank: int) -> FlightRecord:
    if not isinstance(told, dict):
        raise TypeError("no dict")
    config, status = told.get("pg_config") or {}, told.get("pg_status") or {}
    entries = [entry for entry in (told.get("entries") or [])[-_MAX_ENTRIES:] if isinstance(entry, dict)]
    configs, standing = {_text(name): one or {} for name, one in config.items()}, _standing(status, entries)
    names = list(dict.fromkeys([*configs, *standing]))[:_MAX_GROUPS]
    groups = tuple(_group(name, configs.get(name) or {}, standing.get(name) or {}) for name in names)
    return FlightRecord(
        rank=rank,
        version=_text(told.get("version")),
        nccl_version=_text(told.get("nccl_version") or told.get("comm_lib_version")),
        groups=groups,
        operations=tuple(_operation(entry) for entry in entries),
    )


def _standing(status: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Group's name -> where the rank stands in it.

    PyTorch files these by a number that each process counts for itself (`pg_id`), and groups by a name that is the
    same for all; only the entries tell which belongs to which. The first group is 0 by number and by name.
    """
    name_of = {"0": "0"} | {_text(entry.get("pg_id")): _group_of(entry) for entry in entries}
    return {name_of[_text(number)]: one for number, one in status.items() if _text(number) in name_of}


def _group(name: str, config: dict[str, Any], status: dict[str, Any]) -> GroupStatus:
    members = tuple(int(word) for word in _NUMBER.findall(_text(config.get("ranks"), 100_000)))
    return GroupStatus(
        name,
        members,
        _int(status.get("last_enqueued_collective")),
        _int(status.get("last_started_collective")),
        _int(status.get("last_completed_collective")),
    )


def _operation(entry: dict[str, Any]) -> Operation:
    p2p = bool(entry.get("is_p2p"))
    return Operation(
        group=_group_of(entry),
        seq=_int(entry.get("p2p_seq_id" if p2p else "collective_seq_id")),
        name=_text(entry.get("profiling_name")).removeprefix("nccl:"),
        state=_text(entry.get("state")),
        sizes_in=_sizes(entry.get("input_sizes"))[:_MAX_SIZES],
        sizes_out=_sizes(entry.get("output_sizes"))[:_MAX_SIZES],
        types_in=_sizes(entry.get("input_dtypes"))[:_MAX_SIZES],
        p2p=p2p,
        record=_int(entry.get("record_id")),
        created_ns=_int(entry.get("time_created_ns")),
        timeout_ms=_int(entry.get("timeout_ms")),
        frames=tuple(_frames(entry.get("frames"))),
    )


def _group_of(entry: dict[str, Any]) -> str:
    group = entry.get("process_group")
    return _text(group[0]) if isinstance(group, (list, tuple)) and group else _text(entry.get("pg_id"))


def _frames(told: Any) -> Iterable[str]:
    for frame in told[:_MAX_FRAMES] if isinstance(told, (list, tuple)) else ():
        if isinstance(frame, dict):
            file = _text(frame.get("filename")).rpartition("/")[2]
            yield f"{_text(frame.get('name'))} ({file}:{_int(frame.get('line')) or '?'})"


def _sizes(told: Any, depth: int = 3) -> str:
    """`[[4, 8]]`, bounded: a crafted file may nest and share without end."""
    if isinstance(told, (list, tuple)):
        return f"[{', '.join(_sizes(each, depth - 1) for each in told[:16])}]" if depth else "[…]"
    return _text(told, 24)


def _text(value: Any, most: int = 300) -> str:
    if isinstance(value, bytes):
        value = value[:most].decode("utf-8", "replace")
    return printable(str(value)[:most]) if isinstance(value, (str, int, float)) else ""


def _int(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 20 else None


__all__ = ["MAX_BYTES", "FlightRecord", "GroupStatus", "Operation", "parse_record"]
