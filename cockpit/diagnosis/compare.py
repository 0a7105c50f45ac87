"""Two diagnoses of one job, some time apart: what is different, and what is not. Pure.

That nothing moved between two looks is what tells a hang from a slow step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cockpit.diagnosis.diagnose import Diagnosis
from cockpit.diagnosis.evidence import Evidence, Rank
from cockpit.diagnosis.hypothesis import NOT_HUNG
from cockpit.diagnosis.naming import ranks_word
from cockpit.rank_models import Pulse
from cockpit.words import size, span

_SHOWN = 4
_Pair = tuple[Rank, Rank]


def compared(before: Diagnosis, now: Diagnosis) -> tuple[str, ...]:
    """What is different from an earlier look, in sentences; the verdict first. () for two different jobs."""
    if (before.evidence.cluster, before.evidence.job.job_id) != (now.evidence.cluster, now.evidence.job.job_id):
        return ()
    pairs = _pairs(before.evidence, now.evidence)
    return (
        *_verdicts(before, now),
        *_stayed(before, now, pairs),
        *_changed(pairs.values()),
        *_moved(pairs),
        *_output(before.evidence, now.evidence),
        *_nodes(before.evidence, now.evidence),
    )


def _pairs(before: Evidence, now: Evidence) -> dict[int, _Pair]:
    earlier = {rank.rank: rank for rank in before.ranks}
    return {rank.rank: (earlier[rank.rank], rank) for rank in now.ranks if rank.rank in earlier}


def _verdicts(before: Diagnosis, now: Diagnosis) -> Iterable[str]:
    was, is_ = before.verdict, now.verdict
    if was.state != is_.state:
        yield f"it is {is_.state} now; it was {was.state}: {was.sentence.removeprefix('not hung: ')}"
    elif is_.ranks and was.ranks and is_.ranks != was.ranks:
        yield f"it is {ranks_word(is_.ranks)} now; it was {ranks_word(was.ranks)}"
    elif was.sentence == is_.sentence:
        yield "the verdict is the same"


def _stayed(before: Diagnosis, now: Diagnosis, pairs: Mapping[int, _Pair]) -> Iterable[str]:
    """The ranks that are named, where they stand at the very same place still."""
    if now.verdict.state == NOT_HUNG:
        return
    apart_s = now.evidence.taken_at - before.evidence.taken_at
    for number in now.verdict.ranks[:_SHOWN]:
        was, is_ = pairs.get(number, (None, None))
        if was is None or is_ is None or was.state != is_.state:
            continue
        if (place := _place(is_)) and place == _place(was):
            yield f"rank {number}, {span(apart_s)} later, still {place}"


def _place(rank: Rank) -> str:
    """`stands in load_batch (train.py:30)`, or what else is known of where it is."""
    if rank.doing is None:
        return f"is {rank.state}" if rank.state else ""
    return f"stands in {rank.doing.where}" if rank.doing.where else rank.doing.short


def _changed(pairs: Iterable[_Pair]) -> Iterable[str]:
    """Ranks that are in another state, by what they were and what they are."""
    found: dict[tuple[str, str], list[int]] = {}
    again = []
    for was, is_ in pairs:
        if was.state != is_.state:
            found.setdefault((was.state, is_.state), []).append(is_.rank)
        if was.process is not None and is_.process is not None and was.process.pid != is_.process.pid:
            again.append(is_.rank)
    for (was_in, is_in), ranks in sorted(found.items(), key=lambda item: len(item[1]))[:_SHOWN]:
        yield f"{ranks_word(ranks)}: {is_in}, was {was_in}"
    if again:
        yield f"{ranks_word(again)}: another process than before; it was started again"


def _moved(pairs: Mapping[int, _Pair]) -> Iterable[str]:
    """CPU time of the very same processes; of all threads, so that a rank that only waits may have used some."""
    told = {number: passed for number, pair in pairs.items() if (passed := _cpu_passed(*pair)) is not None}
    if not told:
        return
    still = [number for number, passed in told.items() if passed <= 0]
    words = f"CPU time moved on {len(told) - len(still)} of {len(told)} ranks"
    yield f"{words}; not on {ranks_word(still)}" if 0 < len(still) < len(told) else words


def _cpu_passed(was: Rank, is_: Rank) -> int | None:
    if was.process is None or is_.process is None or was.process.pid != is_.process.pid:
        return None
    first, last = _ticks(was.process.second or was.process.first), _ticks(is_.process.second or is_.process.first)
    return None if first is None or last is None else last - first


def _ticks(pulse: Pulse | None) -> int | None:
    return pulse.cpu_ticks if pulse is not None else None


def _output(before: Evidence, now: Evidence) -> Iterable[str]:
    earlier = {(log.where, log.path): log for log in before.logs if log.own}
    for log in now.logs:
        was = earlier.get((log.where, log.path))
        if was is None or was.size is None or log.size is None:
            continue
        name = log.path.rpartition("/")[2]
        if log.size == was.size:
            yield f"nothing was written to {name}"
        else:
            steps = (was.progress.step, log.progress.step)
            told = f", step {steps[0]} then, {steps[1]} now" if None not in steps and steps[0] != steps[1] else ""
            grown = f"has grown by {size(log.size - was.size)}" if log.size > was.size else "was cut or begun anew"
            yield f"{name} {grown}{told}"


def _nodes(before: Evidence, now: Evidence) -> Iterable[str]:
    told_then = {node.name for node in before.nodes if node.sweep is not None}
    told_now = {node.name for node in now.nodes if node.sweep is not None}
    if fresh := sorted(told_now - told_then):
        yield f"{', '.join(fresh[:_SHOWN])} did not answer then and does now"
    if silent := sorted(told_then - told_now):
        yield f"{', '.join(silent[:_SHOWN])} answered then and does not now"
