"""Ranks that stand at the same place, smallest group first: the minority is the suspect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.diagnosis.doing import place, short_file
from cockpit.diagnosis.evidence import WAITING, WORKING, Rank
from cockpit.diagnosis.naming import ranks_word
from cockpit.rank_models import Frame

_DEPTH = 40
_WELL = (WAITING, WORKING)


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks with one stack; `stack` is that of the first, innermost call first. No stack: by the kernel's word."""

    ranks: tuple[int, ...]
    words: str
    stack: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """`rank 37: loads data in …`."""
        return f"{ranks_word(self.ranks)}: {self.words}"


def group_stacks(ranks: Sequence[Rank]) -> tuple[StackGroup, ...]:
    """All ranks that have a process; lines are left out when they would make a group of nearly every rank."""
    living = [rank for rank in ranks if rank.process is not None]
    groups = _grouped(living, lines=True)
    if len(groups) > max(4, len(living) // 2):
        groups = _grouped(living, lines=False)
    ordered = sorted(groups, key=lambda group: (group[0].state in _WELL, len(group), group[0].rank))
    return tuple(_group(group) for group in ordered)


def _grouped(ranks: Sequence[Rank], *, lines: bool) -> list[list[Rank]]:
    found: dict[object, list[Rank]] = defaultdict(list)
    for rank in ranks:
        found[rank.state, _key(rank, lines=lines)].append(rank)
    return list(found.values())


def _key(rank: Rank, *, lines: bool) -> object:
    frames = frames_of(rank)
    if frames:
        return tuple((frame.function, short_file(frame), frame.line if lines else None) for frame in frames)
    return rank.doing.key if rank.doing else ""


def frames_of(rank: Rank) -> tuple[Frame, ...]:
    """The Python stack of its main thread by the latest dump."""
    process = rank.process
    main = process.dumps[-1].main if process is not None and process.dumps else None
    return main.frames[:_DEPTH] if main is not None else ()


def _group(ranks: Sequence[Rank]) -> StackGroup:
    first = ranks[0]
    close = first.process.close if first.process else None
    words = first.words or (first.doing.words if first.doing else "nothing is known")
    stack = tuple(place(frame) for frame in frames_of(first))
    return StackGroup(tuple(rank.rank for rank in ranks), words, stack, close.kernel_stack if close else ())
