"""Which ranks there should be, and on which node each belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import expand
from cockpit.rank_models import RankProcess

MOST_RANKS = 65_536
_TASKS = re.compile(r"(\d{1,6})(?:\(x(\d{1,6})\))?")


def world_size(leads: Sequence[RankProcess], launched: int | None) -> int | None:
    """How many ranks there should be: WORLD_SIZE, else what Slurm launched."""
    for name in ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"):
        told = [int(text) for lead in leads if (text := lead.env.get(name, "")).isdigit() and len(text) < 7]
        if told:
            return min(max(told), MOST_RANKS)
    return min(launched, MOST_RANKS) if launched else None


def homes(leads: Mapping[int, tuple[str, RankProcess]], nodes: Sequence[str], world: int | None) -> dict[int, str]:
    """rank -> node for every rank, by the way the living ones are laid out; only what follows surely from them."""
    if world is None:
        return {}
    for table in (_by_slurm(leads, world), _by_groups(leads, world), _by_blocks(leads, nodes, world)):
        if table and _agrees(table, leads):
            return table
    return {}


def _agrees(table: Mapping[int, str], leads: Mapping[int, tuple[str, RankProcess]]) -> bool:
    return all(table.get(rank) in (node, None) for rank, (node, _) in leads.items())


def _by_slurm(leads: Mapping[int, tuple[str, RankProcess]], world: int) -> dict[int, str]:
    """Slurm's block order: tasks a node, from the environment of any rank."""
    for _, lead in leads.values():
        tasks = lead.env.get("SLURM_STEP_TASKS_PER_NODE") or lead.env.get("SLURM_TASKS_PER_NODE", "")
        nodes = lead.env.get("SLURM_STEP_NODELIST") or lead.env.get("SLURM_JOB_NODELIST", "")
        try:
            names, counts = expand(nodes), tasks_per_node(tasks)
        except FormatError:
            return {}
        order = [name for name, count in zip(names, counts, strict=False) for _ in range(count)]
        if len(names) == len(counts) and len(order) >= world:
            return dict(enumerate(order[:world]))
    return {}


def tasks_per_node(text: str) -> list[int]:
    """`8(x3),4` as [8, 8, 8, 4]; empty for what is none."""
    counts: list[int] = []
    for part in text.split(","):
        found = _TASKS.fullmatch(part.strip())
        if found is None or len(counts) > MOST_RANKS:
            return []
        counts += [int(found[1])] * min(int(found[2] or 1), MOST_RANKS)
    return counts


def _by_groups(leads: Mapping[int, tuple[str, RankProcess]], world: int) -> dict[int, str]:
    """torchrun's order: LOCAL_WORLD_SIZE ranks a node, groups as the living ones show."""
    sizes = {lead.env.get("LOCAL_WORLD_SIZE", "") for _, lead in leads.values()}
    size = next(iter(sizes)) if len(sizes) == 1 else ""
    if not size.isdigit() or not 0 < int(size) < 1000:
        return {}
    node_of = {rank // int(size): node for rank, (node, _) in leads.items()}
    return {rank: node_of[rank // int(size)] for rank in range(world) if rank // int(size) in node_of}


def _by_blocks(leads: Mapping[int, tuple[str, RankProcess]], nodes: Sequence[str], world: int) -> dict[int, str]:
    """Equal blocks over the nodes, when that fits every living rank."""
    if not nodes or world % len(nodes):
        return {}
    size = world // len(nodes)
    return {rank: nodes[rank // size] for rank in range(world)} if leads else {}
