"""Where the ranks of a group stood when one timed out: who never called the operation the others wait for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cockpit.formats.log_models import RankPosition


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Ranks that stood elsewhere than the rest. `kind`: behind (never called `seq`) or differs (another operation)."""

    kind: str
    ranks: tuple[int, ...]
    others: tuple[int, ...]
    seq: int | None = None
    op: str = ""
    enqueued: int | None = None  # of the ranks that stood elsewhere
    others_enqueued: int | None = None
    detail: str = ""


def mismatch_of(positions: Sequence[RankPosition]) -> Mismatch | None:
    """The ranks that lag or differ in the first group where some do; None when all stood at the same place."""
    for members in _groups(positions):
        found = _behind(members) or _differs(members)
        if found is not None:
            return found
    return None


def _groups(positions: Sequence[RankPosition]) -> Iterable[list[RankPosition]]:
    """Per group. A line without a group belongs to its rank's only group, where there is one."""
    named: dict[str, list[RankPosition]] = {}
    for each in positions:
        if each.group:
            named.setdefault(each.group, []).append(each)
    loose = [each for each in positions if not each.group]
    if not named:
        yield loose
        return
    if len(named) == 1:
        by_rank = {each.rank: each for each in loose}
        group = next(iter(named))
        named[group] = [_joined(each, by_rank.pop(each.rank, None)) for each in named[group]]
        named[group] += by_rank.values()
    yield from named.values()


def _joined(one: RankPosition, other: RankPosition | None) -> RankPosition:
    if other is None:
        return one
    seq = one.seq if one.seq is not None else other.seq
    return replace(one, op=other.op, numel=other.numel, timed_out=True, seq=seq, timeout_s=other.timeout_s)


def _behind(members: list[RankPosition]) -> Mismatch | None:
    told = [each for each in members if each.enqueued is not None]
    if len(told) < 2:
        return None
    lowest = min(each.enqueued or 0 for each in told)
    highest = max(each.enqueued or 0 for each in told)
    if lowest == highest:
        return None
    behind = [each for each in told if each.enqueued == lowest]
    rest = [each for each in members if each.enqueued != lowest]
    waiting = next((each for each in rest if each.timed_out and each.seq is not None), None)
    if waiting is not None and waiting.seq is not None and lowest >= waiting.seq:
        return None  # they had called what the others waited for: this is no lag in calling
    return Mismatch(
        "behind",
        tuple(each.rank for each in behind),
        tuple(each.rank for each in rest),
        waiting.seq if waiting else lowest + 1,
        waiting.op if waiting else "",
        lowest,
        highest,
    )


def _differs(members: list[RankPosition]) -> Mismatch | None:
    """Ranks that waited for another operation, or for another size, under the same number."""
    timed = [each for each in members if each.timed_out and each.op and each.seq is not None]
    if len(timed) < 2:
        return None
    forms: dict[tuple[int | None, str, str], list[RankPosition]] = {}
    for each in timed:
        # What each rank gathers may differ in size by design; the kind of operation may not.
        size = each.numel if each.op in ("ALLREDUCE", "BROADCAST") else ""
        forms.setdefault((each.seq, each.op, size), []).append(each)
    if len(forms) < 2:
        return None
    order = sorted(forms.values(), key=len)
    odd, rest = order[0], [each for form in order[1:] for each in form]
    one, other = odd[0], order[-1][0]
    detail = (
        f"{one.op} of {one.numel} as number {one.seq}; the others {other.op} of {other.numel} as number {other.seq}"
    )
    return Mismatch(
        "differs", tuple(e.rank for e in odd), tuple(e.rank for e in rest), one.seq, one.op, None, None, detail
    )
