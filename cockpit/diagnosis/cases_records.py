"""Hypotheses from what the libraries wrote down themselves: flight records, and NCCL's RAS where it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.diagnosis import moves
from cockpit.diagnosis.evidence import Evidence
from cockpit.diagnosis.flight import BEHIND, SILENT, STATE, Disagreement
from cockpit.diagnosis.hypothesis import HUNG, LIKELY, NOT_HUNG, POSSIBLE, Hypothesis
from cockpit.diagnosis.naming import ranks_word
from cockpit.formats.hostlist import brief
from cockpit.formats.ras import RasProcess, RasReport

_BLIND = "RAS counts launches only: sends and receives, and operations that began and did not end, look fine to it"


def of_records(evidence: Evidence) -> Iterator[Hypothesis]:
    """Every hypothesis of this kind."""
    if not evidence.job.running:
        return
    for found in evidence.disagreements[:4]:
        yield _of_flight(evidence, found)
    if evidence.ras:
        yield from _of_ras(evidence, evidence.ras)


def _nodes_of(evidence: Evidence, ranks: Sequence[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(r.node for r in evidence.ranks if r.rank in ranks and r.node))


def _of_flight(evidence: Evidence, found: Disagreement) -> Hypothesis:
    apart = found.kind not in (BEHIND, STATE, SILENT)
    step = (
        f"Look at the program where it calls {found.where}: all ranks must call the same."
        if apart
        else "Look at that rank's stack and log: where it was instead."
    )
    return Hypothesis(
        "collective-mismatch" if apart else "flight-record",
        HUNG,
        f"flight records: {found.kind}",
        found.sentence,
        POSSIBLE if found.kind in (SILENT, STATE) else LIKELY,
        12 if apart else 14,
        found.ranks,
        _nodes_of(evidence, found.ranks),
        (found.sentence, *([f"called at {found.where}"] if found.where else [])),
        (),
        step,
        moves.of_program(evidence) if apart else moves.again(evidence),
    )


def _of_ras(evidence: Evidence, reports: Sequence[RasReport]) -> Iterator[Hypothesis]:
    last = reports[-1]
    gone = (*last.dead, *last.incomplete)
    if gone:
        yield _gone(evidence, gone, dead=bool(last.dead), ranks=last.missing_ranks)
    if last.transitional or len(reports) < 2:
        return  # while communicators are made or ended, and from one look, a mismatch means nothing
    first = reports[0]
    if _same(first, last) and last.counts:
        yield from _behind(evidence, last)
    elif not _same(first, last):
        words = "not hung: NCCL's counts went on between two looks"
        yield Hypothesis("ras-moves", NOT_HUNG, "NCCL goes on", words, LIKELY, 9, speaks_for=(words,))


def _same(first: RasReport, last: RasReport) -> bool:
    if first.by_rank and last.by_rank:
        return first.by_rank == last.by_rank
    return [each.counts for each in first.counts] == [each.counts for each in last.counts]


def _gone(evidence: Evidence, gone: Sequence[RasProcess], *, dead: bool, ranks: tuple[int, ...]) -> Hypothesis:
    pids = {(each.pid, each.node) for each in gone}
    known = [r for r in evidence.ranks if r.process and any(pid == r.process.pid for pid, _ in pids)]
    ranks = ranks or tuple(rank.rank for rank in known)
    nodes = _nodes_of(evidence, ranks) or tuple(dict.fromkeys(each.node for each in gone))
    told = ", ".join(f"process {each.pid} on {each.node} (GPU {each.gpus})" for each in gone[:4])
    state = "dead" if dead else "silent"
    return Hypothesis(
        "ras-dead",
        HUNG,
        f"NCCL calls processes {state}",
        f"{ranks_word(ranks) if ranks else told} on {brief(nodes)}: NCCL's RAS calls it {state} ({told})",
        LIKELY,
        13,
        ranks,
        nodes,
        (told,),
        (),
        "See whether that process still lives, and why it ended or stopped.",
        moves.again(evidence),
    )


def _behind(evidence: Evidence, last: RasReport) -> Iterator[Hypothesis]:
    for counts in last.counts:
        low = min(number for number, _ in counts.counts)
        high = max(number for number, _ in counts.counts)
        behind = [process for process, number in counts.rows if number == low]
        ahead = [process for process, number in counts.rows if number == high]
        odd, word = (behind, "did not launch") if behind else (ahead, "launched one more than")
        if not odd:
            continue
        ranks = tuple(each.rank for each in odd if each.rank is not None)
        name = counts.operation or "operation"
        yield Hypothesis(
            "ras-behind",
            HUNG,
            "NCCL's counts stand still and differ",
            f"{ranks_word(ranks)} {word} {name} {high if behind else low}: counts stand still and differ",
            LIKELY,
            14,
            ranks,
            _nodes_of(evidence, ranks) or tuple(dict.fromkeys(each.node for each in odd)),
            tuple(f"{ranks} at {number}" for number, ranks in counts.counts[:6]),
            (_BLIND,),
            "Look at that rank's stack: it is elsewhere in the program.",
            moves.again(evidence),
        )
