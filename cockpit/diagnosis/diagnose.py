"""Evidence -> ranked hypotheses and a verdict. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cockpit.diagnosis.cases_calm import of_calm
from cockpit.diagnosis.cases_job import of_job
from cockpit.diagnosis.cases_network import of_network
from cockpit.diagnosis.cases_ranks import ELSEWHERE, of_ranks
from cockpit.diagnosis.cases_records import of_records
from cockpit.diagnosis.evidence import ODD, UNREAD, Evidence
from cockpit.diagnosis.gathered import Gathered
from cockpit.diagnosis.hypothesis import CONFIDENCE, HUNG, NOT_HUNG, POSSIBLE, UNCLEAR, Hypothesis, Verdict
from cockpit.diagnosis.read import evidence_of
from cockpit.diagnosis.stacks import StackGroup, group_stacks
from cockpit.words import plural


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole answer about one job; it may come again and again while nodes answer."""

    verdict: Verdict
    hypotheses: tuple[Hypothesis, ...]
    evidence: Evidence
    groups: tuple[StackGroup, ...] = ()


def diagnose(gathered: Gathered) -> Diagnosis:
    """From what was gathered so far; the same for a live job and for a bundle."""
    evidence = evidence_of(gathered)
    cases = (of_job, of_ranks, of_records, of_network, of_calm)
    found = sorted((each for case in cases for each in case(evidence)), key=_strength)
    verdict = verdict_of(evidence, found)
    evidence = _with_odd_ones(evidence, found)
    return Diagnosis(verdict, tuple(found), evidence, group_stacks(evidence.ranks))


def _with_odd_ones(evidence: Evidence, found: list[Hypothesis]) -> Evidence:
    """The ranks that hypotheses find elsewhere, marked as such: a grid of ranks shows them."""
    odd = {rank for each in found if each.order == ELSEWHERE and each.state != NOT_HUNG for rank in each.ranks}
    ranks = (replace(rank, state=ODD) if rank.rank in odd else rank for rank in evidence.ranks)
    return replace(evidence, ranks=tuple(ranks)) if odd else evidence


def _strength(hypothesis: Hypothesis) -> tuple[int, int]:
    return CONFIDENCE.index(hypothesis.confidence), hypothesis.order


def verdict_of(evidence: Evidence, found: list[Hypothesis]) -> Verdict:
    """The strongest hypothesis; "I can't tell" when there is none that is more than a possibility among several."""
    if not found:
        return _cannot_tell(evidence)
    best = found[0]
    states = {each.state for each in found if each.confidence == best.confidence}
    if best.confidence == POSSIBLE and HUNG in states and NOT_HUNG in states:
        words = f"I can't tell for sure: {best.sentence}; but {_other(found, best).sentence}"
        return Verdict(UNCLEAR, words, POSSIBLE, best.ranks, best.nodes, evidence.whole)
    return Verdict(best.state, best.sentence, best.confidence, best.ranks, best.nodes, evidence.whole)


def _other(found: list[Hypothesis], best: Hypothesis) -> Hypothesis:
    return next(each for each in found if each.state != best.state and each.confidence == best.confidence)


def _cannot_tell(evidence: Evidence) -> Verdict:
    lacks = []
    if not evidence.job.state:
        lacks.append("Slurm does not tell of this job")
    unread = evidence.of_state(UNREAD)
    silent = [node for node in evidence.nodes if node.sweep is None]
    if silent:
        lacks.append(f"{plural(len(silent), 'node')} of {len(evidence.nodes)} did not answer")
    if evidence.nodes and not evidence.ranks:
        lacks.append("no process says which rank it is")
    elif unread:
        lacks.append(f"{plural(len(unread), 'rank')} could not be looked at")
    if not evidence.logs:
        lacks.append("its output could not be read")
    if evidence.ranks and all(rank.doing is None or not rank.doing.stacked for rank in evidence.ranks):
        lacks.append("there are no stacks")
    words = f"I can't tell: {'; '.join(lacks) or 'nothing that was read speaks for or against'}"
    return Verdict(UNCLEAR, words, POSSIBLE, (), (), evidence.whole)
