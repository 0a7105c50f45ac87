"""What a file's name says of a run: `p5_2node_allreduce.txt`. Used only where the text itself does not say."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TYPE = re.compile(r"(?<![a-z0-9])(p3dn|p4de|p4d|p5en|p5e|p5|p6-?b200|p6-?b300|g6e|g5)(?:\.(\w+))?(?![a-z0-9])")
_SIZES = {"p3dn": "24xlarge", "p4d": "24xlarge", "p4de": "24xlarge"}
_ALWAYS_48 = frozenset(("p5", "p5e", "p5en", "p6-b200", "p6-b300"))  # p5.4xlarge has to say so
_NODES = re.compile(r"(?<![\w.])(\d{1,4})[ -]?nodes?(?![a-z])")
_COLLECTIVES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "alltoallv": "alltoallv",
    "alltoall": "alltoall", "broadcast": "broadcast", "sendrecv": "sendrecv",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NameHints:
    """What the name says; "" and None where it does not."""

    instance_type: str = ""
    nodes: int | None = None
    collective: str = ""
    ring: bool = False


def hints_from_name(name: str) -> NameHints:
    """Read the last part of a path, without regard to case."""
    base = name.rsplit("/", 1)[-1].lower()
    tokens = base.replace("_", " ")
    found, nodes = _TYPE.search(tokens), _NODES.search(tokens)
    letters = re.sub(r"[^a-z]", "", base)
    collective = next((value for key, value in _COLLECTIVES.items() if key in letters), "")
    return NameHints(
        instance_type=_full(found[1], found[2]) if found else "",
        nodes=int(nodes[1]) if nodes else None,
        collective=collective,
        ring=re.search(r"(?<![a-z])ring(?![a-z])", tokens) is not None,
    )


def _full(family: str, size: str | None) -> str:
    family = re.sub(r"p6-?b", "p6-b", family)
    if size and size.endswith("xlarge"):
        return f"{family}.{size}"
    if family in _SIZES:
        return f"{family}.{_SIZES[family]}"
    return f"{family}.48xlarge" if family in _ALWAYS_48 else ""
