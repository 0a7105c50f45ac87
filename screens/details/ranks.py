"""Which ranks of a job were seen, where, and which were not. Imports no Textual."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cockpit.formats.hostlist import fold
from cockpit.gpu_models import GpuProcess, known
from screens.details.gpu_rows import rank_of
from screens.lines import Line, facts

RANKS_MAX = 65_536  # a job's own environment tells ranks: it may be anything


@dataclass(frozen=True, slots=True)
class Census:
    """Ranks by node. `world` is how many there should be, None when no process tells or they disagree."""

    by_node: Mapping[str, tuple[int, ...]]
    world: int | None = None
    without: int = 0  # processes that tell no rank
    doubled: tuple[int, ...] = ()  # ranks that more than one process claims

    @property
    def seen(self) -> set[int]:
        """Every rank that some process has."""
        return {rank for ranks in self.by_node.values() for rank in ranks}

    @property
    def missing(self) -> set[int]:
        """Ranks that must be there by the others' count and were seen nowhere."""
        seen = self.seen
        expected = self.world if self.world is not None else max(seen, default=-1) + 1
        return set(range(expected)) - seen


def census(processes: Iterable[tuple[str, GpuProcess]]) -> Census:
    """Count (node, process) pairs of one job; a process on several GPUs is one."""
    ranks: dict[str, set[int]] = defaultdict(set)
    pids: dict[int, set[tuple[str, int]]] = defaultdict(set)
    worlds: set[int] = set()
    without: set[tuple[str, int]] = set()
    for node, process in processes:
        if process.exists is False:
            continue
        rank = rank_of(process)
        if rank is None or not 0 <= rank < RANKS_MAX:
            without.add((node, process.pid))
            continue
        ranks[node].add(rank)
        pids[rank].add((node, process.pid))
        if (told := known(process.world_size)) is not None and 0 < told <= RANKS_MAX:
            worlds.add(int(told))
    doubled = tuple(sorted(rank for rank, who in pids.items() if len(who) > 1))
    world = worlds.pop() if len(worlds) == 1 else None
    return Census({node: tuple(sorted(found)) for node, found in ranks.items()}, world, len(without), doubled)


def census_lines(found: Census, unread: Sequence[str]) -> list[Line]:
    """The ranks in words; `unread` are nodes of the job whose processes nobody has told."""
    seen = found.seen
    if not seen:
        return facts([("ranks", _without(found))])
    of = f" of {found.world}" if found.world is not None else ""
    lines = facts([("ranks", f"{ranges(seen)}{of}, {_spread(found.by_node)}")])
    if missing := found.missing:
        lines += facts([_missing(missing, found.without, unread)])
    if found.doubled:
        lines += facts([("twice", f"{ranges(found.doubled)}: more than one process says so, as with several steps")])
    return lines + facts([("besides", _without(found))])


def _missing(missing: set[int], without: int, unread: Sequence[str]) -> tuple[str, str]:
    """A rank that nobody could have seen is not called missing."""
    if unread:
        return "not seen", f"{ranges(missing)}: nothing is told of the processes on {fold(unread)}"
    if without:
        return "not seen", f"{ranges(missing)}: not every process tells its rank"
    return "missing", f"{ranges(missing)}: no process of theirs holds a GPU"


def _without(found: Census) -> str:
    processes = "1 process" if found.without == 1 else f"{found.without} processes"
    return f"{processes} without a rank" if found.without else ""


def ranges(numbers: Iterable[int]) -> str:
    """`0-6,8`."""
    return fold(map(str, numbers)).replace("[", "").replace("]", "")


def _spread(by_node: Mapping[str, Sequence[int]]) -> str:
    """How the ranks lie on the nodes; nodes with as many as most are not named."""
    sizes = Counter(len(ranks) for ranks in by_node.values())
    if len(by_node) == 1:
        return f"on {next(iter(by_node))}"
    usual, count = sizes.most_common(1)[0]
    if len(sizes) == 1:
        return f"{usual} on each of {count} nodes"
    others = [f"{len(ranks)} on {node}" for node, ranks in by_node.items() if len(ranks) != usual]
    return f"{usual} on each of {count} nodes, {', '.join(others[:4])}" + (", …" if len(others) > 4 else "")
