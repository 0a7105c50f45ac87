"""How ranks and nodes are named in sentences."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.formats.hostlist import fold


def ranks_word(ranks: Iterable[int]) -> str:
    """`rank 5`, `ranks 0-3,7`."""
    listed = sorted(set(ranks))
    if len(listed) == 1:
        return f"rank {listed[0]}"
    return f"ranks {folded(listed)}"


def folded(ranks: Iterable[int]) -> str:
    """`0-3,7`, without the brackets of a host list."""
    return fold(f"r{rank}" for rank in ranks).removeprefix("r").strip("[]")
