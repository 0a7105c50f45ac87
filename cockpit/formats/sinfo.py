"""One `sinfo -N -O` call to nodes and queues."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from sys import intern

from cockpit.formats.gres import Gpus, gpus_of, memory_mib, number, parse_gres
from cockpit.formats.node_state import judge, parse_state
from cockpit.formats.records import format_args, split_fields, split_records
from cockpit.formats.times import instant
from cockpit.formats.words import word as _word
from cockpit.models import Gres, Node, NodesReading, Partition
from cockpit.text import printable

# Name, queue and its availability first, since the rows of one node differ only there; free text last. These
# names print the same columns on Slurm 22.05 to 25.11 (22.05 leaves Reservation empty).
_FIELDS = """
    NodeList PartitionName Available StateComplete Gres GresUsed CPUsState CPUsLoad Memory AllocMem FreeMem
    Version NodeAddr NodeHost Features Weight Reservation User Timestamp Comment Extra Reason
"""
NODE_FIELDS: tuple[str, ...] = tuple(_FIELDS.split())
FREE_TEXT = frozenset({"Comment", "Extra", "Reason"})

_WHAT = "reading sinfo's answer"
_AVAILABLE = {"inact": "inactive"}  # sinfo's short column has another spelling
_NODE_START = re.compile(rb"[A-Za-z0-9][A-Za-z0-9_.-]*\x1f")


def node_args(mark: str = "") -> list[str]:
    """What follows `sinfo`: each node once for each of its queues, hidden ones too, for `parse_nodes`.

    Without a mark (hex digits from `secrets`) a node's reason or comment could forge whole rows.
    """
    return ["-h", "-a", "-N", "-O", format_args(NODE_FIELDS, mark)]


def parse_nodes(
    raw: bytes,
    fields: Sequence[str] = NODE_FIELDS,
    cache: dict[bytes, Node] | None = None,
    *,
    mark: str = "",
) -> NodesReading:
    """Every node of sinfo's output once, in Slurm's order, and the queues; `fields` begins with NodeList.

    `cache` is filled with this answer's nodes and emptied of all others: a node whose rows have the same
    bytes as last time gives the same Node object again. Raises FormatError when the output is cut off or is
    not sinfo's.
    """
    fields = tuple(fields)
    trusted = next((at for at, name in enumerate(fields) if name in FREE_TEXT), len(fields) - 1)
    rows = split_records(raw, start=_NODE_START, trusted=trusted, what=_WHAT, mark=mark)
    by_node: dict[bytes, list[bytes]] = {}
    for row in rows:
        by_node.setdefault(row[: row.index(b"\x1f")], []).append(row)
    known = {} if cache is None else cache
    keys = [b"\0".join(group) for group in by_node.values()]  # no text of Slurm's holds a NUL
    groups = zip(keys, by_node.values(), strict=True)
    nodes = [known.get(key) or _node(group, fields) for key, group in groups]
    if cache is not None:
        cache.clear()
        cache.update(zip(keys, nodes, strict=True))
    return NodesReading(tuple(nodes), _partitions(nodes, rows, fields))


def _partitions(nodes: Sequence[Node], rows: Sequence[bytes], fields: tuple[str, ...]) -> tuple[Partition, ...]:
    members: dict[str, list[str]] = {}
    for node in nodes:
        for name in node.partitions:
            members.setdefault(name, []).append(node.name)
    available = _availability(rows, fields)
    return tuple(Partition(name, available.get(name, ""), tuple(names)) for name, names in members.items())


def _availability(rows: Sequence[bytes], fields: tuple[str, ...]) -> dict[str, str]:
    if "PartitionName" not in fields or "Available" not in fields:
        return {}
    name_at, word_at = fields.index("PartitionName"), fields.index("Available")
    upto = max(name_at, word_at) + 1
    found: dict[str, str] = {}
    for row in rows:
        parts = row.split(b"\x1f", upto)
        word = printable(parts[word_at])
        found[printable(parts[name_at])] = _AVAILABLE.get(word, word)
    return found


def _node(rows: Sequence[bytes], fields: tuple[str, ...]) -> Node:
    """One node from its rows, which tell the same but for the queue."""
    row = _row(rows[0], fields)
    reason = _word(row.get("Reason", ""))
    state = parse_state(row.get("StateComplete") or row.get("StateLong", ""))
    word, health = judge(state, reason)
    gres, total = _resources(row.get("Gres", ""))
    used, in_use = _resources(row.get("GresUsed", ""))
    cpus = row.get("CPUsState", "").split("/")  # allocated, idle, other, total
    free_mib = memory_mib(row.get("FreeMem", ""))
    return Node(
        name=printable(row["NodeList"]),
        state=state,
        word=word,
        health=health,
        partitions=_queues(rows, fields),
        gres=gres,
        gres_used=used,
        gpus_total=total.count,
        gpus_used=in_use.count if total.count is not None else None,
        gpu_type=total.type,
        gpu_indices=in_use.indices,
        cpus_total=number(cpus[3]) if len(cpus) == 4 else None,
        cpus_used=number(cpus[0]) if len(cpus) == 4 else None,
        cpu_load=_load(row.get("CPUsLoad", ""), free_mib),
        mem_mib=memory_mib(row.get("Memory", "")),
        mem_used_mib=memory_mib(row.get("AllocMem", "")),
        mem_free_mib=free_mib,
        features=tuple(intern(name) for name in _word(row.get("Features", "")).split(",") if name),
        weight=number(row.get("Weight", "")),
        address=_word(row.get("NodeAddr", "")),
        hostname=_word(row.get("NodeHost", "")),
        version=_word(row.get("Version", "")),
        reservation=_word(row.get("Reservation", "")),
        reason=reason,
        reason_by=_word(row.get("User", "")) if reason else "",
        reason_at=instant(row.get("Timestamp", "")) if reason else None,
        comment=_word(row.get("Comment", "")),
        extra=_word(row.get("Extra", "")),
    )


def _queues(rows: Sequence[bytes], fields: tuple[str, ...]) -> tuple[str, ...]:
    if "PartitionName" not in fields:
        return ()
    at = fields.index("PartitionName")
    names = (_word(row.split(b"\x1f", at + 1)[at].decode("utf-8", "replace")) for row in rows)
    return tuple(dict.fromkeys(name for name in names if name))


@lru_cache(maxsize=4096)
def _resources(text: str) -> tuple[tuple[Gres, ...], Gpus]:
    # Thousands of nodes share a few dozen of these texts.
    gres = parse_gres(text)
    return gres, gpus_of(gres)


def _row(row: bytes, fields: tuple[str, ...]) -> Mapping[str, str]:
    return dict(zip(fields, split_fields(row.decode("utf-8", "replace"), len(fields)), strict=True))


def _load(text: str, free_mib: int | None) -> float | None:
    """The load, in CPUs; Slurm 23.11 and later print 0.00 for a node that has never reported one."""
    try:
        load = float(text)
    except ValueError:
        return None
    return None if free_mib is None and load == 0 else load
