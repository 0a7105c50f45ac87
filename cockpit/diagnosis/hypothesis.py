"""What may be wrong with a job: a sentence, how sure, what speaks for and against, what to do."""

from __future__ import annotations

from dataclasses import dataclass

CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"
CONFIDENCE = (CERTAIN, LIKELY, POSSIBLE)

HUNG, NOT_HUNG, SLOW, ENDED, WAITING, UNCLEAR = "hung", "not hung", "slow", "ended", "not started", "unclear"


@dataclass(frozen=True, slots=True)
class Move:
    """An action to press: its id in the table of actions, its key, and what it is for. Targets by name."""

    action: str
    key: str
    targets: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One explanation. `state` is what the job is in if it is true; `order` breaks ties, small first."""

    id: str
    state: str
    title: str
    sentence: str
    confidence: str
    order: int
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    speaks_for: tuple[str, ...] = ()
    speaks_against: tuple[str, ...] = ()
    next_step: str = ""
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. `final` is False while answers still come."""

    state: str
    sentence: str
    confidence: str
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    final: bool = True
