"""Hypotheses that nothing is wrong: it goes on, or it is quiet for a reason that ends by itself."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.diagnosis.cases_job import works
from cockpit.diagnosis.evidence import UNKNOWN, WAITING, WORKING, Evidence, Rank
from cockpit.diagnosis.hypothesis import LIKELY, NOT_HUNG, POSSIBLE, Hypothesis
from cockpit.diagnosis.progress import PHASE_WORDS
from cockpit.words import span

_PHASE_S = 900.0  # longer than that, and a phase explains nothing any more
_KINDS = {"compile": "it compiles", "evaluation": "it evaluates", "storage": "it writes or reads a checkpoint"}


def of_calm(evidence: Evidence) -> Iterator[Hypothesis]:
    """Every hypothesis of this kind."""
    if evidence.job.running:
        yield from _progress(evidence)
        yield from _phase(evidence)
        yield from _all_in(evidence)


def _progress(evidence: Evidence) -> Iterator[Hypothesis]:
    told: list[str] = []
    for log in evidence.logs:
        step = log.progress.step
        at = f", step {step}" if step is not None else ""
        if log.grown:
            told.append(f"its output grew while we looked{at}")
        elif log.progress.in_rhythm(log.age_s):
            told.append(f"its last line is {span(log.age_s)} old, in rhythm (one in {span(log.progress.rhythm_s)}){at}")
    strong = bool(told)
    moving = _moving(evidence)
    if moving:
        told.append(moving)
    gpus = [gpu for gpu in evidence.gpus if gpu.live]
    busy = [gpu for gpu in gpus if works(gpu)]
    if gpus and len(busy) * 5 >= len(gpus) * 4:
        told.append(f"{len(busy)} of {len(gpus)} GPUs work at their usual power")
        strong = True
    if not told:
        return
    against = _stuck(evidence)
    yield Hypothesis(
        "progress",
        NOT_HUNG,
        "it goes on",
        f"not hung: {told[0]}",
        LIKELY if (strong or moving) and not against else POSSIBLE,
        9 if strong else 28,
        speaks_for=tuple(told),
        speaks_against=against,
        next_step="Nothing to do. If it is slow, compare its ranks and GPUs with each other.",
    )


def _moving(evidence: Evidence) -> str:
    """Words when every rank does something, but those that wait for others; "" otherwise."""
    living = [rank for rank in evidence.ranks if rank.process is not None]
    moving = [rank for rank in living if rank.moved]
    still = [rank for rank in living if not rank.moved and rank.state != WAITING]
    if not moving or still or len(living) < len(evidence.ranks) or len(moving) * 2 < len(living):
        return ""
    if all(_polls(rank) for rank in moving):
        return ""  # they only look again and again whether the others have come
    return f"{len(moving)} of {len(living)} ranks moved between two looks"


def _polls(rank: Rank) -> bool:
    """Wakes up and stays where it is: it waits for others and looks now and then."""
    dumps = [dump.main.frames for dump in rank.process.dumps if dump.main is not None] if rank.process else []
    same = len(dumps) == 2 and dumps[0] == dumps[1]
    return rank.state == WAITING and same


def _stuck(evidence: Evidence) -> tuple[str, ...]:
    bad = [rank for rank in evidence.ranks if rank.state not in (WAITING, WORKING, UNKNOWN)]
    return (f"{len(bad)} of {len(evidence.ranks)} ranks are not well",) if bad else ()


def _phase(evidence: Evidence) -> Iterator[Hypothesis]:
    for log in evidence.logs:
        phase, age_s = log.progress.phase, log.age_s
        if not phase or age_s is None or age_s > _PHASE_S or log.grown:
            continue
        yield Hypothesis(
            f"phase-{phase}",
            NOT_HUNG,
            PHASE_WORDS[phase],
            f"probably not hung: {PHASE_WORDS[phase]}, since {span(age_s)}",
            POSSIBLE,
            27,
            speaks_for=(f"the last it said: {log.progress.phase_text}",),
            speaks_against=_stuck(evidence),
            next_step="Look again in some minutes; only when it lasts far longer than usual something is wrong.",
        )
        return


def _all_in(evidence: Evidence) -> Iterator[Hypothesis]:
    """Nearly all ranks compile, evaluate or write a checkpoint."""
    known = [rank for rank in evidence.ranks if rank.doing is not None]
    for kind, words in _KINDS.items():
        there = [rank for rank in known if rank.doing is not None and rank.doing.kind == kind]
        if len(there) * 2 > len(known) >= 1:
            yield Hypothesis(
                f"phase-{kind}",
                NOT_HUNG,
                words,
                f"probably not hung: {words} ({len(there)} of {len(known)} ranks)",
                LIKELY if any(rank.moved for rank in there) else POSSIBLE,
                26,
                speaks_for=(there[0].words,),
                speaks_against=_stuck(evidence),
                next_step="Look again in some minutes.",
            )
